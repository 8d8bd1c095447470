// Requests of a handler to its client: elicitation, sampling and roots (2026-07-28 basic/patterns/mrtr).
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../http/clock.ts'
import { HostError } from '../../http/errors.ts'
import { userKey } from '../../kernel/user.ts'
import { MAX_REPLAYED_BYTES, MAX_REPLAYED_REQUESTS } from '../client-limits.ts'
import type { CatalogItem } from '../definitions/catalog.ts'
import { ToolError } from '../definitions/tool-error.ts'
import { compileSchema } from '../schema/schema.ts'
import { isObject, RESULT_TYPE, withoutNulls } from '../wire/message.ts'
import type { ClientCapabilities } from '../wire/protocol.ts'
import type { RevisionRules } from '../wire/revisions.ts'
import type { Call, RequestSender } from './call.ts'
import { digest, type InputRequest, openState, type RequestState, sealState } from './request-state.ts'

/** The member of the handler context for each client request. */
export const REQUEST_NAMES = {
  'elicitation/create': 'elicit',
  'sampling/createMessage': 'sample',
  'roots/list': 'roots',
} as const

const INPUT_REQUIRED = { name: 'input_required' }

/** Stops a handler while its requests are sent. The handler runs again with the responses. */
export class AwaitingInput extends Error {
  constructor() {
    super('waiting for a response from the client; then the handler runs again')
    this.name = 'AwaitingInput'
  }
}

function createKeys() {
  const ordinals: Record<string, number> = {}
  const taken = new Set<string>()
  return (method: InputRequest['method'], explicitKey: string | undefined): string => {
    const name = REQUEST_NAMES[method]
    const ordinal = (ordinals[name] ?? 0) + 1
    ordinals[name] = ordinal
    const key = explicitKey ?? `${name}-${ordinal}`
    if (taken.has(key)) throw new TypeError(`two requests of one call have the key "${key}"`)
    taken.add(key)
    return key
  }
}

export interface ClientRequester {
  request(request: InputRequest, key?: string): Promise<never>
}

/** Handlers can ignore the promise. Its rejection then must not end the process. */
const withHandledRejections = (send: ClientRequester['request']): ClientRequester => ({
  request(request, key) {
    const response = send(request, key)
    response.catch(() => undefined)
    return response
  },
})

export type Interrupt = (result: () => Promise<unknown>) => void

/** Sends the requests of one event loop turn together, and stops their handler. */
function createRound<Request>(
  interrupt: Interrupt,
  send: (requests: readonly Request[]) => Promise<unknown>,
  failure: () => Error | undefined = () => undefined,
) {
  const open: Array<{ readonly request: Request; readonly reject: (reason: Error) => void }> = []
  function sendOpen() {
    const sent = open.splice(0)
    if (sent.length === 0) return
    interrupt(() => send(sent.map(({ request }) => request)))
    for (const { reject } of sent) reject(failure() ?? new AwaitingInput())
  }
  return (request: Request) =>
    new Promise<never>((_, reject) => {
      open.push({ request, reject })
      setImmediate(sendOpen)
    })
}

export function recordMethod(call: Call, { method }: InputRequest): void {
  const { asked = [] } = call.notes
  if (!asked.includes(method)) call.notes.asked = [...asked, method]
}

export interface Bindings {
  readonly earlier: RequestState | undefined
  readonly keys: readonly Buffer[]
  readonly clock: Clock
  readonly interrupt: Interrupt
}

/** Binds a sealed state: only a retry of this request by this caller can open it. */
export function bindingOf(call: Call, item: CatalogItem): string {
  const { user, method, params, offer } = call
  const caller = user ? userKey(user) : 'anonymous'
  const subject = params['arguments'] ?? params['uri'] ?? null
  return JSON.stringify([caller, offer.route.path, offer.params, method, item.key, digest(subject), item.digest])
}

