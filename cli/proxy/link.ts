// Sends messages of the relay to the server: retries, time limits, and errors for the client.
import { readCue } from '../../client/challenge.ts'
import { AuthError } from '../../client/errors.ts'
import { MAX_TIMER, readBody, tellUnreached } from '../../client/http.ts'
import { printable, printableUrl } from '../../client/text.ts'
import { isObject } from '../../core/mcp/is-object.ts'
import { shellWord } from '../text.ts'
import { JSON_TYPE, SSE_TYPE } from './headers.ts'
import { type Exchange, Failure, type Fields, readMessages } from './messages.ts'

/** Durations in milliseconds. */
export interface Timing {
  /** How long a message waits for an unreachable server before its error response. */
  readonly patience: number
  readonly pause: number
  readonly longestPause: number
  /** Time limit for resuming a broken stream. */
  readonly resumption: number
}

export const TIMING: Timing = { patience: 15_000, pause: 250, longestPause: 30_000, resumption: 120_000 }

export interface Remote {
  /** Resolves when all requests have responses. Rejects with the error for the remaining ones. */
  carry(exchange: Exchange): Promise<void>
  leave(signal: AbortSignal): Promise<void>
}

export interface Link {
  readonly url: string
  readonly fetch: typeof fetch
  readonly timing: Timing
  /** Passes a server message to the client and marks its request as done. Resolves when the next message can be passed. */
  hear(text: string): Promise<void>
  note(what: string): void
  readonly signal: AbortSignal
}

export const MAX_MESSAGE = 64 * 1024 * 1024

export function sleep(milliseconds: number, ...signals: AbortSignal[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const any = AbortSignal.any(signals)
    if (any.aborted) return reject(any.reason)
    const abort = () => {
      clearTimeout(timer)
      reject(any.reason)
    }
    const timer = setTimeout(
      () => {
        any.removeEventListener('abort', abort)
        resolve()
      },
      Math.min(milliseconds, MAX_TIMER),
    )
    any.addEventListener('abort', abort, { once: true })
  })
}

/** A stream that was open this long resets the retry delay, milliseconds. */
const SETTLED = 5_000

/** Exponential back-off with jitter, because many relays reconnect to the same server. */
export function createBackOff({ pause, longestPause }: Timing) {
  let next = pause
  return {
    ended(begun: number) {
      if (performance.now() - begun > SETTLED) next = pause
    },
    get pause() {
      const now = next
      next = Math.min(next * 2, longestPause)
      return now * (0.75 + Math.random() / 2)
    },
    reset() {
      next = pause
    },
  }
}

/** Errors of a request that was never sent. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

export function networkCode(thrown: unknown): string | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 6; error = error.cause, depth++) {
    const { code } = error as NodeJS.ErrnoException
    if (typeof code === 'string' && /^(?:E[A-Z_]+|UND_ERR_[A-Z_]+)$/.test(code)) return code
    const [first] = error instanceof AggregateError ? error.errors : []
    if (first instanceof Error && networkCode(first) !== undefined) return networkCode(first)
  }
  return undefined
}

const wasNotSent = (thrown: unknown): boolean => NOT_SENT.has(networkCode(thrown) ?? '')

export function unreachable(url: string, thrown: unknown): Failure {
  const { what, fix } = tellUnreached(thrown, networkCode(thrown))
  return new Failure('unreachable', `${url} ${what}; ${fix}; the next request tries again`, { retryable: true })
}

/** The connection broke after the request was sent, so the outcome is unknown. */
export const broken = (url: string): Failure =>
  new Failure(
    'connection lost',
    `the connection to ${url} broke before the answer came, and whether the request was carried out is not known; look before it is sent again`,
    { retryable: false },
  )

const typeOf = ({ headers }: Response) => headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()

export const isStream = (response: Response): boolean => response.ok && typeOf(response) === SSE_TYPE

/** The text of a JSON response; undefined for other types. Rejects if it is too large or incomplete. */
export async function readJson(response: Response): Promise<string | undefined> {
  if (typeOf(response) !== JSON_TYPE) {
    await response.body?.cancel().catch(() => undefined)
    return undefined
  }
  const { bytes, cut } = await readBody(response, MAX_MESSAGE)
  if (cut) throw new Failure('too large', `an answer of the server is larger than ${MAX_MESSAGE} bytes`)
  return new TextDecoder().decode(bytes)
}

export function errorIn(text: string | undefined): Fields | undefined {
  const [message] = text === undefined ? [] : readMessages(text)
  return isObject(message?.['error']) ? (message['error'] as Fields) : undefined
}

/** Error codes that identify a server of 2026-07-28, whatever the HTTP status. */
const MODERN_CODES: readonly unknown[] = [-32_020, -32_021, -32_022, -32_601]

