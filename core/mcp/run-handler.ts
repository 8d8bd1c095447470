// Runs one handler: slot, time limit, questions and end.
import type { Clock, Timer } from '../http/clock.ts'
import { HostError } from '../http/errors.ts'
import type { Figures } from '../kernel/figures.ts'
import type { Logger } from '../kernel/log.ts'
import type { Replay } from './asks.ts'
import type { Call } from './call.ts'
import { inPlace, type Turn } from './call-queue.ts'
import type { CatalogItem } from './catalog.ts'
import { type Asking, HandlerContext, type HandlerSettings } from './context.ts'
import type { CallContext } from './define.ts'
import { ToolError } from './tool-error.ts'

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'

/** Converts a synchronous throw into a rejection if other nodes must be notified of a change first. */
function runToValue(ctx: HandlerContext, handle: (ctx: CallContext) => unknown): unknown {
  try {
    return handle(ctx)
  } catch (error) {
    return ctx.whenTold(() => {
      throw error
    })
  }
}

/** The time limit of a call. It stops while the handler waits for its client. */
class TimeLimit {
  readonly #clock: Clock
  readonly #late: () => void
  #left: number
  /** Undefined while the limit is paused. */
  #since: number | undefined
  #timer: Timer | undefined

  constructor(clock: Clock, left: number, late: () => void) {
    this.#clock = clock
    this.#left = left
    this.#late = late
    this.run()
  }

