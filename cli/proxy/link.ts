// What the parts of a relay have in common: the server's address, how it is reached, where its messages go, and how long
// is waited for it.
import { MAX_TIMER, tellUnreached } from '../../client/http.ts'
import { Failure } from './messages.ts'

/** Milliseconds, but for the bounds. */
export interface Timing {
  /** For a server that is not there: a message waits so long, then it is answered with an error. */
  readonly patience: number
  /** Between two tries: the first pause, and the longest. */
  readonly pause: number
  readonly longestPause: number
  /** For a stream that broke, to be had again. */
  readonly resumption: number
}

export const TIMING: Timing = { patience: 15_000, pause: 250, longestPause: 30_000, resumption: 120_000 }

export interface Link {
  readonly url: string
  /** Knows the login, and gets one where it has to. */
  readonly fetch: typeof fetch
  readonly timing: Timing
  /** Text of the server for the client: what it answers is not open any more. Resolves when the next may come. */
  hear(text: string): Promise<void>
  /** For whoever looks what the relay does. */
  note(what: string): void
  /** Aborts when the relay ends. */
  readonly signal: AbortSignal
}

/** Characters of one message of the server. */
export const MAX_MESSAGE = 64 * 1024 * 1024

/** Rejects with the reason of the first signal that aborts. */
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

/** A stream that lived so long was no failure, milliseconds. */
const SETTLED = 5_000

/** Pauses that grow, each a little different: many relays come back to one server. */
export function createBackOff({ pause, longestPause }: Timing) {
  let next = pause
  return {
    /** A stream ended that began at this time of `performance`. */
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

/** Of the request's own connection: nothing of it arrived. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Node's code for what `fetch` failed with, such as ECONNREFUSED. */
export function networkCode(thrown: unknown): string | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 6; error = error.cause, depth++) {
    const { code } = error as NodeJS.ErrnoException
    if (typeof code === 'string' && /^(?:E[A-Z_]+|UND_ERR_[A-Z_]+)$/.test(code)) return code
    const [first] = error instanceof AggregateError ? error.errors : []
    if (first instanceof Error && networkCode(first) !== undefined) return networkCode(first)
  }
  return undefined
}

export const wasNotSent = (thrown: unknown): boolean => NOT_SENT.has(networkCode(thrown) ?? '')

/** `thrown`: what `fetch` failed with. */
export function unreachable(url: string, thrown: unknown): Failure {
  const { what, fix } = tellUnreached(thrown, networkCode(thrown))
  return new Failure('unreachable', `${url} ${what}; ${fix}; the next request tries again`, { retryable: true })
}

/** The connection broke after the request was sent: nobody knows how far the server came. */
export const broken = (url: string): Failure =>
  new Failure(
    'connection lost',
    `the connection to ${url} broke before the answer came, and whether the request was carried out is not known; look before it is sent again`,
    { retryable: false },
  )
