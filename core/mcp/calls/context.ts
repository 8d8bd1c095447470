// Runs one handler with its `ctx` argument: slot, time limit, client requests, and end.
import type { Clock, Timer } from '../../http/clock.ts'
import { HostError } from '../../http/errors.ts'
import type { Logger } from '../../kernel/log.ts'
import type { Route } from '../../kernel/route.ts'
import type { CallRuntime, CatalogItem } from '../definitions/catalog.ts'
import type { AskOptions, CallContext, PlainContext } from '../definitions/define.ts'
import { ToolError } from '../definitions/tool-error.ts'
import { encodeSampling } from '../encode-bytes.ts'
import { Cancellation } from '../wire/cancellation.ts'
import { type ElicitParams, LOG_LEVELS, type LogLevel, type SampleParams } from '../wire/protocol.ts'
import { type Call, cancellationOf } from './call.ts'
import { type CallNotifier, createCallNotifier } from './call-notifier.ts'
import type { QueueEntry } from './call-queue.ts'
import {
  type CallUsage,
  type ClientRequester,
  createLiveRequester,
  createReplayedRequester,
  createStatelessRequester,
  type Interrupt,
  openCallState,
  type Replay,
} from './client-requests.ts'
import type { IsolatedCall, Isolation } from './isolation.ts'
import type { OpenRound, SealedState } from './request-state.ts'
import { InputRequired, type Round, readRound, sealRound, sendRound } from './rounds.ts'
import type { RouteToolKeys } from './tool-key-handlers.ts'
import type { ItemLimits, ToolLimits } from './tool-limits.ts'

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
  readonly contextOn: (route: Route) => IsolatedCall['members'] & { readonly Context: ContextClass }
  readonly authorize: (call: Call, item: CatalogItem) => void
}

/** Methods that support `input_required` (basic/patterns/mrtr, "Supported Requests"). */
const METHODS_WITH_CLIENT_REQUESTS: ReadonlySet<string> = new Set(['tools/call', 'resources/read', 'prompts/get'])

type Handle = (ctx: CallContext) => unknown

/** One run of a handler; an isolated call that is replayed has several. */
interface HandlerRun {
  readonly call: Call
  readonly item: CatalogItem
  readonly settings: HandlerSettings
  /** Milliseconds; undefined: no limit. */
  readonly timeout: number | undefined
  readonly queueEntry: QueueEntry | undefined
  readonly replay: Replay | undefined
  /** Set for a run that continues with responses of the client. */
  readonly round?: Round & Pick<Replay, 'timeLeft' | 'progress'> & { readonly number: number }
  readonly reenter?: (() => QueueEntry | undefined) | undefined
}

export class HandlerContext implements PlainContext {
  readonly #run: HandlerRun
  readonly #call: Call
  readonly #settings: HandlerSettings
  #requester: ClientRequester | undefined
  #openedState: SealedState | undefined
  #round: Round | undefined
  #runtime: CallRuntime | undefined
  #cancellation: Cancellation | undefined
  #cancelListener: ((reason: Error) => void) | undefined
  #progress: number
  #notifier: CallNotifier | undefined
  #endReason: Error | 'ended' | undefined
  /** Remaining milliseconds; undefined: no limit. */
  #timeLeft: number | undefined
  #timerStart: number | undefined
  #timer: Timer | undefined
  #pendingRequests = 0
  /** Requests of the handler without a response yet. */
  #unanswered = 0
  #isDone = false
  #resolve: ((value: unknown) => void) | undefined
  #reject: ((error: unknown) => void) | undefined
  #reportLateEnd: (() => void) | undefined

