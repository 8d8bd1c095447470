// One call at a server: its time limits, progress, log messages, and requests of the server to the caller.
import type { CallContext } from '../../core/index.ts'
import { type Call, type Clock, isObject, type Timer } from '../../core/plugin.ts'
import {
  Cancellation,
  contextCancellation,
  type InputRequest,
  LOG_LEVELS,
  missingCapability,
  REQUEST_NAMES,
} from '../../core/transport.ts'
import {
  type Connection,
  type Progress,
  RemoteError,
  type RequestOptions,
  type ServerRequest,
} from '../../remote/index.ts'
import type { ServerSettings } from './settings.ts'

export type Json = Readonly<Record<string, unknown>>

interface OpenRequest {
  readonly key: string
  readonly request: InputRequest
  resolve(response: Json): void
  reject(error: Error): void
}

/** The client of a call, on this node or another one. */
export interface RequestClient extends Pick<CallContext, 'progress' | 'log'> {
  readonly cancellation: Cancellation
  /** Undefined if the client does not accept requests. */
  readonly capabilities: Call['client']['capabilities'] | undefined
}

export class ContextClient implements RequestClient {
  readonly #ctx: CallContext
  readonly capabilities: RequestClient['capabilities']

  constructor(ctx: CallContext, { asks, client, method }: Call) {
    this.#ctx = ctx
    this.capabilities = asks && method !== 'completion/complete' ? client.capabilities : undefined
  }

  get cancellation(): Cancellation {
    return contextCancellation(this.#ctx)
  }
  progress(...values: Parameters<CallContext['progress']>): void {
    this.#ctx.progress(...values)
  }
  log(...values: Parameters<CallContext['log']>): void {
    this.#ctx.log(...values)
  }
}

export type Outcome = { readonly result: Json } | { readonly error: unknown }

interface UpstreamRequestParts {
  readonly settings: Pick<ServerSettings, 'callTimeout' | 'maxCallTime' | 'maxResult' | 'asks'>
  readonly clock: Clock
}

/** Minimum interval of progress notifications, milliseconds. */
const PROGRESS_INTERVAL = 50

export function readInputRequest(method: unknown, params: unknown): InputRequest | undefined {
  if (typeof method !== 'string' || !Object.hasOwn(REQUEST_NAMES, method)) return undefined
  const fields = isObject(params) ? params : {}
  const isForm = method === 'elicitation/create' && fields['mode'] !== 'url'
  const own = isForm ? { ...fields, requestedSchema: formOf(fields['requestedSchema']) } : fields
  return { method, params: own } as unknown as InputRequest
}

const FIELD = ['title', 'description', 'default', 'minLength', 'maxLength', 'format', 'minimum', 'maximum']
const CHOICE = ['type', 'enum', 'enumNames', 'const', 'title']
const LISTS = ['oneOf', 'anyOf']

const pick = (source: Json, keys: readonly string[]): Json =>
  Object.fromEntries(Object.entries(source).filter(([key]) => keys.includes(key)))

/** A value with its choices: `oneOf` and `anyOf` hold constants with titles. */
function choiceOf(source: unknown): Json {
  if (!isObject(source)) return {}
  const lists = LISTS.filter(key => Array.isArray(source[key])).map(key => [
    key,
    (source[key] as unknown[]).map(one => (isObject(one) ? pick(one, ['const', 'title']) : {})),
  ])
  return { ...pick(source, CHOICE), ...Object.fromEntries(lists) }
}

function fieldOf(source: unknown): Json {
  if (!isObject(source)) return {}
  const { items } = source
  return {
    ...choiceOf(source),
    ...pick(source, [...FIELD, 'minItems', 'maxItems']),
    ...(items !== undefined && { items: choiceOf(items) }),
  }
}

/**
 * Sanitizes an elicitation schema of a server: keeps only keywords that the spec allows. The host validates responses, and
 * a `pattern` or `$ref` could take unlimited time.
 */
function formOf(schema: unknown): Json {
  const { properties, required } = isObject(schema) ? schema : {}
  const fields = Object.entries(isObject(properties) ? properties : {}).map(([name, field]) => [name, fieldOf(field)])
  return {
    type: 'object',
    properties: Object.fromEntries(fields),
    ...(Array.isArray(required) && { required: required.filter(name => typeof name === 'string') }),
  }
}

/** Declines a request as the protocol defines. */
function decline({ method }: InputRequest): Json {
  if (method === 'elicitation/create') return { action: 'decline' }
  throw new RemoteError('rpc', `the client does not support ${method}`, { code: -32_601 })
}

/** Options without time limits: the upstream request has its own. */
class UpstreamRequestOptions implements RequestOptions {
  readonly headers: RequestOptions['headers']
  readonly capabilities: RequestOptions['capabilities']
  readonly logLevel: RequestOptions['logLevel']
  readonly owner: UpstreamRequest
  readonly signal: Cancellation
  readonly maxResult: number
  readonly timeout = 0
  readonly maxTime = 0

