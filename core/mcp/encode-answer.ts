// The answer to a Call as it is written: its result, with what the Call's revision wants on every result.
import { HostError } from '../http/errors.ts'
import type { Logger } from '../kernel/log.ts'
import type { Call } from './call.ts'
import { noteAnswer } from './call-notes.ts'
import { META } from './protocol.ts'
import { resultTypeOf } from './result-type.ts'
import { type EncodedAnswer, SerializedAnswer, SerializedResult } from './wire.ts'

/** Throws a TypeError for a result that JSON cannot hold. */
function encodeResult(call: Call, result: object): EncodedAnswer {
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(call.id)},"result":`
  if (result instanceof SerializedResult) return new SerializedAnswer(head, result)
  return `${head}${call.modern ? encodeModern(call, result) : JSON.stringify(result)}}`
}

/** The answer to a Call. What JSON cannot hold is a failure of its handler, as a throw is: logged, told as `internal`. */
export function encodeAnswer({ log }: { readonly log: Logger }, call: Call, result: object): EncodedAnswer {
  try {
    const answer = encodeResult(call, result)
    noteAnswer(call, answer)
    return answer
  } catch (err) {
    log.error({ err, method: call.method, route: call.offer.route.path }, 'a result cannot be written as JSON')
    throw new HostError('internal', { cause: err }).within200()
  }
}

/**
 * With what 2026-07-28 wants on every result (basic, "ResultType" and "Per-response protocol fields"): written around the JSON
 * of one that has none of it. Putting the objects together first took half as long again.
 */
function encodeModern(call: Call, result: object): string {
  const isPlain = !('_meta' in result || 'resultType' in result || 'toJSON' in result || Array.isArray(result))
  if (!isPlain || resultTypeOf(result)) return JSON.stringify(modernResult(call, result))
  const json = JSON.stringify(result)
  // Of an object that stands for something else, such as `new String`, it is no object.
  if (json[0] !== '{') return JSON.stringify(modernResult(call, result))
  const members = json.slice(1, -1)
  return `{"resultType":"complete",${members}${members === '' ? '' : ','}"_meta":${call.view.metaJson}}`
}

function modernResult({ view }: Call, result: object): object {
  const { _meta, resultType: _, ...rest } = result as { _meta?: object; resultType?: string }
  return {
    resultType: resultTypeOf(result)?.name ?? 'complete',
    ...rest,
    _meta: { ..._meta, [META.serverInfo]: view.serverInfo },
  }
}
