// Errors of Redis commands, time-outs, and the 503 that clients receive.
import { HostError } from '../../../core/index.ts'
import { isUnavailable, withTimeout } from '../../../core/transport.ts'
import { explainRefusal } from './refusals.ts'

/** Seconds. */
const RETRY_AFTER = '2'

const CLIENT_MESSAGE = /client is (?:closed|offline)|Disconnects client|[Ss]ocket|Connection timeout|root nodes/

/** Redis did not answer in time: nobody knows whether it did what it was asked. */
export class RedisTimeout extends Error {
  constructor(timeout: number) {
    super(`Redis did not answer within ${timeout} ms`)
    this.name = 'RedisTimeout'
  }
}

/** A word for a reply that means "not now" or "not as this user", such as `OOM`; undefined for any other failure. */
const refusalOf = (thrown: unknown): string | undefined => explainRefusal(thrown)?.code

/** The connection broke, or there was none: nobody knows whether Redis did what it was asked. */
export function isDisconnection(thrown: unknown): boolean {
  if (thrown instanceof RedisTimeout) return true
  if (!(thrown instanceof Error)) return false
  return typeof (thrown as NodeJS.ErrnoException).code === 'string' || CLIENT_MESSAGE.test(thrown.message)
}

/** Of these, what passes by itself, and soon. */
const SOON: ReadonlySet<string> = new Set(['BUSY', 'CLUSTERDOWN', 'LOADING', 'MASTERDOWN', 'READONLY', 'TRYAGAIN'])

/** True for what `run` threw where asking again within the same time may help: the answer was lost, or was "not yet". */
export function isMomentary(thrown: unknown): boolean {
  if (!isUnavailable(thrown)) return false
  const { cause } = thrown as Error
  const refusal = refusalOf(cause)
  return refusal === undefined ? !(cause instanceof RedisTimeout) : SOON.has(refusal)
}

/** What a client is told while Redis cannot be asked. The cause is for the log. */
export const unavailable = (cause: unknown): HostError =>
  new HostError('unavailable', {
    detail: 'what this server keeps for its sessions cannot be reached; try again',
    headers: { 'Retry-After': RETRY_AFTER },
    cause,
  })

/** Something that happens once, and what it brings. */
interface Occurrence<Value> {
  readonly happened: Promise<Value>
  happen(value: Value): void
}

export function createOccurrence<Value>(): Occurrence<Value> {
  let happen: (value: Value) => void = () => undefined
  const happened = new Promise<Value>(resolve => {
    happen = resolve
  })
  return { happened, happen: value => happen(value) }
}

/** Resolves with the value of the promise; rejects with a RedisTimeout after this many milliseconds. */
export const within = <Value>(promise: Promise<Value>, milliseconds: number): Promise<Value> =>
  withTimeout(promise, milliseconds, () => {
    throw new RedisTimeout(Math.round(milliseconds))
  })