/** True for a refusal after which a legacy transport is tried ("Backward Compatibility"). */
export const mayBeOlder = (status: number, text: string | undefined): boolean =>
  status >= 400 &&
  status < 500 &&
  ![401, 403, 408, 429].includes(status) &&
  !MODERN_CODES.includes(errorIn(text)?.['code'])

/** True if the server does not know the session; some servers use 400. The message was not processed. */
export function isSessionLost(status: number, text: string | undefined): boolean {
  if (status === 404) return errorIn(text)?.['code'] !== -32_601
  return status === 400 && /session|not initialized/i.test(String(errorIn(text)?.['message'] ?? ''))
}

export function refusal(url: string, status: number): Failure {
  const why: Readonly<Record<number, string>> = {
    401: 'asks for a login',
    403: 'does not let this caller do that',
    404: 'serves nothing at this path; check it',
    405: 'is no MCP endpoint of a kind that this client knows; check the path',
    413: 'does not take a message of that size',
    429: 'is asked too often; wait before the next request',
  }
  const said = why[status] ?? (status >= 500 ? 'failed; try again, or see its log' : 'refused the message')
  return new Failure('refused', printable(`${url} ${said} (HTTP ${status})`), {
    status,
    retryable: status >= 500 || status === 429,
  })
}

export const SCOPE_NEEDED = 'scope needed'

export function explainRefusal(url: string, response: Response, text: string | undefined): Failure {
  const { status } = response
  const said = errorIn(text)
  const cue = status === 403 ? readScope(response) : undefined
  if (cue)
    return new Failure(
      SCOPE_NEEDED,
      `${url} wants the scope ${cue} for this; get it with: ${[`mcp-host login ${shellWord(url)}`, ...cue.split(' ').map(shellWord)].join(' --add-scope ')}`,
      { status },
    )
  if (!said || typeof said['message'] !== 'string' || typeof said['code'] !== 'number') return refusal(url, status)
  return Object.assign(
    new Failure('refused', said['message'], { code: said['code'], status }),
    said['data'] === undefined ? {} : { data: said['data'] as Fields },
  )
}

function readScope(response: Response): string | undefined {
  try {
    return readCue(response)?.scope?.join(' ')
  } catch (error) {
    if (AuthError.is(error)) return undefined
    throw error
  }
}

interface Sending {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** True if the message can safely be sent twice. */
  readonly harmless: boolean
  readonly signal: AbortSignal
  readonly patience?: number
}

export type Send = (sending: Sending) => Promise<Response>

const MAX_REDIRECTS = 5

/** Only within the same origin, so that the user's headers are not sent elsewhere. */
function redirected(from: string, response: Response): string | undefined {
  const { status, headers } = response
  const location = headers.get('location')
  if (status < 300 || status >= 400 || location === null || !URL.canParse(location, from)) return undefined
  const to = new URL(location, from)
  if (to.origin === new URL(from).origin && (status === 307 || status === 308)) return to.href
  throw new Failure(
    'redirected',
    `${printableUrl(from)} redirects to ${printableUrl(to)}; give that address, if it is the server that is meant`,
  )
}

function retryAfter({ headers }: Response): number {
  const seconds = Number(headers.get('retry-after') ?? 0)
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), 30) * 1_000 : 0
}

export function createSend({ url, fetch, timing, note, signal: over }: Link): Send {
  let address = url

  async function once({ method, headers, body, signal }: Sending): Promise<Response> {
    const all = AbortSignal.any([signal, over])
    for (let hops = 0; ; hops++) {
      const init = { method, headers, redirect: 'manual', signal: all, ...(body !== undefined && { body }) } as const
      const response = await fetch(address, init)
      const next = redirected(address, response)
      if (next === undefined) return response
      await response.body?.cancel()
      if (hops === MAX_REDIRECTS)
        throw new Failure('redirected', `${printableUrl(url)} redirects in a circle; check the address`)
      address = next
    }
  }

  return async sending => {
    const until = performance.now() + (sending.patience ?? timing.patience)
    const backOff = createBackOff(timing)
    let again = sending.harmless
    for (;;) {
      let failure: Failure
      let wait = 0
      try {
        const response = await once(sending)
        if (response.status !== 503) return response
        await response.body?.cancel()
        failure = refusal(url, 503)
        wait = retryAfter(response)
      } catch (error) {
        if (sending.signal.aborted || over.aborted || error instanceof Failure || AuthError.is(error)) throw error
        const sent = !wasNotSent(error)
        if (sent && !again) throw Object.assign(broken(url), { cause: error })
        if (sent) again = false
        failure = Object.assign(unreachable(url, error), { cause: error })
      }
      const pause = Math.max(wait, backOff.pause)
      if (performance.now() + pause > until) throw failure
      note(`${failure.message}; trying again`)
      await sleep(pause, sending.signal, over)
    }
  }
}