  constructor(run: HandlerRun) {
    const { call, item, settings, timeout, queueEntry, replay, round } = run
    this.#run = run
    this.#call = call
    this.#settings = settings
    this.#round = round
    this.#progress = (replay ?? round)?.progress ?? Number.NEGATIVE_INFINITY
    if (call.asks === 'input_required' && call.params['requestState'] !== undefined && this.#canRequest)
      this.#openedState = openCallState(call, item, { keys: settings.stateKeys, clock: settings.clock })
    if (timeout === undefined) return
    this.#timeLeft = ((replay ?? round)?.timeLeft ?? timeout) - (queueEntry?.waited ?? 0)
    this.#resumeTimer()
  }

  static callOf(ctx: PlainContext): Call | undefined {
    return #call in ctx ? ctx.#call : undefined
  }
  static cancellationOf(ctx: PlainContext): Cancellation {
    return #call in ctx ? ctx.#cancelled() : Cancellation.of(ctx.signal)
  }
  static usageOf(ctx: PlainContext): CallUsage | undefined {
    return #call in ctx ? ctx.#run.replay?.used : undefined
  }

  static roundOf(ctx: PlainContext): Round | undefined {
    return #call in ctx ? ctx.#round : undefined
  }

  static run(run: HandlerRun, handle: Handle): unknown {
    run.call.notes.timeline?.mark('handler')
    let ctx: (HandlerContext & CallContext) | undefined
    let value: PromiseLike<unknown> | undefined
    try {
      const { Context } = run.settings.contextOn(run.call.offer.route)
      ctx = new Context(run)
      value = ctx.#start(handle) as PromiseLike<unknown> | undefined
    } catch (error) {
      run.queueEntry?.leave()
      if (!ctx) throw error
      ctx.#end()
      const pending = ctx.#runtime?.pending()
      if (!pending) throw error
      return pending.then(() => Promise.reject(error))
    }
    if (typeof value === 'object' && typeof value?.then === 'function') return ctx.#settle(value, handle)
    if (ctx.#unanswered > 0) ctx.#reportUnanswered()
    ctx.#end()
    run.queueEntry?.leave()
    const pending = ctx.#runtime?.pending()
    return pending ? pending.then(() => value) : value
  }

  #start(handle: Handle): unknown {
    const opened = this.#openedState
    const ctx = this as unknown as CallContext
    if (opened && 'round' in opened) return this.#continue(opened.round, handle, ctx)
    const value = handle(ctx)
    return value instanceof InputRequired ? Promise.resolve(value) : value
  }

  async #continue(open: OpenRound, handle: Handle, ctx: CallContext): Promise<unknown> {
    this.#round = await readRound(this.#call, open)
    return this.#round ? handle(ctx) : new InputRequired(open.requests, open.state)
  }

