// The answer to a Call as text: its result, with what the Call's revision wants on every result.
import { HostError } from '../http/errors.ts'
import type { Logger } from '../kernel/log.ts'
import type { Call } from './call.ts'
import { noteAnswer } from './call-notes.ts'
import { META } from './protocol.ts'
import { resultTypeOf } from './result-type.ts'
import { SerializedResult } from './wire.ts'

/** Throws a TypeError for a result that JSON cannot hold. */
function encodeResult(call: Call, result: object): string {
  const id = JSON.stringify(call.id)
  if (result instanceof SerializedResult) return `{"jsonrpc":"2.0","id":${id},"result":${result.json}}`
  return `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(call.modern ? modernResult(call, result) : result)}}`
}

/** The answer to a Call. What JSON cannot hold is a failure of its handler, as a throw is: logged, told as `internal`. */
export function encodeAnswer({ log }: { readonly log: Logger }, call: Call, result: object): string {
  try {
    const text = encodeResult(call, result)
    noteAnswer(call, text)
    return text
  } catch (err) {
    log.error({ err, method: call.method, route: call.offer.route.path }, 'a result cannot be written as JSON')
    throw new HostError('internal', { cause: err }).within200()
  }
}

/** What 2026-07-28 wants on every result (basic, "ResultType" and "Per-response protocol fields"). */
function modernResult({ view }: Call, result: object): object {
  const { _meta, resultType: _, ...rest } = result as { _meta?: object; resultType?: string }
  return {
    resultType: resultTypeOf(result)?.name ?? 'complete',
    ...rest,
    _meta: { ..._meta, [META.serverInfo]: view.serverInfo },
  }
}
