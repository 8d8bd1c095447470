// Sends HTTP requests to authorization servers, with checked URLs, size limits and timeouts.
import { AuthError } from './errors.ts'
import type { NetPolicy } from './net-policy.ts'
import { printable, printableUrl, type Secrets } from './text.ts'

export function withAbort<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    // A late rejection still needs a handler.
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

/** Maximum timer delay in Node.js, milliseconds. */
export const MAX_TIMER = 2 ** 31 - 1

/** Waits `ms` milliseconds, at most `MAX_TIMER`. Rejects when `signal` aborts. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const waiting = new Promise<void>(resolve => {
    timer = setTimeout(resolve, Math.min(ms, MAX_TIMER))
  })
  const cancelled = (reason: unknown) => {
    throw AuthError.is(reason) ? reason : new AuthError('the wait was cancelled', { code: 'aborted' })
  }
  return withAbort(waiting, signal)
    .catch(cancelled)
    .finally(() => clearTimeout(timer))
}

export class ProxyFailure extends Error {
  readonly code: string

  constructor(what: string, code: string, cause?: unknown) {
    super(what, { cause })
    this.code = code
  }
}

export function* causesOf(thrown: unknown): Generator<Error & { code?: unknown; errors?: unknown }> {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 6; error = error.cause, depth++) yield error
}

const UNTRUSTED =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT(?:_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_UNTRUSTED)$/

export function certificateFix(thrown: unknown): string | undefined {
  for (const error of causesOf(thrown)) {
    const code = String(error.code)
    if (UNTRUSTED.test(code))
      return 'its certificate is not trusted: set NODE_EXTRA_CA_CERTS to the file of its certificate authority'
    if (code === 'CERT_HAS_EXPIRED') return 'its certificate has expired: the operator of the server must renew it'
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
      return 'its certificate is for other host names: use one of them in the URL'
  }
  return undefined
}

export function describeUnreachable(thrown: unknown, code?: string): { readonly what: string; readonly fix: string } {
  const proxy = [...causesOf(thrown)].find(error => error instanceof ProxyFailure)
  if (proxy) return { what: `was not called: ${proxy.message}`, fix: 'check that proxy' }
  const why = code === undefined ? '' : ` (${code})`
  return {
    what: `cannot be reached${why}`,
    fix: certificateFix(thrown) ?? 'check the URL, and that the server is running',
  }
}

/** Reads at most `limit` bytes after decompression. */
export async function readBody(response: Response, limit: number) {
  const chunks: Uint8Array[] = []
  let size = 0
  let cut = false
  const reader = response.body?.getReader()
  while (reader && !cut) {
    const { done, value } = await reader.read()
    if (done) break
    cut = size + value.byteLength > limit
    const kept = cut ? value.subarray(0, limit - size) : value
    chunks.push(kept)
    size += kept.byteLength
  }
  if (cut) await reader?.cancel().catch(() => {})
  return { bytes: new Uint8Array(await new Blob(chunks).arrayBuffer()), cut }
}

const KNOWN_TYPE =
  /^(?:application\/(?:json|problem\+json|xml|xhtml\+xml|javascript|jwt|jose|octet-stream|x-www-form-urlencoded)|text\/(?:html|plain|xml|css|javascript|event-stream)|multipart\/form-data|image\/(?:png|jpeg|gif|svg\+xml))$/

function describeType(headers: Headers): string {
  const given = headers.get('content-type')
  if (given === null) return 'no content type'
  const [type = ''] = given.split(';', 1)
  const name = type.trim().toLowerCase()
  return KNOWN_TYPE.test(name) ? name : 'an unusual content type'
}

const describeBody = ({ headers, length }: Pick<HttpAnswer, 'headers' | 'length'>): string =>
  length === 0 ? 'an empty body' : `${describeType(headers)}, ${length} byte${length === 1 ? '' : 's'}`

export const describeAnswer = (answer: Pick<HttpAnswer, 'status' | 'headers' | 'length'>): string =>
  `HTTP ${answer.status} (${describeBody(answer)})`

export const TIMEOUT = 15_000
const MAX_DOCUMENT = 256 * 1_024
const MAX_ANSWER = 64 * 1_024
const MAX_REDIRECTS = 3

export interface HttpAnswer {
  readonly status: number
  readonly headers: Headers
  readonly url: string
  /** Undefined for invalid or truncated JSON. Untrusted: display it only with `showText`. */
  readonly json: unknown
  readonly length: number
}

interface Get {
  readonly what: string
  readonly signal?: AbortSignal | undefined
}

interface Post extends Get {
  readonly body: URLSearchParams | object
  readonly headers?: Readonly<Record<string, string>> | undefined
}

export type OAuthHttp = ReturnType<typeof createOAuthHttp>

/** The server sent no complete response. Retryable; `cause` contains only the network error code. */
export class ConnectionError extends AuthError {
  /** False if the request was certainly not sent and can be repeated. */
  readonly bodySent: boolean
  /** Status of a response with a truncated body; undefined without response headers. */
  readonly status: number | undefined

  constructor(
    what: string,
    about: { readonly bodySent: boolean; readonly status?: number | undefined; readonly cause: Error },
  ) {
    super(what, {
      code: 'temporarily_unavailable',
      fix: certificateFix(about.cause) ?? 'check that it runs and can be reached from here, then try again',
      retryable: true,
      cause: about.cause,
    })
    this.bodySent = about.bodySent
    this.status = about.status
  }
}

