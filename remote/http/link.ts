// Sends messages to the server over HTTP: retries, redirects, time limits, and errors for refusals.
import type { Cancellation } from '../../core/mcp/wire/cancellation.ts'
import { isObject } from '../../core/mcp/wire/message.ts'
import { printable, RemoteError } from '../errors.ts'
import { type Exchange, type Fields, isIdempotent, MAX_MESSAGE, readMessages } from '../messages.ts'
import { JSON_TYPE, SSE_TYPE } from './headers.ts'
import type { Wire, WireRequest, WireResponse } from './wire.ts'

/** Durations in milliseconds. */
export interface Timing {
  /** Time that a message waits for an unreachable server before its error response. */
  readonly retryTimeout: number
  readonly initialDelay: number
  readonly maxDelay: number
  /** Time limit for resuming a broken stream. */
  readonly resumeTimeout: number
}

export const TIMING: Timing = { retryTimeout: 15_000, initialDelay: 250, maxDelay: 30_000, resumeTimeout: 120_000 }

/** Carries messages to the server. */
export interface Transport {
  /** Resolves when all requests have responses. Rejects with the error for the remaining ones. */
  perform(exchange: Exchange): Promise<void>
  /** Ends the session. */
  endSession(cancellation: Cancellation): Promise<void>
  readonly sessionId: string | undefined
  /** True if closing the response cancels a request of this exchange; otherwise a notification does. */
  cancelsByClosing(exchange: Exchange): boolean
}

export interface Link {
  readonly url: string
  readonly wire: Wire
  /** Sent with requests that have no headers of one user. */
  readonly userHeaders?: (() => Readonly<Record<string, string>>) | undefined
  /** True: cookies are sent only in a session. */
  readonly sessionCookies?: boolean | undefined
  readonly timing: Timing
  /**
   * Passes on a message of the server and marks its request as done. Resolves when the next message can be passed.
   * `exchange`: the exchange on whose response the message arrived; undefined for the session's stream.
   */
  receive(text: string, exchange: Exchange | undefined): Promise<void> | void
  /** A new session has replaced a lost one. */
  reopened(): void
  debug(what: string): void
  /** True for errors that are not connection failures, such as a failed login. */
  isFinal(thrown: unknown): boolean
  readonly closing: Cancellation
}

/** A stream that was open this long resets the retry delay, milliseconds. */
const STABLE_AFTER = 5_000

/** Exponential back-off with jitter, because many clients reconnect to the same server. */
export function createBackOff({ initialDelay, maxDelay }: Timing) {
  let next = initialDelay
  return {
    ended(startedAt: number) {
      if (performance.now() - startedAt > STABLE_AFTER) next = initialDelay
    },
    get pause() {
      const now = next
      next = Math.min(next * 2, maxDelay)
      return now * (0.75 + Math.random() / 2)
    },
    reset() {
      next = initialDelay
    },
  }
}

export type BackOff = ReturnType<typeof createBackOff>

/** Delay before a response is closed that the server keeps open after its last message, milliseconds. */
const CLOSE_DELAY = 500

export type CloseTimer = ReturnType<typeof createCloseTimer>

export function createCloseTimer(exchange: Exchange, end: Cancellation) {
  let timer: NodeJS.Timeout | undefined
  return {
    check(): void {
      if (exchange.open.size > 0) return
      timer ??= setTimeout(() => end.abort(new Error('the request has its response')), CLOSE_DELAY)
    },
    stop: (): void => clearTimeout(timer),
  }
}

/** Errors of a request that was never sent. */
const NOT_SENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']

