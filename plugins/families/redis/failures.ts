// Errors of Redis commands, time-outs, and the 503 that clients receive.
import { HostError } from '../../../core/index.ts'
import { isUnavailable, withTimeout } from '../../../core/transport.ts'
import { explainRefusal } from './refusals.ts'

/** Seconds. */
const RETRY_AFTER = '2'

const CLIENT_MESSAGE = /client is (?:closed|offline)|Disconnects client|[Ss]ocket|Connection timeout|root nodes/

/** Redis did not respond in time: the command may have been executed. */
export class RedisTimeout extends Error {
  constructor(timeout: number) {
    super(`Redis did not answer within ${timeout} ms`)
    this.name = 'RedisTimeout'
  }
}

const refusalOf = (thrown: unknown): string | undefined => explainRefusal(thrown)?.code

/** The connection failed: the command may have been executed. */
export function isDisconnection(thrown: unknown): boolean {
  if (thrown instanceof RedisTimeout) return true
  if (!(thrown instanceof Error)) return false
  return typeof (thrown as NodeJS.ErrnoException).code === 'string' || CLIENT_MESSAGE.test(thrown.message)
}

const SOON: ReadonlySet<string> = new Set(['BUSY', 'CLUSTERDOWN', 'LOADING', 'MASTERDOWN', 'READONLY', 'TRYAGAIN'])

export function isMomentary(thrown: unknown): boolean {
  if (!isUnavailable(thrown)) return false
  const { cause } = thrown as Error
  const refusal = refusalOf(cause)
  return refusal === undefined ? !(cause instanceof RedisTimeout) : SOON.has(refusal)
}

export const unavailable = (cause: unknown): HostError =>
  new HostError('unavailable', {
    detail: 'what this server keeps for its sessions cannot be reached; try again',
    headers: { 'Retry-After': RETRY_AFTER },
    cause,
  })

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

/** Rejects with a RedisTimeout. After a blocked event loop, a response that has already arrived is still accepted. */
export const within = <Value>(promise: Promise<Value>, milliseconds: number): Promise<Value> =>
  withTimeout(promise, milliseconds, () => {
    throw new RedisTimeout(Math.round(milliseconds))
  })