  constructor(
    { headers, capabilities, logLevel }: RequestOptions,
    request: UpstreamRequest,
    signal: Cancellation,
    maxResult: number,
  ) {
    this.headers = headers
    this.capabilities = capabilities
    this.logLevel = logLevel
    this.owner = request
    this.signal = signal
    this.maxResult = maxResult
  }

  onProgress(progress: Progress): void {
    this.owner.receiveProgress(progress)
  }
}

/** A call at a server. If the server sends a request to a 2026-07-28 client, the call outlives the client's request. */
export class UpstreamRequest {
  readonly #parts: UpstreamRequestParts
  readonly #cancellation = new Cancellation()
  #openRequests: readonly OpenRequest[] = []
  /** The client of the last request. */
  #client: RequestClient | undefined
  #outcome: Outcome | undefined
  /** Resolves the promise of `next`. */
  #wake: (() => void) | undefined
  #requestCount = 0
  #timer: Timer | undefined
  /** Remaining part of `maxCallTime`, milliseconds. */
  #left: number
  #since: number | undefined
  #late: RemoteError | undefined
  #progressAt = Number.NEGATIVE_INFINITY
  #unsent: Progress | undefined
  #flushTimer: Timer | undefined

  constructor(parts: UpstreamRequestParts) {
    this.#parts = parts
    this.#left = parts.settings.maxCallTime
  }