function findCode(thrown: unknown, pattern: RegExp): string | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 6; error = error.cause, depth++) {
    const { code } = error as NodeJS.ErrnoException
    if (typeof code === 'string' && pattern.test(code)) return code
    const [first] = error instanceof AggregateError ? error.errors : []
    const found = first instanceof Error ? findCode(first, pattern) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

export const networkCode = (thrown: unknown) => findCode(thrown, /^(?:E[A-Z_]+|UND_ERR_[A-Z_]+)$/)

/** Codes of OpenSSL and Node.js for certificates and TLS. The request was not sent. */
const tlsCode = (thrown: unknown) =>
  findCode(thrown, /^(?:CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)\w+$/)

const wasNotSent = (thrown: unknown): boolean =>
  NOT_SENT.includes(networkCode(thrown) ?? '') || tlsCode(thrown) !== undefined

/** Removes credentials, query and control characters from a URL. */
export function printableUrl(url: string | URL): string {
  const [text = ''] = String(url).split(/[?#]/, 1)
  return printable(text.replace(/^([^/]*\/\/)[^/]*@/, '$1').slice(0, MAX_SHOWN))
}

const MAX_SHOWN = 300

export function unreachableError(url: string, thrown: unknown): RemoteError {
  const code = networkCode(thrown) ?? tlsCode(thrown)
  const hint = code === 'ERR_SSL_WRONG_VERSION_NUMBER' ? '; the server does not use TLS: write http://' : ''
  const why = code === undefined ? '' : ` (${code}${hint})`
  return new RemoteError('unreachable', `${printableUrl(url)} cannot be reached${why}`, { cause: thrown })
}

/** The connection broke after the request was sent, so the outcome is unknown. */
export const brokenError = (url: string, cause?: unknown): RemoteError =>
  new RemoteError(
    'lost',
    `the connection to ${printableUrl(url)} broke before the response; the server may have executed the request`,
    { executed: 'maybe', cause },
  )

export function typeOf(response: WireResponse): string | undefined {
  const type = response.header('content-type')
  return type === JSON_TYPE || type === SSE_TYPE ? type : type?.split(';', 1)[0]?.trim().toLowerCase()
}

export const isOk = ({ status }: WireResponse): boolean => status >= 200 && status < 300

export const isStream = (response: WireResponse): boolean => isOk(response) && typeOf(response) === SSE_TYPE

/** Reads the text of a JSON response; undefined for other types. Rejects if the response is too large or incomplete. */
export async function readJson(response: WireResponse, limit = MAX_MESSAGE): Promise<string | undefined> {
  if (typeOf(response) === JSON_TYPE) return response.text(limit)
  response.discard()
  return undefined
}

export function readError(text: string | undefined): Fields | undefined {
  const [message] = text === undefined ? [] : readMessages(text)
  return isObject(message?.['error']) ? message['error'] : undefined
}

/** Error codes that identify a server of 2026-07-28, whatever the HTTP status. */
const MODERN_CODES: readonly unknown[] = [-32_020, -32_021, -32_022, -32_601]

/** True for a refusal after which a legacy transport is tried ("Backward Compatibility"). */
export const mayBeLegacy = (status: number, text: string | undefined): boolean =>
  status >= 400 &&
  status < 500 &&
  ![401, 403, 408, 429].includes(status) &&
  !MODERN_CODES.includes(readError(text)?.['code'])

/** True if the server does not know the session; some servers use 400. The message was not processed. */
export function isSessionLost(status: number, text: string | undefined): boolean {
  if (status === 404) return readError(text)?.['code'] !== -32_601
  return status === 400 && /session|not initialized/i.test(String(readError(text)?.['message'] ?? ''))
}

const REFUSALS: Readonly<Record<number, string>> = {
  401: 'requires a login',
  403: 'does not permit this request',
  413: 'does not accept a message of this size',
  429: 'received too many requests; wait before the next one',
}

export const notEndpointError = (url: string, what: string, about: ConstructorParameters<typeof RemoteError>[2]) =>
  new RemoteError('refused', `${printableUrl(url)} is not an MCP endpoint (${what}); check the path of the URL`, about)

/** Creates the error for an unsuccessful response. */
export function refusalError(url: string, response: WireResponse, text?: string): RemoteError {
  const { status } = response
  const error = readError(text)
  const executed = status >= 500 && status !== 503 ? 'maybe' : 'no'
  const challenge = response.header('www-authenticate')
  if (typeof error?.['message'] === 'string' && typeof error['code'] === 'number')
    return new RemoteError('rpc', error['message'], {
      code: error['code'],
      data: error['data'],
      status,
      challenge,
      executed,
    })
  if (status === 404 || status === 405) return notEndpointError(url, `HTTP ${status}`, { status, challenge, executed })
  const why = REFUSALS[status] ?? (status >= 500 ? 'failed; see its log' : 'refused the message')
  return new RemoteError('refused', `${printableUrl(url)} ${why} (HTTP ${status})`, { status, challenge, executed })
}

export interface SendOptions {
  readonly method: WireRequest['method']
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** True if the message can safely be sent twice. */
  readonly idempotent: boolean
  readonly cancellations: readonly Cancellation[]
  readonly retryTimeout?: number
  /** Headers of one user. If several users share the connection, cookies are neither sent nor kept. */
  readonly isPersonal?: boolean
}

/** A POST of an exchange. */
export class Post implements SendOptions {
  readonly method = 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly #exchange: Exchange
  readonly #end: Cancellation | undefined

  /** `end`: cancels the response alone. */
  constructor(exchange: Exchange, headers: Readonly<Record<string, string>>, end?: Cancellation) {
    this.headers = exchange.headers ? { ...headers, ...exchange.headers } : headers
    this.#exchange = exchange
    this.#end = end
  }

  get body(): string {
    return this.#exchange.message.text
  }
  get idempotent(): boolean {
    return isIdempotent(this.#exchange)
  }
  get cancellations(): readonly Cancellation[] {
    const { cancellation } = this.#exchange
    return this.#end ? [cancellation, this.#end] : [cancellation]
  }
  get isPersonal(): boolean {
    return this.#exchange.headers !== undefined
  }
}

export type Send = (sending: SendOptions) => Promise<WireResponse>

const MAX_REDIRECTS = 5

/** Follows redirects only within the same origin, so that credentials are not sent elsewhere. */
function redirected(from: string, response: WireResponse): string | undefined {
  const { status } = response
  if (status < 300 || status >= 400) return undefined
  const location = response.header('location')
  if (location === undefined || !URL.canParse(location, from)) return undefined
  const to = new URL(location, from)
  if (to.origin === new URL(from).origin && (status === 307 || status === 308)) return to.href
  throw new RemoteError(
    'refused',
    `${printableUrl(from)} redirects to ${printableUrl(to)}; configure that URL if it is the intended server`,
    { status },
  )
}

function retryAfter(response: WireResponse): number {
  const seconds = Number(response.header('retry-after') ?? 0)
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), 30) * 1_000 : 0
}

const MAX_COOKIES = 50
const MAX_COOKIE = 4_096

/** Keeps the cookies of load balancers, in memory and for one connection. Cookie attributes are ignored. */
function createCookies() {
  const kept = new Map<string, string>()
  return {
    keep(setCookies: readonly string[]): void {
      for (const cookie of setCookies) {
        const [, name, value] = /^\s*([^=;\s]+)=([^;]*)/.exec(cookie) ?? []
        if (name === undefined || value === undefined || cookie.length > MAX_COOKIE) continue
        kept.delete(name)
        const isExpired = /;\s*max-age=(?:0|-\d+)\b/i.test(cookie)
        if (!isExpired && kept.size < MAX_COOKIES) kept.set(name, value.trim())
      }
    },
    /** The `Cookie` header; undefined without cookies. */
    get header(): string | undefined {
      return kept.size === 0 ? undefined : [...kept].map(([name, value]) => `${name}=${value}`).join('; ')
    },
  }
}

export function createSend(link: Link, hasSession = () => true): Send {
  const { url, wire, userHeaders, timing, debug, isFinal, closing } = link
  let address = url
  const cookies = createCookies()
  const usesCookies = ({ isPersonal }: SendOptions) => !isPersonal || userHeaders !== undefined

  function sendOnce(sending: SendOptions): Promise<WireResponse> {
    const { method, headers, body, cancellations, isPersonal } = sending
    const isKept = usesCookies(sending) && (!link.sessionCookies || hasSession())
    const cookie = isKept ? cookies.header : undefined
    const named = userHeaders && !isPersonal ? { ...userHeaders(), ...headers } : headers
    const sent = cookie === undefined ? named : { ...named, cookie }
    return wire({ method, url: address, headers: sent, body }, [...cancellations, closing])
  }

  /** Keeps the cookies of a response. Returns true for a redirect, which changes the address. */
  function follow(response: WireResponse, sending: SendOptions, hops: number): boolean {
    if (usesCookies(sending) && response.setCookies.length > 0) cookies.keep(response.setCookies)
    const next = redirected(address, response)
    if (next === undefined) return false
    response.discard()
    if (hops === MAX_REDIRECTS)
      throw new RemoteError('refused', `${printableUrl(url)} redirects in a loop; check the URL`)
    address = next
    return true
  }

  return async sending => {
    const startedAt = performance.now()
    const retryTimeout = sending.retryTimeout ?? timing.retryTimeout
    let backOff: BackOff | undefined
    let mayRetry = sending.idempotent
    for (;;) {
      let failure: RemoteError
      let wait = 0
      try {
        let response = await sendOnce(sending)
        for (let hops = 0; follow(response, sending, hops); hops++) response = await sendOnce(sending)
        if (response.status !== 503 || retryTimeout === 0) return response
        response.discard()
        failure = refusalError(url, response)
        wait = retryAfter(response)
      } catch (error) {
        const isCancelled = closing.aborted || sending.cancellations.some(({ aborted }) => aborted)
        if (isCancelled || error instanceof RemoteError || isFinal(error)) throw error
        const sent = !wasNotSent(error)
        if (sent && !mayRetry) throw brokenError(url, error)
        if (sent) mayRetry = false
        failure = unreachableError(url, error)
        // The server closed an idle socket: a retry on the next socket can succeed at once.
        if (sent && retryTimeout === 0) continue
      }
      backOff ??= createBackOff(timing)
      const pause = Math.max(wait, backOff.pause)
      if (performance.now() + pause > startedAt + retryTimeout) throw failure
      debug(`${failure.message}; retrying`)
      await sleep(pause, ...sending.cancellations, closing)
    }
  }
}

/** Maximum timer delay in Node.js, milliseconds. */
const MAX_TIMER = 2 ** 31 - 1

/** Rejects when one of the cancellations aborts. */
export async function sleep(milliseconds: number, ...cancellations: readonly Cancellation[]): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  let abort: (reason: Error) => void = () => undefined
  try {
    await new Promise<void>((resolve, reject) => {
      abort = reject
      timer = setTimeout(resolve, Math.min(milliseconds, MAX_TIMER))
      for (const one of cancellations) one.add(abort)
    })
  } finally {
    clearTimeout(timer)
    for (const one of cancellations) one.remove(abort)
  }
}
