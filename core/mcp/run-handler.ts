// The run of one handler: its place, its time limit, its questions, its end.
import { HostError } from '../http/errors.ts'
import type { Call } from './call.ts'
import { inPlace, type Turn } from './call-queue.ts'
import type { CatalogItem } from './catalog.ts'
import { HandlerContext, type HandlerSettings, type Interrupt } from './context.ts'
import type { CallContext } from './define.ts'
import { UNWATCHED } from './stall-watch.ts'

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'

/** What it throws at once it rejects with, where somebody must be told of a change first. */
function runToValue(ctx: HandlerContext, handle: (ctx: CallContext) => unknown): unknown {
  try {
    return handle(ctx)
  } catch (error) {
    return ctx.whenTold(() => {
      throw error
    })
  }
}

/**
 * Runs a handler to its value, or to the `input_required` result that stands for its questions.
 * Rejects with what the handler throws, and with `callTimeout` when its time is over. A handler that ignores `signal`
 * goes on when its call is cancelled or its time is over; nobody hears of it any more, and it keeps its place until it ends.
 */
export function runHandler(
  call: Call,
  item: CatalogItem,
  settings: HandlerSettings,
  handle: (ctx: CallContext) => unknown,
  turn?: Turn,
): unknown {
  if (!turn) return run(call, item, settings, handle)
  const begin = () => {
    try {
      return run(call, item, settings, inPlace(turn, handle), turn.waited)
    } catch (error) {
      turn.leave()
      throw error
    }
  }
  return turn.ready ? turn.ready.then(begin) : begin()
}

const ofWhich = (waited: number) => (waited < 1 ? '' : `, of which it waited ${Math.round(waited)} ms for its turn`)

/** `waited`: milliseconds of its time that are over. */
function run(
  call: Call,
  item: CatalogItem,
  settings: HandlerSettings,
  handle: (ctx: CallContext) => unknown,
  waited = 0,
): unknown {
  let interrupted: Promise<object> | undefined
  let settle: ((result: Promise<object>) => void) | undefined
  const interrupt: Interrupt = result => {
    // A handler that never waited for its question has answered already: nobody else listens to this then.
    result.catch(() => undefined)
    interrupted = result
    settle?.(result)
  }
  const ctx = new HandlerContext(call, item, settings, interrupt)
  const { clock } = settings
  const { timeout, isolate } = settings.limits.of(item)
  // What computes in a thread holds no event loop but its own.
  const stalls = isolate ? UNWATCHED : settings.stalls
  const since = timeout === undefined ? 0 : clock.monotonic() - waited
  const value = stalls.run(item, () => runToValue(ctx, handle))
  if (!isThenable(value)) return interrupted ?? ctx.whenTold(() => value)
  stalls.begin(item)
  return new Promise((resolve, reject) => {
    let outlived: (() => void) | undefined
    // What it computed before it waited is part of its time, too.
    const timer =
      timeout === undefined
        ? undefined
        : clock.setTimeout(() => stop(timeout), Math.max(0, timeout - (clock.monotonic() - since)))
    function stop(limit: number) {
      const error = new HostError('callTimeout', { detail: `stopped after ${limit} ms${ofWhich(waited)}` })
      outlived = settings.overdue(item, limit)
      ctx.end(error)
      ctx.whenTold(() => reject(error))
    }
    const ended = () => {
      clock.clear(timer)
      outlived?.()
      stalls.end(item)
      ctx.finish()
    }
    settle = result => {
      clock.clear(timer)
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
