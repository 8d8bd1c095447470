// Runs one handler: slot, time limit, client requests, and end.
import type { Clock, Timer } from '../http/clock.ts'
import { HostError } from '../http/errors.ts'
import type { Figures } from '../kernel/figures.ts'
import type { Logger } from '../kernel/log.ts'
import type { Replay } from './asks.ts'
import type { Call } from './call.ts'
import type { Turn } from './call-queue.ts'
import type { CatalogItem } from './catalog.ts'
import { type Asking, HandlerContext, type HandlerSettings } from './context.ts'
import type { CallContext } from './define.ts'
import { ToolError } from './tool-error.ts'
import type { ItemLimits } from './tool-limits.ts'

type Handle = (ctx: CallContext) => unknown
type Result = object | Promise<object>

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'

class HandlerRun implements Asking {
  readonly replay: Replay | undefined
  readonly #item: CatalogItem
  readonly #settings: HandlerSettings
  readonly #timeout: number | undefined
  readonly #turn: Turn | undefined
  /** Remaining milliseconds; undefined: no limit. */
  #left: number | undefined
  #since: number | undefined
  #timer: Timer | undefined
  #waits = 0
  #over = false
  #ctx: HandlerContext | undefined
  #resolve: ((value: unknown) => void) | undefined
  #reject: ((error: unknown) => void) | undefined
  #outlived: (() => void) | undefined

  constructor(
    item: CatalogItem,
    settings: HandlerSettings,
    timeout: number | undefined,
    turn: Turn | undefined,
    replay: Replay | undefined,
  ) {
    this.#item = item
    this.#settings = settings
    this.#timeout = timeout
    this.#turn = turn
    this.replay = replay
  }

