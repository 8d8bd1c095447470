// Tells a worker to end and sees that it does: one whose event loop is held up hears nothing, and would stay for ever.
import type { Logger } from '../../core/create-host.ts'
import { HEARING_TIME, type Order } from './message.ts'
import type { WorkerEnd, WorkerProcess } from './worker-process.ts'

/** True where `awaited` resolves within `patience` milliseconds. */
export async function isInTime(awaited: Promise<unknown>, patience: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>(resolve => {
    timer = setTimeout(resolve, patience, false)
  })
  const outcome = await Promise.race([awaited.then(() => true), late])
  clearTimeout(timer)
  return outcome
}

/**
 * Gives the order, undefined where the worker ends of its own accord, and resolves when it has ended: by itself, or after
 * `patience` milliseconds by SIGKILL; sooner where it does not even hear the order.
 */
export async function endInTime(
  worker: WorkerProcess,
  order: Exclude<Order, { mcpHost: 'leave' }> | undefined,
  patience: number,
  log: Logger,
): Promise<WorkerEnd> {
  const start = performance.now()
  if (order) worker.order(order)
  const heard = !order || (await isInTime(Promise.race([worker.heard, worker.ended]), HEARING_TIME))
  const ended = heard && (await isInTime(worker.ended, patience - (performance.now() - start)))
  if (!ended) {
    const why = heard
      ? 'it took too long to drain'
      : 'it did not hear that it is to end; something holds up its event loop'
    log.error({ worker: worker.pid }, `killed a worker: ${why}`)
    worker.kill()
  }
  return worker.ended
}
