// What plugins are told of each Call when it is over. Outermost of its way (core/mcp/dispatch.ts), below every transport.
import { blamed } from '../http/describe-thrown.ts'
import { HostError } from '../http/errors.ts'
import type { Logger } from '../kernel/log.ts'
import type { Call } from './call.ts'

/** A Call that is over. */
export interface CallRecord {
  readonly call: Call
  /**
   * `tool_error`: a tool's own failure, a result with `isError`. `error`: refused or failed. `cancelled`: nobody waits for
   * the answer any more, whatever it was.
   */
  readonly outcome: 'ok' | 'tool_error' | 'error' | 'cancelled'
  /** What the client is told, where `outcome` is `error`; its `cause` is what was thrown, for the log alone. */
  readonly error: HostError | undefined
  /** From when the transport handed it over, to when its answer or error was there. */
  readonly milliseconds: number
}

/** What it throws, or rejects with, is logged, and nobody waits for it. */
export type Observer = (record: CallRecord) => void | Promise<void>

function outcomeOf(call: Call, result: object | undefined): CallRecord['outcome'] {
  if (call.signal.aborted) return 'cancelled'
  if (!result) return 'error'
  return 'isError' in result && result.isError === true ? 'tool_error' : 'ok'
}

async function tell(observer: Observer, record: CallRecord, log: Logger) {
  try {
    await observer(record)
  } catch (err) {
    log.error({ err, ...blamed(err), method: record.call.method }, 'an observer failed')
  }
}

/** Answers as `answer` does, and tells the observers. */
export function observed(
  answer: (call: Call) => Promise<object>,
  observers: readonly Observer[],
  log: Logger,
): (call: Call) => Promise<object> {
  return async call => {
    const begun = performance.now()
    let result: object | undefined
    let thrown: unknown
    try {
      result = await answer(call)
      return result
    } catch (error) {
      thrown = error
      throw error
    } finally {
      const outcome = outcomeOf(call, result)
      const error = outcome === 'error' && HostError.is(thrown) ? thrown : undefined
      const record = { call, outcome, error, milliseconds: performance.now() - begun }
      for (const observer of observers) void tell(observer, record, log)
    }
  }
}