  async #nextRound(required: InputRequired, handle: Handle): Promise<unknown> {
    const { call, item, settings, queueEntry: _, reenter, round, ...run } = this.#run
    const number = (round?.number ?? 0) + 1
    let received: Round
    try {
      if (!call.asks || !this.#canRequest) throw this.#noRequestsError()
      if (call.asks === 'input_required') {
        const { requests, state } = required
        return sealRound(call, item, { requests, state }, { keys: settings.stateKeys, clock: settings.clock })
      }
      received = await sendRound(call.asks, call, required, number)
    } catch (error) {
      required.refused?.()
      throw error
    }
    const queueEntry = reenter?.()
    await queueEntry?.ready
    const next = { ...received, number, timeLeft: this.#timeLeft, progress: this.#progress }
    return HandlerContext.run({ ...run, call, item, settings, queueEntry, reenter, round: next }, handle)
  }

  #settle(value: PromiseLike<unknown>, handle: Handle): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      value.then(
        result => {
          if (this.#unanswered > 0) this.#reportUnanswered()
          this.#finish()
          resolve(
            this.#afterChanges(() => (result instanceof InputRequired ? this.#nextRound(result, handle) : result)),
          )
        },
        error => {
          this.#finish()
          this.#afterChanges(() => reject(error))
        },
      )
    })
  }

  #reportUnanswered() {
    // On a stream, a handler can stop waiting for a response.
    if (this.#isDone || this.#call.asks !== 'input_required') return
    const why = 'it ended before its request to the client had a response: await ctx.elicit, ctx.sample and ctx.roots'
    this.#settings.logFailure(this.#call, new Error(why))
  }

  #finish() {
    this.#end()
    this.#run.queueEntry?.leave()
    this.#reportLateEnd?.()
    this.#endReason ??= 'ended'
  }

  #afterChanges<Value>(next: () => Value): Value | Promise<Value> {
    const pending = this.#runtime?.pending()
    return pending ? pending.then(next) : next()
  }

  #end() {
    this.#isDone = true
    this.#notifier?.end()
    this.#pauseTimer()
  }

  #pauseTimer() {
    if (this.#timerStart === undefined || this.#timeLeft === undefined) return
    const { clock } = this.#settings
    clock.clear(this.#timer)
    this.#timeLeft -= clock.monotonic() - this.#timerStart
    this.#timerStart = undefined
  }

  #resumeTimer() {
    if (this.#timeLeft === undefined || this.#timerStart !== undefined) return
    const { clock } = this.#settings
    this.#timerStart = clock.monotonic()
    this.#timer = clock.setTimeout(() => this.#expire(), Math.max(0, this.#timeLeft))
  }

  #expire() {
    const { item, timeout = 0, queueEntry } = this.#run
    const waited = queueEntry?.waited ?? 0
    const queued = waited < 1 ? '' : `, including ${Math.round(waited)} ms in the queue`
    const error = new HostError('callTimeout', { detail: `stopped after ${timeout} ms${queued}` })
    this.#end()
    this.#reportLateEnd = this.#settings.overdue(item, timeout)
    this.#abort(error)
    this.#afterChanges(() => this.#reject?.(error))
  }

  #interrupt(send: () => Promise<unknown>) {
    // The handler ended without waiting for its request.
    if (this.#isDone) return
    const result = send()
    result.catch(() => undefined)
    this.#end()
    const { replay } = this.#run
    if (replay) replay.timeLeft = this.#timeLeft
    this.#resolve?.(this.#afterChanges(() => result))
    this.#abort(new Error('waiting for a response from the client'))
  }

  async #awaitResponse<Answer>(send: () => Promise<Answer>): Promise<Answer> {
    const { queueEntry } = this.#run
    if (this.#pendingRequests++ === 0 && !this.#isDone) {
      this.#pauseTimer()
      queueEntry?.pause()
    }
    try {
      return await send()
    } finally {
      if (--this.#pendingRequests === 0) await queueEntry?.reacquire()
      if (this.#pendingRequests === 0 && !this.#isDone) this.#resumeTimer()
    }
  }

  #abort(reason: Error) {
    this.#endReason ??= reason
    // Each run of a call has its own context.
    if (this.#cancelListener) cancellationOf(this.#call).remove(this.#cancelListener)
    this.#cancellation?.abort(reason)
  }

  #cancelled(): Cancellation {
    if (this.#cancellation) return this.#cancellation
    const cancellation = new Cancellation()
    this.#cancellation = cancellation
    // Created on demand, because the stack of an error takes 1 % of the CPU time of a call.
    if (this.#endReason)
      cancellation.abort(this.#endReason === 'ended' ? new Error('the call has ended') : this.#endReason)
    else {
      this.#cancelListener = reason => cancellation.abort(reason)
      cancellationOf(this.#call).add(this.#cancelListener)
    }
    return cancellation
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
    this.#runtime ??= this.#settings.openRuntime()
    return this.#runtime
  }

  get signal(): AbortSignal {
    return this.#cancelled().signal
  }

  // Getters return functions, so handlers can destructure `ctx`.
  get progress() {
    return (progress: number, total?: number, message?: string) => this.#reportProgress(progress, total, message)
  }
  get log() {
    return (level: LogLevel, data: unknown, logger?: string) => this.#sendLog(level, data, logger)
  }
  get elicit() {
    return (params: ElicitParams, { key }: AskOptions = {}) => this.#send({ method: 'elicitation/create', params }, key)
  }
  get sample() {
    return (params: SampleParams, { key }: AskOptions = {}) =>
      this.#send({ method: 'sampling/createMessage', params: encodeSampling(params) }, key)
  }
  get roots() {
    return ({ key }: AskOptions = {}) => this.#send({ method: 'roots/list', params: {} }, key)
  }
  get fetch(): typeof fetch {
    return createCallFetch({
      signal: () => this.signal,
      timeout: this.#settings.fetchTimeout,
      headers: () => this.#settings.headersFor(this.#call),
    })
  }

  #reportProgress(progress: number, total?: number, message?: string) {
    if (!Number.isFinite(progress)) throw new TypeError(`progress must be a finite number, was ${progress}`)
    const { progressToken } = this.#call
    // Progress must increase (basic/patterns/progress).
    if (progressToken === undefined || this.#endReason !== undefined || progress <= this.#progress) return
    this.#progress = progress
    const { replay } = this.#run
    if (replay) replay.progress = progress
    this.#notify().progress({
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
    if (logLevel === undefined || this.#endReason !== undefined || severity < LOG_LEVELS.indexOf(logLevel)) return
    this.#notify().log({ level, data, ...(logger !== undefined && { logger }) })
  }

  #notify(): CallNotifier {
    this.#notifier ??= createCallNotifier(this.#call)
    return this.#notifier
  }

  get ping() {
    return async () => {
      const { asks, modern } = this.#call
      const send = (message: string) => this.#call.send(message)
      if (typeof asks === 'object') await asks.request({ method: 'ping', params: {}, signal: this.signal, send })
      else if (!modern) throw new ToolError('The client cannot be pinged on a stateless route.')
    }
  }
  get disconnect() {
    return (retry?: number) => this.#call.disconnect(retry)
  }

  get #canRequest() {
    return this.#call.asks !== undefined && METHODS_WITH_CLIENT_REQUESTS.has(this.#call.method)
  }

  #createRequester(): ClientRequester {
    const { asks } = this.#call
    const { item, replay } = this.#run
    const interrupt: Interrupt = result => this.#interrupt(result)
    if (typeof asks === 'object' && replay) return createReplayedRequester(asks, this.#call, replay, interrupt)
    if (typeof asks === 'object')
      return createLiveRequester(asks, this.#call, this.signal, send => this.#awaitResponse(send))
    return createStatelessRequester(this.#call, item, {
      earlier: this.#openedState && 'asked' in this.#openedState ? this.#openedState.asked : undefined,
      keys: this.#settings.stateKeys,
      clock: this.#settings.clock,
      interrupt,
    })
  }

  #noRequestsError() {
    const { method, revision } = this.#call
    const why = METHODS_WITH_CLIENT_REQUESTS.has(method)
      ? `a ${revision} client cannot receive requests on a stateless route`
      : `${method} does not support requests to the client`
    return new ToolError(`This requires input from the user or client, but ${why}.`)
  }

  #send(input: Parameters<ClientRequester['request']>[0], key: string | undefined): Promise<never> {
    if (!this.#call.asks || !this.#canRequest) return Promise.reject(this.#noRequestsError())
    this.#notifier?.flush()
    this.#requester ??= this.#createRequester()
    const response = this.#requester.request(input, key)
    this.#unanswered++
    const answered = () => void this.#unanswered--
    response.then(answered, answered)
    return response
  }
}

export type ContextClass = new (...args: ConstructorParameters<typeof HandlerContext>) => HandlerContext & CallContext

/** Rejects with the handler's error or `callTimeout`. A handler keeps its slot until it ends. */
export function runHandler(
  call: Call,
  item: CatalogItem,
  settings: HandlerSettings,
  handle: Handle,
  limits: ItemLimits = settings.limits.of(item),
  queueEntry?: QueueEntry,
): unknown {
  const { timeout, isolate, queue } = limits
  const reenter = queue && (() => queue.reenter(call))
  const run = { call, item, settings, timeout, queueEntry, replay: undefined, reenter }
  if (isolate && typeof call.asks === 'object') return runReplayed(run, handle, limits)
  return runInSlot(run, handle)
}

const runInSlot = (run: HandlerRun, handle: Handle): unknown =>
  run.queueEntry?.ready
    ? run.queueEntry.ready.then(() => HandlerContext.run(run, handle))
    : HandlerContext.run(run, handle)

function runReplayed(first: HandlerRun, handle: Handle, { queue }: ItemLimits): unknown {
  const start = (queueEntry: QueueEntry | undefined) => runInSlot({ ...first, queueEntry, replay }, handle)
  const replay: Replay = {
    responses: new Map(),
    requests: 0,
    bytes: 0,
    timeLeft: undefined,
    used: { cpuTime: 0 },
    progress: Number.NEGATIVE_INFINITY,
    rerun: () => start(queue?.reenter(first.call)),
  }
  return start(first.queueEntry)
}

/** `callOf` returns the Call of a `ctx`, for plugin tools that need members such as the view. */
export const { callOf, cancellationOf: contextCancellation, usageOf, roundOf } = HandlerContext

interface CallFetch {
  readonly signal: () => AbortSignal
  /** Milliseconds. */
  readonly timeout: number
  readonly headers: () => Readonly<Record<string, string>>
}

function addHeaders(
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

/** The signals of each response body. A time limit without other references can be garbage-collected in Node.js 20. */
const signalsOf = new WeakMap<object, readonly AbortSignal[]>()

export const createCallFetch =
  ({ signal, timeout, headers }: CallFetch): typeof fetch =>
  async (input, init) => {
    const signals = [signal(), AbortSignal.timeout(timeout)]
    if (init?.signal) signals.push(init.signal)
    const added = addHeaders(headers(), input, init)
    const response = await fetch(input, { ...init, ...added, signal: AbortSignal.any(signals) })
    if (response.body) signalsOf.set(response.body, signals)
    return response
  }
