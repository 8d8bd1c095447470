// A worker process from the primary's perspective.

import type { Worker } from 'node:cluster'
import cluster from 'node:cluster'
import { setTimeout as sleep } from 'node:timers/promises'
import { withTimeout } from '../../core/http/clock.ts'
import type { Logger } from '../../core/kernel/log.ts'
import type { CloseReport } from '../../core/kernel/shutdown.ts'
import { errorText } from '../../core/plugin.ts'
import {
  CONFIRM_TIMEOUT,
  FIRST_WORKER,
  isFromWorker,
  type Order,
  PRIMARY,
  type PrimaryMessage,
  type Serving,
} from './message.ts'

export interface WorkerEnd {
  readonly code: number | null
  readonly signal: string | null
  readonly problem?: string
  readonly report?: CloseReport
}

export interface WorkerProcess {
  readonly pid: number | undefined
  readonly serving: Serving | undefined
  readonly ready: Promise<Serving | undefined>
  readonly ended: Promise<WorkerEnd>
  readonly acknowledged: Promise<void>
  readonly failing: Promise<string>
  order(order: Order): void
  /** True if the worker responded to the previous check; sends the next check. Always true after an order. */
  isResponsive(): boolean
  kill(): void
}

/** Time limit for the last messages of an exited worker, milliseconds. */
const LAST_MESSAGE_TIMEOUT = 500

function tryFork(first: boolean): Worker | Error {
  try {
    return cluster.fork({ [FIRST_WORKER]: first ? 'yes' : 'no', [PRIMARY]: String(process.pid) })
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

const failedWorker = (error: Error): WorkerProcess => ({
  pid: undefined,
  serving: undefined,
  ready: Promise.resolve(undefined),
  ended: Promise.resolve({ code: null, signal: null, problem: errorText(error) }),
  acknowledged: new Promise(() => {}),
  failing: new Promise(() => {}),
  order() {},
  isResponsive: () => false,
  kill() {},
})

type WorkerReport = Pick<WorkerEnd, 'problem' | 'report'>

const waitForEnd = (worker: Worker, report: WorkerReport): Promise<WorkerEnd> =>
  new Promise<WorkerEnd>(resolve => {
    const closed = new Promise<void>(done => worker.once('disconnect', done))
    worker.once('exit', async (code, signal) => {
      // A connection that was never accepted can delay the end of the channel.
      if (signal === null) await Promise.race([closed, sleep(LAST_MESSAGE_TIMEOUT)])
      resolve({ code, signal, ...report })
    })
    worker.on('error', error => {
      // Other errors concern messages to a process that is ending.
      if (worker.process.pid === undefined) resolve({ code: null, signal: null, problem: errorText(error) })
    })
  })

function createSignal<Value>() {
  let settle: (value: Value) => void = () => {}
  const promise = new Promise<Value>(resolve => {
    settle = resolve
  })
  return { promise, settle }
}

export function startWorker(first = false): WorkerProcess {
  const worker = tryFork(first)
  if (worker instanceof Error) return failedWorker(worker)
  const report: { -readonly [Key in keyof WorkerReport]: WorkerReport[Key] } = {}
  let serving: Serving | undefined
  let isOrdered = false
  let isResponsive = true
  const ready = createSignal<Serving | undefined>()
  const acknowledged = createSignal<void>()
  const failing = createSignal<string>()
  const send = (message: PrimaryMessage) => {
    if (worker.isConnected()) worker.send(message, () => {})
  }
  worker.on('message', message => {
    if (!isFromWorker(message)) return
    if (message.mcpHost === 'ready') {
      const { mcpHost: _, ...info } = message
      serving = info
      ready.settle(serving)
    } else if (message.mcpHost === 'failed' || message.mcpHost === 'failing') {
      report.problem = message.problem
      if (message.mcpHost === 'failing') failing.settle(message.problem)
    } else if (message.mcpHost === 'pong') {
      isResponsive = true
    } else if (message.mcpHost === 'acknowledged') {
      acknowledged.settle()
    } else if (message.mcpHost === 'drained') {
      report.report = { finished: message.finished, cancelled: message.cancelled }
      send({ mcpHost: 'leave' })
    }
  })
  const ended = waitForEnd(worker, report)
  void ended.then(() => ready.settle(serving))
  return {
    pid: worker.process.pid,
    get serving() {
      return serving
    },
    ready: ready.promise,
    ended,
    acknowledged: acknowledged.promise,
    failing: failing.promise,
    order(message) {
      isOrdered = true
      send(message)
    },
    isResponsive() {
      if (isOrdered || !isResponsive) return isOrdered
      isResponsive = false
      send({ mcpHost: 'ping' })
      return true
    },
    kill: () => void worker.process.kill('SIGKILL'),
  }
}

const settlesWithin = (promise: Promise<unknown>, limit: number): Promise<boolean> =>
  withTimeout(
    promise.then(() => true),
    limit,
    () => false,
  )

/**
 * Sends the order, if any, and resolves when the worker has ended. SIGKILL follows after `limit` milliseconds, or after
 * `CONFIRM_TIMEOUT` without confirmation (blocked event loop).
 */
export async function stopWorker(
  worker: WorkerProcess,
  order: Exclude<Order, { mcpHost: 'leave' }> | undefined,
  limit: number,
  log: Logger,
): Promise<WorkerEnd> {
  const start = performance.now()
  if (order) worker.order(order)
  const acknowledged =
    !order || (await settlesWithin(Promise.race([worker.acknowledged, worker.ended]), CONFIRM_TIMEOUT))
  if (!acknowledged || !(await settlesWithin(worker.ended, limit - (performance.now() - start)))) {
    const why = acknowledged
      ? 'it took too long to drain'
      : 'it did not react to the stop message; its event loop is blocked'
    log.error({ code: 'MH3123', worker: worker.pid }, `killed a worker: ${why}`)
    worker.kill()
  }
  return worker.ended
}
