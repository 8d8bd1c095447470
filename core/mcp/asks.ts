// Questions that a handler asks its client: `elicit`, `sample`, `roots`. In 2026-07-28 they leave in the call's own
// result (`input_required`) and the handler runs again with the recorded answers (basic/patterns/mrtr).
import { randomUUID } from 'node:crypto'
import type { Clock } from '../http/clock.ts'
import { HostError } from '../http/errors.ts'
import { userKey } from '../kernel/user.ts'
import { type AskClient, type Call, notesOf } from './call.ts'
import type { CatalogItem } from './catalog.ts'
import { MAX_REPLAYED_BYTES, MAX_REPLAYED_QUESTIONS } from './client-limits.ts'
import { isObject } from './is-object.ts'
import type { ClientCapabilities, ElicitParams, JsonSchema, SampleParams } from './protocol.ts'
import { digest, openState, type RequestState, sealState } from './request-state.ts'
import { RESULT_TYPE } from './result-type.ts'
import type { RevisionRules } from './revisions.ts'
import { compileSchema } from './schema/schema.ts'
import { ToolError } from './tool-error.ts'
import { withoutNulls } from './without-nulls.ts'

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

/** For the record of an observed call. */
function noteQuestion(call: Call, { method }: Question): void {
  const asked = notesOf(call)?.asked
  if (asked && !asked.includes(method)) asked.push(method)
}

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
    noteQuestion(call, question)
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
  noteQuestion(call, question)
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

/** The questions of a session or task: each is a separate request, and the handler waits for the answer inside `run.waiting`. */
export const createLiveAsks = (
  askClient: AskClient,
  call: Call,
  signal: AbortSignal,
  run: { waiting<Answer>(ask: () => Promise<Answer>): Promise<Answer> },
): Asks => ({
  async ask(question, key) {
    demandCapability(call, question)
    return run.waiting(() => askLive(askClient, call, question, signal, key))
  },
})

/** A request of a handler to its client. */
export type Question =
  | { readonly method: 'elicitation/create'; readonly params: ElicitParams }
  | { readonly method: 'sampling/createMessage'; readonly params: SampleParams }
  | { readonly method: 'roots/list'; readonly params: Record<string, never> }

/** The capability that the client must declare for this question; undefined if it did. */
export function missingCapability(
  { method, params }: Question,
  has: ClientCapabilities,
): ClientCapabilities | undefined {
  if (method === 'roots/list') return has.roots ? undefined : { roots: {} }
  if (method === 'elicitation/create') {
    const mode = params.mode ?? 'form'
    const { elicitation } = has
    // An empty declaration means forms (client/elicitation, "Capabilities").
    const declared = elicitation && (mode === 'form' && !elicitation.url ? elicitation : elicitation[mode])
    return declared ? undefined : { elicitation: { [mode]: {} } }
  }
  const { sampling } = has
  const tools = (params.tools || params.toolChoice) && !sampling?.tools
  const context = params.includeContext && params.includeContext !== 'none' && !sampling?.context
  if (sampling && !tools && !context) return undefined
  return { sampling: { ...(tools && { tools: {} }), ...(context && { context: {} }) } }
}

/** A client's answer without the optional members that are null. */
export function readAnswer({ method }: Question, answer: unknown): unknown {
  if (!isObject(answer)) return answer
  const fields = withoutNulls(answer)
  const { content, roots } = fields
  if (method === 'elicitation/create' && isObject(content)) return { ...fields, content: withoutNulls(content) }
  if (method !== 'roots/list' || !Array.isArray(roots)) return fields
  return { ...fields, roots: roots.map(root => (isObject(root) ? withoutNulls(root) : root)) }
}

const isRoot = (root: unknown) =>
  isObject(root) && typeof root['uri'] === 'string' && ['string', 'undefined'].includes(typeof root['name'])

const isContentBlock = (block: unknown) => isObject(block) && typeof block['type'] === 'string'

/** Whether an answer is valid for the question and, for a form, for its schema. */
export async function isAnswer(question: Question, given: unknown): Promise<boolean> {
  const { method, params } = question
  const answer = readAnswer(question, given)
  if (!isObject(answer)) return false
  if (method === 'roots/list') {
    return Array.isArray(answer['roots']) && answer['roots'].every(isRoot)
  }
  if (method === 'sampling/createMessage') {
    const { model, role, content } = answer
    const blocks = Array.isArray(content) ? content : [content]
    return typeof model === 'string' && (role === 'user' || role === 'assistant') && blocks.every(isContentBlock)
  }
  if (answer['action'] === 'decline' || answer['action'] === 'cancel') return true
  if (answer['action'] !== 'accept') return false
  return params.mode === 'url' || (await fitsForm(params.requestedSchema, answer['content']))
}

async function fitsForm(schema: JsonSchema, content: unknown): Promise<boolean> {
  return (await compileSchema(schema, 'input').validate(content)).ok
}

/** What all runs of a call used together. */
export interface CallUsage {
  /** Milliseconds of CPU time. */
  cpuTime: number
}

/** The client's answers for a handler that runs again after each of them. */
export interface Replay {
  readonly answers: Map<string, { readonly question: string; readonly outcome: Promise<never> }>
  questions: number
  /** Bytes of the answers as JSON. */
  bytes: number
  /** The last reported progress, which must also increase across runs. */
  progress: number
  /** What the time limit leaves for further runs, milliseconds; undefined before the first run ends, or without a limit. */
  timeLeft: number | undefined
  readonly used: CallUsage
  /** Runs the handler again. */
  readonly again: () => unknown
}

/**
 * The questions of an isolated handler: its run ends with its questions, as in 2026-07-28, and `replay.again` runs it with the
 * answers. No thread is occupied while the client answers.
 */
export function createReplayedAsks(askClient: AskClient, call: Call, replay: Replay, interrupt: Interrupt): Asks {
  const used = new Set<string>()
  const keyFor = createKeys(key => used.has(key))
  let open: Array<{ readonly ask: () => Promise<unknown>; readonly reject: (reason: Error) => void }> = []

  function keep(answer: never): never {
    replay.bytes += Buffer.byteLength(JSON.stringify(answer))
    if (replay.bytes > MAX_REPLAYED_BYTES)
      throw new ToolError('The responses to the questions of this call are too large.')
    return answer
  }

  function leave() {
    if (open.length === 0) return
    const asked = open
    open = []
    interrupt(() =>
      Promise.allSettled(asked.map(({ ask }) => ask())).then(() => {
        call.signal.throwIfAborted()
        return replay.again()
      }),
    )
    for (const { reject } of asked) reject(new AwaitingInput())
  }

  async function ask(question: Question, given?: string): Promise<never> {
    demandCapability(call, question)
    const key = keyFor(question.method, given)
    used.add(key)
    const name = digest(question)
    const known = replay.answers.get(key)
    if (known?.question === name) return known.outcome
    if (++replay.questions > MAX_REPLAYED_QUESTIONS)
      throw new ToolError(`A call of an isolated tool asks at most ${MAX_REPLAYED_QUESTIONS} questions.`)
    return new Promise<never>((_, reject) => {
      const askClientNow = () => {
        const outcome = askLive(askClient, call, question, call.signal, given).then(keep)
        replay.answers.set(key, { question: name, outcome })
        return outcome
      }
      open.push({ ask: askClientNow, reject })
      // As in 2026-07-28, questions of the same turn are sent together.
      setImmediate(leave)
    })
  }

  return withHandledRejections(ask)
}