  run(call: Call, handle: Handle): unknown {
    const turn = this.#turn
    let ctx: HandlerContext | undefined
    let value: unknown
    try {
      ctx = new HandlerContext(call, this.#item, this.#settings, this)
      this.#ctx = ctx
      if (this.#timeout !== undefined) {
        this.#left = (this.replay?.timeLeft ?? this.#timeout) - (turn?.waited ?? 0)
        this.#resume()
      }
      value = handle(ctx)
    } catch (error) {
      this.#end()
      turn?.leave()
      const pending = ctx?.pending()
      if (!pending) throw error
      return pending.then(() => Promise.reject(error))
    }
    if (isThenable(value)) return this.#settle(value)
    this.#end()
    turn?.leave()
    const pending = ctx.pending()
    return pending ? pending.then(() => value) : value
  }

  #settle(value: PromiseLike<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      value.then(
        result => {
          this.#ended()
          resolve(this.#afterChanges(() => result))
        },
        error => {
          this.#ended()
          this.#afterChanges(() => reject(error))
        },
      )
    })
  }

  #ended() {
    this.#end()
    this.#turn?.leave()
    this.#outlived?.()
    this.#ctx?.finish()
  }

  #afterChanges<Value>(next: () => Value): Value | Promise<Value> {
    const pending = this.#ctx?.pending()
    return pending ? pending.then(next) : next()
  }

  #end() {
    this.#over = true
    this.#pause()
  }

  #pause() {
    if (this.#since === undefined || this.#left === undefined) return
    const { clock } = this.#settings
    clock.clear(this.#timer)
    this.#left -= clock.monotonic() - this.#since
    this.#since = undefined
  }

  #resume() {
    if (this.#left === undefined || this.#since !== undefined) return
    const { clock } = this.#settings
    this.#since = clock.monotonic()
    this.#timer = clock.setTimeout(() => this.#expire(), Math.max(0, this.#left))
  }

  #expire() {
    const timeout = this.#timeout ?? 0
    const waited = this.#turn?.waited ?? 0
    const queued = waited < 1 ? '' : `, of which it waited ${Math.round(waited)} ms for its turn`
    const error = new HostError('callTimeout', { detail: `stopped after ${timeout} ms${queued}` })
    this.#over = true
    this.#outlived = this.#settings.overdue(this.#item, timeout)
    this.#ctx?.end(error)
    this.#afterChanges(() => this.#reject?.(error))
  }

  interrupt(ask: () => Promise<unknown>) {
    // The handler ended without waiting for its request.
    if (this.#over) return
    const result = ask()
    result.catch(() => undefined)
    this.#end()
    if (this.replay) this.replay.timeLeft = this.#left
    this.#resolve?.(this.#afterChanges(() => result))
    this.#ctx?.end(new Error('waiting for the client to answer'))
  }

  async waiting<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    if (this.#waits++ === 0 && !this.#over) {
      this.#pause()
      this.#turn?.pause()
    }
    try {
      return await ask()
    } finally {
      if (--this.#waits === 0) await this.#turn?.retake()
      if (this.#waits === 0 && !this.#over) this.#resume()
    }
  }
}

/** Rejects with the handler's error or `callTimeout`. A handler keeps its slot until it ends. */
export function runHandler(
  call: Call,
  item: CatalogItem,
  settings: HandlerSettings,
  handle: Handle,
  { timeout, isolate, queue }: ItemLimits = settings.limits.of(item),
  turn?: Turn,
): unknown {
  const start = (turn: Turn | undefined) => {
    const run = new HandlerRun(item, settings, timeout, turn, replay)
    return turn?.ready ? turn.ready.then(() => run.run(call, handle)) : run.run(call, handle)
  }
  const replay: Replay | undefined =
    isolate && typeof call.asks === 'object'
      ? {
          answers: new Map(),
          questions: 0,
          bytes: 0,
          timeLeft: undefined,
          used: { cpuTime: 0 },
          progress: Number.NEGATIVE_INFINITY,
          again: () => start(queue?.enterAgain(call)),
        }
      : undefined
  return start(turn)
}

export function afterHandler(
  run: () => unknown,
  succeeded: (value: unknown) => Result,
  failed: (error: unknown) => object,
): Result {
  try {
    const value = run()
    const result = value instanceof Promise ? value.then(succeeded) : succeeded(value)
    return result instanceof Promise ? result.catch(failed) : result
  } catch (error) {
    return failed(error)
  }
}

/** Uses status 200, except for a missing capability and an ended login (401). Unknown errors stay unchanged. */
export function handlerFailure(error: unknown): unknown {
  if (ToolError.is(error)) return new HostError('internal', { detail: error.message }).within200()
  if (!HostError.is(error)) return error
  const isChallenge = error.kind === 'unauthorized' && error.headers?.['WWW-Authenticate'] !== undefined
  return isChallenge || error.kind === 'missingCapability' ? error : error.within200()
}

/** Milliseconds after the abort before a running handler is logged. */
const GRACE = 2_000
/** Interval of repeated warnings per item, milliseconds; also logged when the count doubles. */
const REPEAT = 60_000

const FIX =
  'pass ctx.signal on to what it waits for, or look at ctx.signal.aborted between steps; `concurrency` bounds them'

export function watchOverdue(
  log: Pick<Logger, 'warn'>,
  figures: Pick<Figures, 'gauge'>,
  clock: Clock,
): (item: CatalogItem, limit: number) => () => void {
  const items = new WeakMap<CatalogItem, { running: number; logged: number; at: number }>()
  let all = 0
  const figure = { name: 'mcp_host_handlers_overdue', help: 'Handlers that still run after the timeout of their call.' }
  figures.gauge(figure, () => all)

  return (item, limit) => {
    all++
    const overdue = items.get(item) ?? { running: 0, logged: 0, at: Number.NEGATIVE_INFINITY }
    items.set(item, overdue)
    let isCounted = false
    const count = () => {
      isCounted = true
      const running = ++overdue.running
      const now = clock.monotonic()
      if (running < overdue.logged * 2 && now - overdue.at <= REPEAT) return
      overdue.logged = running
      overdue.at = now
      const fields = { kind: item.kind, name: item.key, limit, running, fix: FIX }
      log.warn({ code: 'MH1609', ...fields }, 'a handler continues after its timeout: it ignores its signal')
    }
    const timer = clock.setTimeout(count, GRACE).unref()
    return () => {
      all--
      clock.clear(timer)
      if (isCounted) overdue.running--
    }
  }
}