/** Throws `invalidParams` for a state that is invalid or belongs to another request. */
export const openCallState = (call: Call, item: CatalogItem, { keys, clock }: Pick<Bindings, 'keys' | 'clock'>) =>
  openState(call.params['requestState'], bindingOf(call, item), keys, clock.now())

export const inputRequired = (inputRequests: object, requestState: string): object => ({
  [RESULT_TYPE]: INPUT_REQUIRED,
  inputRequests,
  requestState,
})

export function createStatelessRequester(
  call: Call,
  item: CatalogItem,
  { earlier = {}, keys, clock, interrupt }: Bindings,
): ClientRequester {
  const { requestState, inputResponses } = call.params
  const binding = bindingOf(call, item)
  const responses = isObject(inputResponses) ? inputResponses : {}
  const recorded: Record<string, RequestState[string]> = {}
  const keyFor = createKeys()
  // Without a state, responses can only belong to the first round.
  let firstRound = requestState === undefined
  const lacking: ClientCapabilities = {}
  let failure: HostError | undefined

  const own = (record: object, key: string) => (Object.hasOwn(record, key) ? (record as RequestState)[key] : undefined)

  async function findResponse(key: string, request: InputRequest, name: string): Promise<unknown> {
    const before = own(earlier, key)
    const same = before?.question === name
    if (same && before.answer !== undefined) return before.answer
    const response = parseResponse(request, own(responses, key))
    return (same || firstRound) && (await isValidResponse(request, response)) ? response : undefined
  }

  async function sealRequests(requests: ReadonlyArray<readonly [string, InputRequest]>): Promise<object> {
    if (failure) throw failure
    const [key] = keys
    if (!key) throw new Error('no key to encrypt requestState')
    return inputRequired(Object.fromEntries(requests), sealState({ asked: recorded }, binding, key, clock.now()))
  }

  const sendInRound = createRound(interrupt, sealRequests, () => failure)

  async function send(request: InputRequest, explicitKey?: string): Promise<never> {
    const key = keyFor(request.method, explicitKey)
    recordMethod(call, request)
    const missing = missingCapability(request, call.client.capabilities)
    if (missing) failure = capabilityError(call, item, addCapabilities(lacking, missing))
    const name = digest(request)
    recorded[key] = { question: name }
    const response = missing ? undefined : await findResponse(key, request, name)
    if (response !== undefined) {
      recorded[key] = { question: name, answer: response }
      firstRound = false
      return response as never
    }
    return sendInRound([key, request])
  }

  return withHandledRejections(send)
}

/** Adds to `lacking`; one capability can lack several members. */
export function addCapabilities(lacking: ClientCapabilities, missing: ClientCapabilities = {}): ClientCapabilities {
  for (const [name, members] of Object.entries(missing))
    Object.assign(lacking, { [name]: { ...lacking[name as keyof ClientCapabilities], ...members } })
  return lacking
}

export const capabilityError = (call: Call, item: CatalogItem, lacking: ClientCapabilities): HostError =>
  new HostError('missingCapability', {
    detail: `${call.method} "${item.key}" needs ${Object.keys(lacking).join(', ')}`,
    data: { requiredCapabilities: structuredClone(lacking) },
  })

const liveParams = ({ method, params }: InputRequest, { elicitationIds }: RevisionRules): object =>
  elicitationIds && method === 'elicitation/create' && params.mode === 'url'
    ? { elicitationId: randomUUID(), ...params }
    : params

export function requireCapability(call: Call, request: InputRequest) {
  recordMethod(call, request)
  const missing = missingCapability(request, call.client.capabilities)
  if (missing) throw new ToolError(`This requires a client that declares ${JSON.stringify(missing)}.`)
}

export async function sendLive(
  sender: RequestSender,
  call: Call,
  request: InputRequest,
  signal: AbortSignal,
  key?: string,
) {
  const params = liveParams(request, call.rules)
  const send = (message: string) => call.send(message)
  const response = parseResponse(request, await sender.request({ method: request.method, params, signal, key, send }))
  if (!(await isValidResponse(request, response)))
    throw new ToolError("The client's response does not match the request.")
  return response as never
}

