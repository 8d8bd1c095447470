// What went wrong with Redis, and what whoever asked is told: 503 where Redis could not say, the error itself where
// it did. For connection.ts.
import { HostError } from '../../../core/index.ts'
import { isUnavailable } from '../../../core/transport.ts'
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
export const refusalOf = (thrown: unknown): string | undefined => explainRefusal(thrown)?.code

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
