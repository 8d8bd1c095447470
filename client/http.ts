// The one way to reach an authorization server: addresses are checked, answers bounded, and nothing of the caller's
// requests (cookies, headers) goes along. Every failure is an AuthError.
import { AuthError } from './errors.ts'
import { withAbort } from './flights.ts'
import type { NetPolicy } from './net-policy.ts'
import { printable, printableUrl } from './printable.ts'
import { certificateFix, tellUnreached } from './proxy-failure.ts'
import { readBody } from './read-body.ts'
import type { Secrets } from './secrets.ts'

const TIMEOUT = 15_000
const MAX_DOCUMENT = 256 * 1_024
const MAX_ANSWER = 64 * 1_024
const MAX_REDIRECTS = 3

export interface HttpAnswer {
  readonly status: number
  readonly headers: Headers
  /** Where it came from, after redirects. */
  readonly url: string
  /** Undefined where the body is no JSON, or was cut. As the server sent it: never show it, but by `showText`. */
  readonly json: unknown
  /** Of the body as far as it was read, bytes. */
  readonly length: number
}

export interface OAuthHttp {
  /** The URL, where the client may go there: for an address that only a browser opens. See `NetPolicy`. */
  check(url: string | URL, what: string): URL
  /** GET of a JSON document: at most 256 KiB, 15 s, 3 redirects, each checked. A failed status has no `json`. */
  getJson(
    url: string,
    options: { readonly what: string; readonly signal?: AbortSignal | undefined },
  ): Promise<HttpAnswer>
  /** POST of a form (URLSearchParams) or of JSON: at most 64 KiB of answer, 15 s; a redirect is an error. */
  post(
    url: string,
    options: {
      readonly what: string
      readonly body: URLSearchParams | object
      readonly headers?: Readonly<Record<string, string>> | undefined
      readonly signal?: AbortSignal | undefined
    },
  ): Promise<HttpAnswer>
}

/** No whole answer came. Retryable; its `cause` has the network's error code, and no more. */
export class ConnectionError extends AuthError {
  /** False only where the request surely never left: then it may be sent again without fear. */
  readonly bodySent: boolean
  /** Of the answer whose body was cut off; undefined: not even its head came. */
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

/** Failures before anything was sent: names, routes, refused connections, certificates. */
const NOT_SENT =
  /^(?:ENOTFOUND|EAI_\w+|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|UND_ERR_CONNECT_TIMEOUT|CERT_\w+|ERR_TLS_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNABLE_TO_\w+)$/

/** The first error code along the causes, such as `ECONNREFUSED`. */
function codeOf(thrown: unknown): string | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++) {
    const { code, errors } = error as { code?: unknown; errors?: unknown }
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

/** `timeoutMs`: for a whole exchange with its redirects. */
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
}): OAuthHttp {
  const malformed = (what: string, url: URL, why: string, fix: string) =>
    new AuthError(`${what} at ${printableUrl(url)} ${why}`, { code: 'malformed_response', fix })

  /** What a failed exchange rejects with. The cause is made anew: the caller's `fetch` may put headers in its errors. */
  function failure(
    thrown: unknown,
    url: URL,
    { what, signal }: Exchange,
    timeout: AbortSignal,
    status?: number,
  ): AuthError {
    if (AuthError.is(thrown)) return thrown
    if (signal?.aborted) {
      if (AuthError.is(signal.reason)) return signal.reason
      return new AuthError(`${what} was not waited for: the request was cancelled`, { code: 'aborted' })
    }
    const code = timeout.aborted ? 'TIMEOUT' : codeOf(thrown)
    const said = printable(secrets.scrub(thrown instanceof Error ? thrown.message : String(thrown)), 200)
    const cause = Object.assign(new Error(code ?? said), code === undefined ? {} : { code })
    const { what: silent } = tellUnreached(thrown, code ?? said)
    const why = timeout.aborted ? `did not answer within ${timeoutMs / 1_000} s` : silent
    const bodySent = status !== undefined || timeout.aborted || code === undefined || !NOT_SENT.test(code)
    return new ConnectionError(`${what} at ${printableUrl(url)} ${why}`, { bodySent, status, cause })
  }

  const either = ({ signal }: Exchange, timeout: AbortSignal) => (signal ? AbortSignal.any([signal, timeout]) : timeout)

  async function send(url: URL, init: RequestInit, exchange: Exchange, timeout: AbortSignal): Promise<Response> {
    const signal = either(exchange, timeout)
    const fixed = { redirect: 'manual', credentials: 'omit', cache: 'no-store', referrerPolicy: 'no-referrer' } as const
    // The caller's `fetch` may ignore its signal.
    return withAbort(fetch(url.href, { ...fixed, ...init, signal }), signal)
  }

  /** Follows redirects, each address checked before anything goes there. */
  async function follow(first: URL, init: RequestInit, exchange: Exchange, timeout: AbortSignal) {
    const { what, maxRedirects } = exchange
    let url = first
    for (let hops = 0; ; hops++) {
      const response = await send(url, init, exchange, timeout).catch(thrown => {
        throw failure(thrown, url, exchange, timeout)
      })
      if (!isRedirect(response)) return { response, url }
      const location = response.headers.get('location')
      await response.body?.cancel().catch(() => {})
      if (maxRedirects === 0) {
        throw malformed(what, url, 'answers a redirect', 'its publisher must give the address that answers itself')
      }
      // A browser hides where a redirect leads; without a place it leads nowhere. Both are no document.
      if (location === null || !URL.canParse(location, url.href)) return { response, url }
      if (hops === maxRedirects) {
        throw malformed(what, url, `redirects more than ${maxRedirects} times`, 'its publisher must end the detour')
      }
      url = policy.check(new URL(location, url), `A redirect of ${what}`)
    }
  }

  async function exchangeWith(address: string, init: RequestInit, exchange: Exchange): Promise<HttpAnswer> {
    const first = policy.check(address, exchange.what)
    const timeout = AbortSignal.timeout(timeoutMs)
    const { response, url } = await follow(first, init, exchange, timeout)
    const { status, headers } = response
    const reading = withAbort(readBody(response, exchange.limit), either(exchange, timeout))
    const { bytes, cut } = await reading.catch(thrown => {
      throw failure(thrown, url, exchange, timeout, status)
    })
    if (cut && response.ok) {
      const limit = `is larger than ${exchange.limit / 1_024} KiB`
      throw malformed(exchange.what, url, limit, 'ask the operator of that server about it')
    }
    const json = cut ? undefined : parseJson(new TextDecoder().decode(bytes))
    secrets.addFrom(json)
    return { status, headers, url: url.href, json, length: bytes.byteLength }
  }

  return {
    check: policy.check,
    getJson(url, { what, signal }) {
      const init = { method: 'GET', headers: { accept: 'application/json' } }
      return exchangeWith(url, init, { what, signal, limit: MAX_DOCUMENT, maxRedirects: MAX_REDIRECTS })
    },
    post(url, { what, body, headers, signal }) {
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