export const createLiveRequester = (
  sender: RequestSender,
  call: Call,
  signal: AbortSignal,
  awaitResponse: <Answer>(send: () => Promise<Answer>) => Promise<Answer>,
): ClientRequester => ({
  async request(request, key) {
    requireCapability(call, request)
    return awaitResponse(() => sendLive(sender, call, request, signal, key))
  },
})

export function missingCapability(
  { method, params }: InputRequest,
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

export function parseResponse({ method }: InputRequest, response: unknown): unknown {
  if (!isObject(response)) return response
  const fields = withoutNulls(response)
  const { content, roots } = fields
  if (method === 'elicitation/create' && isObject(content)) return { ...fields, content: withoutNulls(content) }
  if (method !== 'roots/list' || !Array.isArray(roots)) return fields
  return { ...fields, roots: roots.map(root => (isObject(root) ? withoutNulls(root) : root)) }
}

const isRoot = (root: unknown) =>
  isObject(root) && typeof root['uri'] === 'string' && ['string', 'undefined'].includes(typeof root['name'])

const isContentBlock = (block: unknown) => isObject(block) && typeof block['type'] === 'string'

export async function isValidResponse(request: InputRequest, response: unknown): Promise<boolean> {
  const { method, params } = request
  const parsed = parseResponse(request, response)
  if (!isObject(parsed)) return false
  if (method === 'roots/list') return Array.isArray(parsed['roots']) && parsed['roots'].every(isRoot)
  if (method === 'sampling/createMessage') {
    const { model, role, content } = parsed
    const blocks = Array.isArray(content) ? content : [content]
    return typeof model === 'string' && (role === 'user' || role === 'assistant') && blocks.every(isContentBlock)
  }
  if (parsed['action'] === 'decline' || parsed['action'] === 'cancel') return true
  if (parsed['action'] !== 'accept') return false
  return params.mode === 'url' || (await compileSchema(params.requestedSchema, 'input').validate(parsed['content'])).ok
}

export interface CallUsage {
  cpuTime: number
}

export interface Replay {
  readonly responses: Map<string, { readonly digest: string; readonly outcome: Promise<never> }>
  requests: number
  bytes: number
  /** The last reported progress. It must increase across runs too. */
  progress: number
  /** Remaining time for further runs, milliseconds; undefined before the first run ends, or without a limit. */
  timeLeft: number | undefined
  readonly used: CallUsage
  readonly rerun: () => unknown
}

/** Ends the run with its client requests; `replay.rerun` repeats it with the responses. No worker waits. */
export function createReplayedRequester(
  sender: RequestSender,
  call: Call,
  replay: Replay,
  interrupt: Interrupt,
): ClientRequester {
  const keyFor = createKeys()
  const sendInRound = createRound<() => Promise<unknown>>(interrupt, async requests => {
    await Promise.allSettled(requests.map(request => request()))
    call.signal.throwIfAborted()
    return replay.rerun()
  })

  function keep(response: never): never {
    replay.bytes += Buffer.byteLength(JSON.stringify(response))
    if (replay.bytes > MAX_REPLAYED_BYTES) throw new ToolError("The client's responses to this call are too large.")
    return response
  }

  async function send(request: InputRequest, explicitKey?: string): Promise<never> {
    requireCapability(call, request)
    const key = keyFor(request.method, explicitKey)
    const name = digest(request)
    const known = replay.responses.get(key)
    if (known?.digest === name) return known.outcome
    if (++replay.requests > MAX_REPLAYED_REQUESTS)
      throw new ToolError(`A call of an isolated tool can send at most ${MAX_REPLAYED_REQUESTS} requests.`)
    return sendInRound(() => {
      const outcome = sendLive(sender, call, request, call.signal, explicitKey).then(keep)
      replay.responses.set(key, { digest: name, outcome })
      return outcome
    })
  }

  return withHandledRejections(send)
}
