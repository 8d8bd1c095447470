// What a server of 2026-07-28 asks in its results, asked of an older client as requests of their own (basic/patterns/mrtr).
import { liveParams } from '../../../core/mcp/asks.ts'
import { isObject } from '../../../core/mcp/is-object.ts'
import { missingCapability, type Question } from '../../../core/mcp/question.ts'
import { Failure, type Fields, type Id, settleIn } from '../messages.ts'
import type { Opening } from './opening.ts'

/** Of one result, and those that wait for the client in all. */
const MAX_AT_ONCE = 100
const MAX_WAITING = 1_000

const METHODS: readonly unknown[] = ['elicitation/create', 'sampling/createMessage', 'roots/list'] satisfies Array<
  Question['method']
>

export interface Questions {
  /** The client's answers, by the keys of `inputRequests`. Rejects with a Failure where there is one that cannot be had. */
  answer(inputRequests: Fields, signal: AbortSignal): Promise<Fields>
  /** True for an answer to a question. */
  settle(message: Fields): boolean
  /** The client says nothing more. */
  end(): void
}

const wrong = (what: string) => new Failure('not translated', `the server asks ${what}`)

/** Throws a Failure for what the client cannot be asked. */
function readQuestion(asked: unknown, { clientCapabilities }: Opening): Question {
  const { method, params = {} } = isObject(asked) ? asked : {}
  if (!METHODS.includes(method) || !isObject(params)) throw wrong('something that no client can answer')
  const question = { method, params } as Question
  const missing = missingCapability(question, clientCapabilities)
  if (missing) throw wrong(`for ${method}, and this client does not declare ${JSON.stringify(missing)}`)
  return question
}

/** `tell` sends the client a message. */
export function createQuestions(opening: Opening, tell: (message: Fields) => void): Questions {
  const waiting = new Map<Id, (answer: Fields) => void>()
  const over = new AbortController()
  let count = 0

  async function ask(question: Question, signal: AbortSignal): Promise<unknown> {
    const any = AbortSignal.any([signal, over.signal])
    any.throwIfAborted()
    const id = `mcp-host-proxy-${++count}`
    const params = liveParams(question, opening.rules)
    const answer = await new Promise<Fields>((resolve, reject) => {
      const abort = () => {
        if (!waiting.delete(id)) return
        tell({ method: 'notifications/cancelled', params: { requestId: id, reason: 'the call is over' } })
        reject(any.reason)
      }
      waiting.set(id, given => {
        any.removeEventListener('abort', abort)
        resolve(given)
      })
      any.addEventListener('abort', abort, { once: true })
      tell({ id, method: question.method, ...(question.method !== 'roots/list' && { params }) })
    })
    if (answer['result'] !== undefined) return answer['result']
    const { message } = isObject(answer['error']) ? answer['error'] : {}
    throw new Failure(
      'not answered',
      `the client answered ${question.method} with an error, so the call was not sent again: ${String(message)}`,
    )
  }

  return {
    async answer(inputRequests, signal) {
      const asked = Object.entries(inputRequests)
      if (asked.length > MAX_AT_ONCE) throw wrong(`more than ${MAX_AT_ONCE} questions at once`)
      if (waiting.size + asked.length > MAX_WAITING) throw wrong(`when ${waiting.size} questions wait for the client`)
      const questions = asked.map(([key, one]) => [key, readQuestion(one, opening)] as const)
      // One that fails withdraws the others.
      const failed = new AbortController()
      const both = AbortSignal.any([signal, failed.signal])
      try {
        const answers = questions.map(async ([key, question]) => [key, await ask(question, both)] as const)
        return Object.fromEntries(await Promise.all(answers))
      } catch (thrown) {
        failed.abort(thrown)
        throw thrown
      }
    },
    settle: message => settleIn(waiting, message),
    end: () => over.abort(new Failure('not answered', 'the client ended before it answered what the server asked')),
  }
}
