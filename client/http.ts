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

export class ProxyError extends Error {
  readonly code: string

  constructor(message: string, code: string, cause?: unknown) {
    super(message, { cause })
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

export function describeUnreachable(thrown: unknown, code?: string): Readonly<{ problem: string; fix: string }> {
  const proxy = [...causesOf(thrown)].find(error => error instanceof ProxyError)
  if (proxy) return { problem: `was not called: ${proxy.message}`, fix: 'check that proxy' }
  const why = code === undefined ? '' : ` (${code})`
  return {
    problem: `cannot be reached${why}`,
    fix: certificateFix(thrown) ?? 'check the URL, and that the server is running',
  }
}

/** Reads at most `limit` bytes after decompression. */
export async function readBody(response: Response, limit: number) {
  const chunks: Uint8Array[] = []
  let size = 0
  let truncated = false
  const reader = response.body?.getReader()
  while (reader && !truncated) {
    const { done, value } = await reader.read()
    if (done) break
    truncated = size + value.byteLength > limit
    const chunk = truncated ? value.subarray(0, limit - size) : value
    chunks.push(chunk)
    size += chunk.byteLength
  }
  if (truncated) await reader?.cancel().catch(() => {})
  return { bytes: new Uint8Array(await new Blob(chunks).arrayBuffer()), cut: truncated }
}

const KNOWN_TYPE =
  /^(?:application\/(?:json|problem\+json|xml|xhtml\+xml|javascript|jwt|jose|octet-stream|x-www-form-urlencoded)|text\/(?:html|plain|xml|css|javascript|event-stream)|multipart\/form-data|image\/(?:png|jpeg|gif|svg\+xml))$/

function describeType(headers: Headers): string {
  const value = headers.get('content-type')
  if (value === null) return 'no content type'
  const [type = ''] = value.split(';', 1)
  const name = type.trim().toLowerCase()
  return KNOWN_TYPE.test(name) ? name : 'an unusual content type'
}

const describeBody = ({ headers, length }: Pick<HttpResult, 'headers' | 'length'>): string =>
  length === 0 ? 'an empty body' : `${describeType(headers)}, ${length} byte${length === 1 ? '' : 's'}`

export const describeResponse = (response: Pick<HttpResult, 'status' | 'headers' | 'length'>): string =>
  `HTTP ${response.status} (${describeBody(response)})`

export const TIMEOUT = 15_000
const MAX_DOCUMENT = 256 * 1_024
const MAX_RESPONSE = 64 * 1_024
const MAX_REDIRECTS = 3

export interface HttpResult {
  readonly status: number
  readonly headers: Headers
  readonly url: string
  /** Undefined for invalid or truncated JSON. Untrusted: display it only with `showText`. */
  readonly json: unknown
  readonly length: number
}

interface Get {
  readonly label: string
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
    message: string,
    details: { readonly bodySent: boolean; readonly status?: number | undefined; readonly cause: Error },
  ) {
    super(message, {
      code: 'temporarily_unavailable',
      fix: certificateFix(details.cause) ?? 'check that it runs and can be reached from here, then try again',
      retryable: true,
      cause: details.cause,
    })
    this.bodySent = details.bodySent
    this.status = details.status
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

interface RequestLimits {
  readonly label: string
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
  const malformed = (label: string, url: URL, why: string, fix: string) =>
    new AuthError(`${label} at ${printableUrl(url)} ${why}`, { code: 'malformed_response', fix })

  async function send(
    address: string,
    init: RequestInit,
    { label, signal, limit, maxRedirects }: RequestLimits,
  ): Promise<HttpResult> {
    let url = policy.check(address, label)
    const timeout = AbortSignal.timeout(timeoutMs)
    const combined = signal ? AbortSignal.any([signal, timeout]) : timeout
    const base = { redirect: 'manual', credentials: 'omit', cache: 'no-store', referrerPolicy: 'no-referrer' } as const

    /** Replaces the cause, because a caller's `fetch` can put headers into its errors. */
    function failure(thrown: unknown, status: number | undefined): AuthError {
      if (AuthError.is(thrown)) return thrown
      if (signal?.aborted) {
        if (AuthError.is(signal.reason)) return signal.reason
        return new AuthError(`${label} was not waited for: the request was cancelled`, { code: 'aborted' })
      }
      const code = timeout.aborted ? 'TIMEOUT' : codeOf(thrown)
      const text = printable(secrets.scrub(thrown instanceof Error ? thrown.message : String(thrown)), 200)
      const cause = Object.assign(new Error(code ?? text), code === undefined ? {} : { code })
      const { problem: unreachable } = describeUnreachable(thrown, code ?? text)
      const why = timeout.aborted ? `did not respond within ${timeoutMs / 1_000} s` : unreachable
      const bodySent = status !== undefined || timeout.aborted || code === undefined || !NOT_SENT.test(code)
      return new ConnectionError(`${label} at ${printableUrl(url)} ${why}`, { bodySent, status, cause })
    }

    /** A custom `fetch` can ignore its signal. */
    const withTimeout = <T>(work: () => Promise<T>, status?: number): Promise<T> =>
      withAbort(Promise.resolve().then(work), combined).catch(thrown => {
        throw failure(thrown, status)
      })

    for (let redirects = 0; ; redirects++) {
      const { href } = url
      const response = await withTimeout(() => fetch(href, { ...base, ...init, signal: combined }))
      const { status, headers, ok } = response
      const location = headers.get('location')
      if (isRedirect(response)) {
        await response.body?.cancel().catch(() => {})
        if (maxRedirects === 0) {
          throw malformed(label, url, 'responds with a redirect', 'its publisher must use the final URL')
        }
        if (location !== null && URL.canParse(location, href)) {
          if (redirects === maxRedirects) {
            throw malformed(label, url, `redirects more than ${maxRedirects} times`, 'its publisher must fix it')
          }
          url = policy.check(new URL(location, href), `A redirect of ${label}`)
          continue
        }
      }
      const { bytes, cut: truncated } = await withTimeout(() => readBody(response, limit), status)
      if (truncated && ok) {
        const why = `is larger than ${limit / 1_024} KiB`
        throw malformed(label, url, why, 'contact the operator of that server')
      }
      const json = truncated ? undefined : parseJson(new TextDecoder().decode(bytes))
      secrets.addFrom(json)
      return { status, headers, url: href, json, length: bytes.byteLength }
    }
  }

  return {
    check: policy.check,
    /** Gets JSON: at most 256 KiB, 15 s and 3 checked redirects. A failed status has no `json`. */
    getJson(url: string, { label, signal }: Get): Promise<HttpResult> {
      const init = { method: 'GET', headers: { accept: 'application/json' } }
      return send(url, init, { label, signal, limit: MAX_DOCUMENT, maxRedirects: MAX_REDIRECTS })
    },
    /** Posts a form or JSON: response of at most 64 KiB, 15 s, no redirects. */
    post(url: string, { label, body, headers, signal }: Post): Promise<HttpResult> {
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
      return send(url, init, { label, signal, limit: MAX_RESPONSE, maxRedirects: 0 })
    },
  }
}
