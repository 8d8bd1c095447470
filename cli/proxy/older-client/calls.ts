// A request of an older client at the newer server: sent as often as the server asks something first, until it is answered.
import { isObject } from '../../../core/mcp/is-object.ts'
import type { LogLevel, ProgressToken } from '../../../core/mcp/protocol.ts'
import { createBackOff, sleep, type Timing } from '../link.ts'
import { Failure, type Fields, type Request } from '../messages.ts'
import { olderFailure, olderResult } from './older-answer.ts'
import { type Opening, speakFor } from './opening.ts'
import { failureOf, type Port } from './port.ts'
import type { Questions } from './questions.ts'

/** How often one request is sent again because the server asks something. */
const MAX_ROUNDS = 32

/** Methods whose results may ask (basic/patterns/mrtr, "Supported Requests"). */
const MAY_ASK: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

export interface CallParts {
  readonly port: Port
  readonly questions: Questions
  readonly timing: Timing
  logLevel(): LogLevel | undefined
}

const untold = (what: string) => new Failure('not translated', what)

const tokenOf = ({ params: { _meta } }: Request): ProgressToken | undefined => {
  const token = isObject(_meta) ? _meta['progressToken'] : undefined
  return typeof token === 'string' || typeof token === 'number' ? token : undefined
}

export function createCalls(opening: Opening, { port, questions, timing, logLevel }: CallParts) {
  /** How far each call was before it was sent again, and is: a request that begins anew must not go back. */
  const steps = new Map<ProgressToken, { floor: number; last: number }>()

  async function send(request: Request, more: Fields, signal: AbortSignal): Promise<Fields> {
    signal.throwIfAborted()
    const { method, params } = request
    const sent = port.request(method, speakFor(opening, { ...params, ...more }, logLevel()))
    const answer = await new Promise<Fields>((resolve, reject) => {
      const abort = () => {
        sent.cancel('the client cancelled the request')
        reject(signal.reason)
      }
      signal.addEventListener('abort', abort, { once: true })
      sent.answer.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
    })
    if (isObject(answer['error'])) throw olderFailure(failureOf(answer['error']), request, opening.rules)
    if (isObject(answer['result'])) return answer['result']
    throw untold(`the server answered ${method} with something that is no result`)
  }

  /** What the next round says beside the request; its state goes back as it came. */
  async function answersTo({ inputRequests, requestState }: Fields, pause: number, signal: AbortSignal) {
    const state = requestState === undefined ? {} : { requestState }
    if (inputRequests === undefined) {
      if (requestState === undefined) throw untold('the server asks for an answer, and not to what')
      // It wants to be asked later.
      await sleep(pause, signal)
      return state
    }
    if (!isObject(inputRequests)) throw untold('the server asks, and what it asks is no object')
    return { inputResponses: await questions.answer(inputRequests, signal), ...state }
  }

  async function carry(request: Request, signal: AbortSignal): Promise<Fields> {
    const { method } = request
    const backOff = createBackOff(timing)
    const token = tokenOf(request)
    const step = { floor: Number.NEGATIVE_INFINITY, last: Number.NEGATIVE_INFINITY }
    if (token !== undefined) steps.set(token, step)
    try {
      let more: Fields = {}
      for (let round = 0; round <= MAX_ROUNDS; round++) {
        const result = await send(request, more, signal)
        const { resultType = 'complete' } = result
        if (resultType === 'complete') return olderResult(method, result, opening.rules)
        if (resultType !== 'input_required' || !MAY_ASK.has(method)) {
          const kind = JSON.stringify(resultType)
          throw untold(
            `the server answered ${method} with a result of the kind ${kind}, which ${opening.revision} has not`,
          )
        }
        more = await answersTo(result, backOff.pause, signal)
        step.floor = step.last
      }
      throw untold(`the server asked more than ${MAX_ROUNDS} times before it answered ${method}`)
    } finally {
      if (token !== undefined) steps.delete(token)
    }
  }

  return {
    /** Resolves with the result that the client gets. Rejects with a Failure, or with the signal's reason. */
    carry,
    /** False for progress that the client was told before. */
    isAhead({ progressToken, progress }: Fields): boolean {
      const step = steps.get(progressToken as ProgressToken)
      if (!step || typeof progress !== 'number') return true
      if (progress <= step.floor) return false
      step.last = Math.max(step.last, progress)
      return true
    },
  }
}