  get outcome() {
    return this.#outcome
  }
  /** The pending requests of the server to the caller, by key. */
  get requests(): Readonly<Record<string, InputRequest>> {
    return Object.fromEntries(this.#openRequests.map(({ key, request }) => [key, request]))
  }

  /** Sends the call. The time limits of `options` are ignored: the upstream request has its own. */
  start(connection: Connection, method: string, params: Json, options: RequestOptions): void {
    const sent = new UpstreamRequestOptions(options, this, this.#cancellation, this.#parts.settings.maxResult)
    connection.request(method, params, sent).then(
      result => this.#settle({ result }),
      error => this.#settle({ error: this.#late ?? error }),
    )
  }

  #settle(outcome: Outcome) {
    if (this.#unsent) this.#flush()
    this.#outcome = outcome
    this.#pause()
    for (const { reject } of this.#openRequests) reject(new Error('the call has ended'))
    this.#openRequests = []
    this.#wake?.()
    // Otherwise V8 keeps ended calls in memory until a full garbage collection.
    this.#client = undefined
  }

  /** Waits for the outcome, or for requests to the caller. */
  next(client: RequestClient): Promise<void> {
    const { cancellation } = client
    this.#client = client
    const abort = () => this.cancel()
    cancellation.add(abort)
    this.#resume()
    return new Promise<void>(resolve => {
      this.#wake = () => {
        this.#pause()
        cancellation.remove(abort)
        this.#wake = undefined
        resolve()
      }
      if (this.#outcome || this.#openRequests.length > 0) this.#wake()
    })
  }

  cancel(): void {
    this.#cancellation.abort(new Error('the call was cancelled'))
  }

  #expire(text: string) {
    this.#late ??= new RemoteError('timeout', text, { executed: 'maybe' })
    this.cancel()
  }

  #pause() {
    const { clock } = this.#parts
    if (this.#since === undefined) return
    clock.clear(this.#timer)
    this.#left -= clock.monotonic() - this.#since
    this.#timer = this.#since = undefined
  }

  #resume() {
    if (this.#outcome) return
    const now = this.#parts.clock.monotonic()
    this.#since = now
    this.#touch(now)
  }

  /** Starts the timer of the limit that is reached first. */
  #touch(now: number) {
    const { clock, settings } = this.#parts
    const { callTimeout, maxCallTime } = settings
    const left = maxCallTime > 0 ? this.#left - (now - (this.#since ?? now)) : Number.POSITIVE_INFINITY
    const isLast = left <= callTimeout
    const expire = () =>
      this.#expire(isLast ? 'the maximum time of the call has passed' : 'no response and no progress')
    clock.clear(this.#timer)
    this.#timer = clock.setTimeout(expire, isLast ? Math.max(0, left) : callTimeout)
  }

  receiveProgress(progress: Progress): void {
    const { clock } = this.#parts
    const now = clock.monotonic()
    if (this.#since !== undefined) this.#touch(now)
    this.#unsent = progress
    const left = this.#progressAt + PROGRESS_INTERVAL - now
    if (left <= 0) this.#flush()
    else this.#flushTimer ??= clock.setTimeout(() => this.#flush(), left)
  }

  #flush() {
    const { clock } = this.#parts
    clock.clear(this.#flushTimer)
    this.#flushTimer = undefined
    this.#progressAt = clock.monotonic()
    const progress = this.#unsent
    if (!progress || !this.#wake || !Number.isFinite(progress.progress)) return
    this.#unsent = undefined
    this.#client?.progress(progress.progress, progress.total, progress.message)
  }

  log({ level, data, logger }: Json): void {
    const known = LOG_LEVELS.find(one => one === level)
    if (known && this.#wake) this.#client?.log(known, data, typeof logger === 'string' ? logger : undefined)
  }

  /** Passes a request of the server to the caller. */
  async relay({ method, params, signal }: ServerRequest): Promise<Json> {
    const request = readInputRequest(method, params)
    if (!request) throw new RemoteError('rpc', `${method} is not supported`, { code: -32_601 })
    const capabilities = this.#client?.capabilities
    const isAllowed = this.#parts.settings.asks[REQUEST_NAMES[request.method]]
    if (!capabilities || !isAllowed || missingCapability(request, capabilities)) return decline(request)
    const key = `${REQUEST_NAMES[request.method]}-${++this.#requestCount}`
    return new Promise<Json>((resolve, reject) => {
      this.#openRequests = [...this.#openRequests, { key, request, resolve, reject }]
      signal.addEventListener('abort', () => {
        this.#remove(key)
        reject(new Error('the server cancelled its request'))
      })
      // Requests that arrive in the same turn of the event loop are sent together.
      setImmediate(() => {
        if (this.#openRequests.length > 0) this.#wake?.()
      })
    })
  }

  #remove(key: string) {
    this.#openRequests = this.#openRequests.filter(one => one.key !== key)
  }

  /** Sends the responses of the caller to the server. */
  answer(responses: Json): void {
    for (const { key, resolve } of this.#openRequests) {
      if (!Object.hasOwn(responses, key)) continue
      this.#remove(key)
      resolve(responses[key] as Json)
    }
  }

  /** Declines all requests and cancels the call, because the caller did not respond. */
  giveUp(): void {
    for (const { request, resolve, reject } of this.#openRequests) {
      if (request.method === 'elicitation/create') resolve({ action: 'cancel' })
      else reject(new RemoteError('rpc', 'the user did not respond', { code: -32_603 }))
    }
    this.#openRequests = []
    // Cancels after the responses were sent.
    setImmediate(() => this.cancel())
  }
}
