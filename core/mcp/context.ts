// The `ctx` argument of every handler. run-handler.ts runs the handler.
import type { Clock } from '../http/clock.ts'
import type { Logger } from '../kernel/log.ts'
import type { Route } from '../kernel/route.ts'
import {
  type Asks,
  type CallUsage,
  createAsks,
  createLiveAsks,
  createReplayedAsks,
  type Interrupt,
  type Replay,
} from './asks.ts'
import type { Call } from './call.ts'
import type { CallRuntime, CatalogItem } from './catalog.ts'
import type { AskOptions, CallContext, PlainContext } from './define.ts'
import { encodeSampling } from './encode-bytes.ts'
import type { Isolation } from './isolation.ts'
import { type ElicitParams, LOG_LEVELS, type LogLevel, type SampleParams } from './protocol.ts'
import type { RouteToolKeys } from './run-keys.ts'
import { ToolError } from './tool-error.ts'
import type { ToolLimits } from './tool-limits.ts'

export interface HandlerSettings {
  readonly limits: ToolLimits
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn' | 'error'>
  readonly logFailure: (call: Call, error: unknown) => void
  /** Milliseconds. */
  readonly fetchTimeout: number
  readonly openRuntime: () => CallRuntime
  readonly isolationOn: (route: Route) => Isolation
  /** Receives an item whose time limit, in milliseconds, has passed. Returns a function for the end of its handler. */
  readonly overdue: (item: CatalogItem, limit: number) => () => void
  readonly headersFor: (call: Call) => Readonly<Record<string, string>>
  /** Seal `requestState`: the first key signs, all verify. */
  readonly stateKeys: readonly Buffer[]
  readonly toolKeys: Pick<RouteToolKeys, 'chainOf'>
  /** The context class of a route, and the names that plugins add to it. */
  readonly contextOn: (route: Route) => { readonly Context: ContextClass; readonly names: readonly string[] }
  readonly admit: (call: Call, item: CatalogItem) => void
}

/** Methods that support `input_required` (basic/patterns/mrtr, "Supported Requests"). */
const ASKING_METHODS: ReadonlySet<string> = new Set(['tools/call', 'resources/read', 'prompts/get'])

export interface Asking {
  readonly interrupt: Interrupt
  waiting<Answer>(ask: () => Promise<Answer>): Promise<Answer>
  readonly replay: Replay | undefined
}

export class HandlerContext implements PlainContext {
  readonly #call: Call
  readonly #item: CatalogItem
  readonly #settings: HandlerSettings
  readonly #asking: Asking
  #asks: Asks | undefined
  #host: CallRuntime | undefined
  #controller: AbortController | undefined
  #progress: number
  #ended: unknown
  readonly #stop = () => this.#controller?.abort(this.#call.signal.reason)

