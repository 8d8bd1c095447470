// Questions that a handler asks its client: `elicit`, `sample`, `roots`. In 2026-07-28 they leave in the call's own
// result (`input_required`) and the handler runs again with the recorded answers (basic/patterns/mrtr).
import { randomUUID } from 'node:crypto'
import type { Clock } from '../http/clock.ts'
import { HostError } from '../http/errors.ts'
import { userKey } from '../kernel/user.ts'
import type { AskClient, Call } from './call.ts'
import { noteQuestion } from './call-notes.ts'
import type { CatalogItem } from './catalog.ts'
import { isObject } from './is-object.ts'
import type { ClientCapabilities } from './protocol.ts'
import { isAnswer, missingCapability, type Question, readAnswer } from './question.ts'
import { digest, openState, type RequestState, sealState } from './request-state.ts'
import type { RevisionRules } from './revisions.ts'
import { ToolError } from './tool-error.ts'
import { RESULT_TYPE } from './typed-result.ts'

const NAMES = { 'elicitation/create': 'elicit', 'sampling/createMessage': 'sample', 'roots/list': 'roots' } as const

const INPUT_REQUIRED = { name: 'input_required' }

/** Stops a handler whose questions are being sent; the handler will run again. */
export class AwaitingInput extends Error {
  constructor() {
    super('waiting for the client to answer; the handler runs again with the answer')
    this.name = 'AwaitingInput'
  }
}

/** Names each question of a run: by the key from the handler, or by kind and number. */
export function createKeys(isTaken: (key: string) => boolean) {
  const ordinals: Record<string, number> = {}
  return (method: Question['method'], given: string | undefined): string => {
    const name = NAMES[method]
    const ordinal = (ordinals[name] ?? 0) + 1
    ordinals[name] = ordinal
    const key = given ?? `${name}-${ordinal}`
    if (isTaken(key)) throw new TypeError(`two asks of one call have the key "${key}"`)
    return key
  }
}

export interface Asks {
  /** Resolves with the recorded answer, or rejects once the question is being sent. */
  ask(question: Question, key?: string): Promise<never>
}

/** A handler may ignore the promise of a question. Its rejection is then no unhandled rejection. */
export const withHandledRejections = (ask: Asks['ask']): Asks => ({
  ask(question, key) {
    const answer = ask(question, key)
    answer.catch(() => undefined)
    return answer
  },
})

/** Ends the run with this result. `result` is called only if the run has not ended. */
export type Interrupt = (result: () => Promise<unknown>) => void

interface Bindings {
  readonly keys: readonly Buffer[]
  readonly clock: Clock
  readonly interrupt: Interrupt
}

/** The request data that a sealed state is bound to: only a retry of this request by this caller can open it. */
function bindingOf(call: Call, item: CatalogItem): string {
  const { user, method, params, offer } = call
  const caller = user ? userKey(user) : 'anonymous'
  const subject = params['arguments'] ?? params['uri'] ?? null
  return JSON.stringify([caller, offer.route.path, offer.params, method, item.key, digest(subject), item.digest])
}

/** The questions of one run of a handler. Throws `invalidParams` for the `requestState` of another request. */
export function createAsks(call: Call, item: CatalogItem, { keys, clock, interrupt }: Bindings): Asks {
  const { requestState, inputResponses } = call.params
  const binding = bindingOf(call, item)
  const earlier: RequestState = requestState === undefined ? {} : openState(requestState, binding, keys, clock.now())
  const responses = isObject(inputResponses) ? inputResponses : {}
  const recorded: Record<string, RequestState[string]> = {}
  const keyFor = createKeys(key => Object.hasOwn(recorded, key))
  const open = new Map<string, { question: Question; reject: (reason: Error) => void }>()
  // Without a state it is unknown which question a response answers, so responses count for the first round only.
  let firstRound = requestState === undefined
  const lacking: ClientCapabilities = {}
  let failure: HostError | undefined

  const own = (record: object, key: string) => (Object.hasOwn(record, key) ? (record as RequestState)[key] : undefined)

  async function answerTo(key: string, question: Question, name: string): Promise<unknown> {
    const before = own(earlier, key)
    const same = before?.question === name
    if (same && before.answer !== undefined) return before.answer
    const response = readAnswer(question, own(responses, key))
    return (same || firstRound) && (await isAnswer(question, response)) ? response : undefined
  }

  function leave() {
    if (open.size === 0) return
    const questions = [...open].map(([key, { question }]) => [key, question] as const)
    interrupt(() => inputRequired(questions))
    for (const { reject } of open.values()) reject(failure ?? new AwaitingInput())
    open.clear()
  }

  async function inputRequired(questions: ReadonlyArray<readonly [string, Question]>): Promise<object> {
    if (failure) throw failure
    const [key] = keys
    if (!key) throw new Error('no key to seal requestState with')
    return {
      [RESULT_TYPE]: INPUT_REQUIRED,
      inputRequests: Object.fromEntries(questions),
      requestState: sealState(recorded, binding, key, clock.now()),
    }
  }

  async function ask(question: Question, given?: string): Promise<never> {
    const key = keyFor(question.method, given)
    noteQuestion(call, question.method)
    const missing = missingCapability(question, call.client.capabilities)
    if (missing) {
      Object.assign(lacking, missing)
      failure = new HostError('missingCapability', {
        detail: `${call.method} "${item.key}" needs ${Object.keys(lacking).join(', ')}`,
        data: { requiredCapabilities: { ...lacking } },
      })
    }
    const name = digest(question)
    recorded[key] = { question: name }
    const answer = missing ? undefined : await answerTo(key, question, name)
    if (answer !== undefined) {
      recorded[key] = { question: name, answer }
      firstRound = false
      return answer as never
    }
    return new Promise<never>((_, reject) => {
      open.set(key, { question, reject })
      // Questions that start in the same turn of the event loop are sent together.
      setImmediate(leave)
    })
  }

  return withHandledRejections(ask)
}

/** The parameters of a question that is sent as a separate request. */
export const liveParams = ({ method, params }: Question, { elicitationIds }: RevisionRules): object =>
  elicitationIds && method === 'elicitation/create' && params.mode === 'url'
    ? { elicitationId: randomUUID(), ...params }
    : params

/** For sessions and tasks, which send questions while the handler runs. Throws a ToolError if the client cannot answer. */
export function demandCapability(call: Call, question: Question) {
  noteQuestion(call, question.method)
  const missing = missingCapability(question, call.client.capabilities)
  if (missing) throw new ToolError(`This needs a client that declares ${JSON.stringify(missing)}.`)
}

/** Throws a ToolError if the answer does not fit the question. */
export async function askLive(
  askClient: AskClient,
  { rules }: Call,
  question: Question,
  signal: AbortSignal,
  key?: string,
) {
  const answer = readAnswer(question, await askClient.ask(question.method, liveParams(question, rules), signal, key))
  if (!(await isAnswer(question, answer))) throw new ToolError('The client answered something else than was asked.')
  return answer as never
}

/** The questions of a session or task: each is a separate request, and the handler waits for the answer inside `waiting`. */
export const createLiveAsks = (
  askClient: AskClient,
  call: Call,
  signal: AbortSignal,
  waiting: <Answer>(ask: () => Promise<Answer>) => Promise<Answer>,
): Asks => ({
  async ask(question, key) {
    demandCapability(call, question)
    return waiting(() => askLive(askClient, call, question, signal, key))
  },
})