  run() {
    if (this.#since !== undefined) return
    this.#since = this.#clock.monotonic()
    this.#timer = this.#clock.setTimeout(this.#late, Math.max(0, this.#left))
  }

  /** Pauses until `run`. */
  pause() {
    if (this.#since === undefined) return
    this.#clock.clear(this.#timer)
    this.#left -= this.#clock.monotonic() - this.#since
    this.#since = undefined
  }

  /** Returns the milliseconds that are left. */
  end(): number {
    this.pause()
    return this.#left
  }
}

/**
 * Runs a handler to its value, or to an `input_required` result with its questions.
 * Rejects with the handler's error, or with `callTimeout`. A handler that ignores `signal` continues after a cancel or time-out:
 * its output is discarded, and it keeps its slot until it ends.
 * While it waits for its client it has no slot, and its time limit is paused. An isolated handler ends instead and runs again.
 */
export function runHandler(
  call: Call,
  item: CatalogItem,
  settings: HandlerSettings,
  handle: (ctx: CallContext) => unknown,
  turn?: Turn,
): unknown {
  const { isolate, queue } = settings.limits.of(item)
  const replay: Replay | undefined =
    isolate && typeof call.asks === 'object'
      ? {
          answers: new Map(),
          questions: 0,
          bytes: 0,
          timeLeft: undefined,
          used: { cpuTime: 0 },
          progress: Number.NEGATIVE_INFINITY,
          again: () => runInTurn({ call, item, settings, handle, replay }, queue?.enterAgain(call)),
        }
      : undefined
  return runInTurn({ call, item, settings, handle, replay }, turn)
}

interface Run {
  readonly call: Call
  readonly item: CatalogItem
  readonly settings: HandlerSettings
  readonly handle: (ctx: CallContext) => unknown
  readonly replay: Replay | undefined
}

function runInTurn(one: Run, turn: Turn | undefined): unknown {
  if (!turn) return run(one)
  const begin = () => {
    try {
      return run({ ...one, handle: inPlace(turn, one.handle) }, turn)
    } catch (error) {
      turn.leave()
      throw error
    }
  }
  return turn.ready ? turn.ready.then(begin) : begin()
}

const ofWhich = (waited: number) => (waited < 1 ? '' : `, of which it waited ${Math.round(waited)} ms for its turn`)

/** Wraps each wait of a handler for its client: frees the slot and pauses the time limit. */
function createWaiting(turn: Turn | undefined, limit: TimeLimit | undefined, isOver: () => boolean): Asking['waiting'] {
  let waits = 0
  return async ask => {
    if (waits++ === 0 && !isOver()) {
      limit?.pause()
      turn?.pause()
    }
    try {
      return await ask()
    } finally {
      if (--waits === 0) await turn?.retake()
      if (waits === 0 && !isOver()) limit?.run()
    }
  }
}

function run({ call, item, settings, handle, replay }: Run, turn?: Turn): unknown {
  let settle: ((result: Promise<unknown>) => void) | undefined
  let over = false
  const interrupt: Asking['interrupt'] = ask => {
    // A handler that did not wait for its question has returned already.
    if (over) return
    const result = ask()
    result.catch(() => undefined)
    settle?.(result)
  }
  const { timeout } = settings.limits.of(item)
  const waited = turn?.waited ?? 0
  let late: (() => void) | undefined
  const limit =
    timeout === undefined
      ? undefined
      : new TimeLimit(settings.clock, (replay?.timeLeft ?? timeout) - waited, () => late?.())
  const waiting = createWaiting(turn, limit, () => over)
  const ctx = new HandlerContext(call, item, settings, { interrupt, waiting, replay })
  const value = runToValue(ctx, handle)
  if (!isThenable(value)) {
    over = true
    limit?.end()
    return ctx.whenTold(() => value)
  }
  return new Promise((resolve, reject) => {
    let outlived: (() => void) | undefined
    late = () => {
      over = true
      const error = new HostError('callTimeout', { detail: `stopped after ${timeout} ms${ofWhich(waited)}` })
      outlived = settings.overdue(item, timeout ?? 0)
      ctx.end(error)
      ctx.whenTold(() => reject(error))
    }
    const ended = () => {
      over = true
      limit?.end()
      outlived?.()
      ctx.finish()
    }
    settle = result => {
      over = true
      const timeLeft = limit?.end()
      if (replay) replay.timeLeft = timeLeft
      resolve(ctx.whenTold(() => result))
      ctx.end(new Error('waiting for the client to answer'))
    }
    value.then(
      result => {
        ended()
        resolve(ctx.whenTold(() => result))
      },
      error => {
        ended()
        ctx.whenTold(() => reject(error))
      },
    )
  })
}

/** Maps the end of `run`, without a promise where the handler needed none. */
export function afterHandler(
  run: () => unknown,
  succeeded: (value: unknown) => object | Promise<object>,
  failed: (error: unknown) => object,
): object | Promise<object> {
  try {
    const value = run()
    return value instanceof Promise ? value.then(succeeded).catch(failed) : onValue(succeeded(value), failed)
  } catch (error) {
    return failed(error)
  }
}

const onValue = (value: object | Promise<object>, failed: (error: unknown) => object) =>
  value instanceof Promise ? value.catch(failed) : value

/**
 * What left a handler, as the client is told of it. It answers a request that was well formed, so it rides an HTTP 200,
 * except for what the host itself decided there: a capability that the client lacks, and a login that has ended, whose
 * challenge a client reads with a 401 alone. A ToolError's text is meant for the client; anything else that is no HostError
 * stays as it is, to be logged and hidden.
 */
export function handlerFailure(error: unknown): unknown {
  if (ToolError.is(error)) return new HostError('internal', { detail: error.message }).within200()
  if (!HostError.is(error)) return error
  const isChallenge = error.kind === 'unauthorized' && error.headers?.['WWW-Authenticate'] !== undefined
  return isChallenge || error.kind === 'missingCapability' ? error : error.within200()
}

/** How long a handler has for what it does once its signal aborted, milliseconds. */
const GRACE = 2_000
/** Told again, of one item, when there are twice as many, or after so long, milliseconds. */
const AGAIN = 60_000

interface Told {
  /** Handlers that go on past the grace. */
  count: number
  /** How many there were when the log was told last, and when that was. */
  last: number
  at: number
}

const FIX =
  'pass ctx.signal on to what it waits for, or look at ctx.signal.aborted between steps; `concurrency` bounds them'

/** What it gives is told that the time of a handler is over, and gives what is to be called once the handler is. */
export function watchOverdue(
  log: Pick<Logger, 'warn'>,
  figures: Pick<Figures, 'gauge'>,
  clock: Clock,
): (item: CatalogItem, limit: number) => () => void {
  const items = new WeakMap<CatalogItem, Told>()
  let all = 0
  const figure = { name: 'mcp_host_handlers_overdue', help: 'Handlers that run though the time of their call is over.' }
  figures.gauge(figure, () => all)

  function tell(item: CatalogItem, limit: number): Told {
    const told = items.get(item) ?? { count: 0, last: 0, at: Number.NEGATIVE_INFINITY }
    items.set(item, told)
    told.count++
    const now = clock.monotonic()
    if (told.count >= told.last * 2 || now - told.at > AGAIN) {
      told.last = told.count
      told.at = now
      const fields = { kind: item.kind, name: item.key, limit, running: told.count, fix: FIX }
      log.warn(fields, 'a handler goes on though its time is over: it ignores its signal')
    }
    return told
  }

  return (item, limit) => {
    all++
    let told: Told | undefined
    const timer = clock
      .setTimeout(() => {
        told = tell(item, limit)
      }, GRACE)
      .unref()
    return () => {
      all--
      clock.clear(timer)
      if (told) told.count--
    }
  }
}