  constructor(call: Call, item: CatalogItem, settings: HandlerSettings, asking: Asking) {
    this.#call = call
    this.#item = item
    this.#settings = settings
    this.#asking = asking
    this.#progress = asking.replay?.progress ?? Number.NEGATIVE_INFINITY
    if (call.asks === 'input_required' && this.#canAsk && call.params['requestState'] !== undefined)
      this.#asks = this.#createAsks()
  }

  static callOf(ctx: PlainContext): Call | undefined {
    return #call in ctx ? ctx.#call : undefined
  }
  static usageOf(ctx: PlainContext): CallUsage | undefined {
    return #call in ctx ? ctx.#asking.replay?.used : undefined
  }
  get user() {
    return this.#call.user
  }
  get session() {
    const id = this.#call.offer.sessionId
    return id === undefined ? undefined : { id }
  }
  get route() {
    const { route, params } = this.#call.offer
    return { path: route.path, params }
  }
  get headers() {
    return this.#call.headers
  }
  get client() {
    const { client, revision } = this.#call
    return { info: client.info, capabilities: client.capabilities, revision }
  }
  get meta() {
    return this.#call.meta
  }
  get host() {
    this.#host ??= this.#settings.openRuntime()
    return this.#host
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      const { signal } = this.#call
      if (this.#ended !== undefined) this.#controller.abort(this.#ended)
      else if (signal.aborted) this.#controller.abort(signal.reason)
      else signal.addEventListener('abort', this.#stop, { once: true })
    }
    return this.#controller.signal
  }

  pending(): Promise<void> | undefined {
    return this.#host?.pending()
  }

  finish() {
    this.#ended ??= new Error('the call is over')
  }

  end(reason: unknown) {
    this.#ended ??= reason
    // A call can have many runs, each with a context.
    this.#call.signal.removeEventListener('abort', this.#stop)
    this.#controller?.abort(reason)
  }

  // Getters return functions, so handlers can destructure `ctx`.
  get progress() {
    return (progress: number, total?: number, message?: string) => this.#reportProgress({ progress, total, message })
  }
  get log() {
    return (level: LogLevel, data: unknown, logger?: string) => this.#sendLog(level, data, logger)
  }
  get elicit() {
    return (params: ElicitParams, { key }: AskOptions = {}) => this.#ask({ method: 'elicitation/create', params }, key)
  }
  get sample() {
    return (params: SampleParams, { key }: AskOptions = {}) =>
      this.#ask({ method: 'sampling/createMessage', params: encodeSampling(params) }, key)
  }
  get roots() {
    return ({ key }: AskOptions = {}) => this.#ask({ method: 'roots/list', params: {} }, key)
  }
  get fetch(): typeof fetch {
    return createCallFetch({
      signal: () => this.signal,
      timeout: this.#settings.fetchTimeout,
      headers: () => this.#settings.headersFor(this.#call),
    })
  }

  #reportProgress({
    progress,
    total,
    message,
  }: {
    progress: number
    total?: number | undefined
    message?: string | undefined
  }) {
    if (!Number.isFinite(progress)) throw new TypeError(`progress must be a finite number, was ${progress}`)
    const { progressToken } = this.#call
    // Progress must increase (basic/patterns/progress).
    if (progressToken === undefined || this.#ended !== undefined || progress <= this.#progress) return
    this.#progress = progress
    const { replay } = this.#asking
    if (replay) replay.progress = progress
    this.#call.notify('notifications/progress', {
      progressToken,
      progress,
      ...(total !== undefined && { total }),
      ...(message !== undefined && { message }),
    })
  }

  #sendLog(level: LogLevel, data: unknown, logger: string | undefined) {
    const severity = LOG_LEVELS.indexOf(level)
    if (severity === -1) throw new TypeError(`log level must be one of ${LOG_LEVELS.join(', ')}; was ${level}`)
    const { logLevel } = this.#call
    if (logLevel === undefined || this.#ended !== undefined || severity < LOG_LEVELS.indexOf(logLevel)) return
    this.#call.notify('notifications/message', { level, data, ...(logger !== undefined && { logger }) })
  }

  get ping() {
    return async () => {
      const { asks, modern } = this.#call
      if (typeof asks === 'object') await asks.ask('ping', {}, this.signal)
      else if (!modern) throw new ToolError('The client cannot be pinged on a stateless route.')
    }
  }
  get disconnect() {
    return (retry?: number) => this.#call.disconnect(retry)
  }

  get #canAsk() {
    return this.#call.asks !== undefined && ASKING_METHODS.has(this.#call.method)
  }

  #createAsks(): Asks {
    const { asks } = this.#call
    const asking = this.#asking
    const { replay } = asking
    const interrupt: Interrupt = result => asking.interrupt(result)
    if (typeof asks === 'object' && replay) return createReplayedAsks(asks, this.#call, replay, interrupt)
    if (typeof asks === 'object') return createLiveAsks(asks, this.#call, this.signal, asking)
    return createAsks(this.#call, this.#item, {
      keys: this.#settings.stateKeys,
      clock: this.#settings.clock,
      interrupt,
    })
  }

  #ask(question: Parameters<Asks['ask']>[0], key: string | undefined): Promise<never> {
    const { asks } = this.#call
    if (!asks || !this.#canAsk) {
      const { method, revision } = this.#call
      const why = ASKING_METHODS.has(method)
        ? `a ${revision} client cannot be asked on a stateless route`
        : `${method} cannot ask`
      return Promise.reject(new ToolError(`This needs an answer from the user or client, but ${why}.`))
    }
    this.#asks ??= this.#createAsks()
    return this.#asks.ask(question, key)
  }
}

/** A context with the members of plugins. */
export type ContextClass = new (...given: ConstructorParameters<typeof HandlerContext>) => HandlerContext & CallContext

/** For plugin tools that need more of the Call than `ctx` shows, such as the view. */
export const callOf = HandlerContext.callOf

export const usageOf = HandlerContext.usageOf

interface CallFetch {
  readonly signal: () => AbortSignal
  /** Milliseconds. */
  readonly timeout: number
  readonly headers: () => Readonly<Record<string, string>>
}

function carry(
  headersToAdd: Readonly<Record<string, string>>,
  input: Parameters<typeof fetch>[0],
  init: RequestInit | undefined,
): { headers: Headers } | undefined {
  const added = Object.entries(headersToAdd)
  if (added.length === 0) return undefined
  const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
  if (added.some(([name]) => headers.has(name))) return undefined
  for (const [name, value] of added) headers.set(name, value)
  return { headers }
}

/** Creates `ctx.fetch` for one call. */
export const createCallFetch =
  ({ signal, timeout, headers }: CallFetch): typeof fetch =>
  (input, init) => {
    const signals = [signal(), AbortSignal.timeout(timeout)]
    if (init?.signal) signals.push(init.signal)
    return fetch(input, { ...init, ...carry(headers(), input, init), signal: AbortSignal.any(signals) })
  }