const NOT_SENT =
  /^(?:ENOTFOUND|EAI_\w+|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|UND_ERR_CONNECT_TIMEOUT|CERT_\w+|ERR_TLS_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNABLE_TO_\w+)$/

export function codeOf(thrown: unknown): string | undefined {
  for (const { code, errors } of causesOf(thrown)) {
    if (typeof code === 'string') return code
    if (Array.isArray(errors)) return codeOf(errors[0])
  }
  return undefined
}

interface Exchange {
  readonly what: string
  readonly signal: AbortSignal | undefined
  readonly limit: number
  readonly maxRedirects: number
}

const isRedirect = ({ status, type }: Response): boolean =>
  type === 'opaqueredirect' || (status >= 300 && status < 400 && status !== 304)

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function createOAuthHttp({
  fetch,
  policy,
  secrets,
  timeoutMs = TIMEOUT,
}: {
  readonly fetch: typeof globalThis.fetch
  readonly policy: NetPolicy
  readonly secrets: Secrets
  readonly timeoutMs?: number
}) {
  const malformed = (what: string, url: URL, why: string, fix: string) =>
    new AuthError(`${what} at ${printableUrl(url)} ${why}`, { code: 'malformed_response', fix })

  async function exchangeWith(
    address: string,
    init: RequestInit,
    { what, signal, limit, maxRedirects }: Exchange,
  ): Promise<HttpAnswer> {
    let url = policy.check(address, what)
    const timeout = AbortSignal.timeout(timeoutMs)
    const either = signal ? AbortSignal.any([signal, timeout]) : timeout
    const fixed = { redirect: 'manual', credentials: 'omit', cache: 'no-store', referrerPolicy: 'no-referrer' } as const

    /** Replaces the cause, because a caller's `fetch` can put headers into its errors. */
    function failure(thrown: unknown, status: number | undefined): AuthError {
      if (AuthError.is(thrown)) return thrown
      if (signal?.aborted) {
        if (AuthError.is(signal.reason)) return signal.reason
        return new AuthError(`${what} was not waited for: the request was cancelled`, { code: 'aborted' })
      }
      const code = timeout.aborted ? 'TIMEOUT' : codeOf(thrown)
      const said = printable(secrets.scrub(thrown instanceof Error ? thrown.message : String(thrown)), 200)
      const cause = Object.assign(new Error(code ?? said), code === undefined ? {} : { code })
      const { what: silent } = describeUnreachable(thrown, code ?? said)
      const why = timeout.aborted ? `did not respond within ${timeoutMs / 1_000} s` : silent
      const bodySent = status !== undefined || timeout.aborted || code === undefined || !NOT_SENT.test(code)
      return new ConnectionError(`${what} at ${printableUrl(url)} ${why}`, { bodySent, status, cause })
    }

    /** A custom `fetch` can ignore its signal. */
    const inTime = <T>(work: () => Promise<T>, status?: number): Promise<T> =>
      withAbort(Promise.resolve().then(work), either).catch(thrown => {
        throw failure(thrown, status)
      })

    for (let hops = 0; ; hops++) {
      const { href } = url
      const response = await inTime(() => fetch(href, { ...fixed, ...init, signal: either }))
      const { status, headers, ok } = response
      const location = headers.get('location')
      if (isRedirect(response)) {
        await response.body?.cancel().catch(() => {})
        if (maxRedirects === 0) {
          throw malformed(what, url, 'responds with a redirect', 'its publisher must use the final URL')
        }
        if (location !== null && URL.canParse(location, href)) {
          if (hops === maxRedirects) {
            throw malformed(what, url, `redirects more than ${maxRedirects} times`, 'its publisher must fix it')
          }
          url = policy.check(new URL(location, href), `A redirect of ${what}`)
          continue
        }
      }
      const { bytes, cut } = await inTime(() => readBody(response, limit), status)
      if (cut && ok) {
        const why = `is larger than ${limit / 1_024} KiB`
        throw malformed(what, url, why, 'contact the operator of that server')
      }
      const json = cut ? undefined : parseJson(new TextDecoder().decode(bytes))
      secrets.addFrom(json)
      return { status, headers, url: href, json, length: bytes.byteLength }
    }
  }

  return {
    check: policy.check,
    /** Gets JSON: at most 256 KiB, 15 s and 3 checked redirects. A failed status has no `json`. */
    getJson(url: string, { what, signal }: Get): Promise<HttpAnswer> {
      const init = { method: 'GET', headers: { accept: 'application/json' } }
      return exchangeWith(url, init, { what, signal, limit: MAX_DOCUMENT, maxRedirects: MAX_REDIRECTS })
    },
    /** Posts a form or JSON: response of at most 64 KiB, 15 s, no redirects. */
    post(url: string, { what, body, headers, signal }: Post): Promise<HttpAnswer> {
      const isForm = body instanceof URLSearchParams
      const init = {
        method: 'POST',
        headers: {
          accept: 'application/json',
          'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
          ...headers,
        },
        body: isForm ? body.toString() : JSON.stringify(body),
      }
      return exchangeWith(url, init, { what, signal, limit: MAX_ANSWER, maxRedirects: 0 })
    },
  }
}
