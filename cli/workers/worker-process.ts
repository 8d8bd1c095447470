// A worker as the primary sees it: a process that says when it is ready, takes two orders, and ends.

import type { Worker } from 'node:cluster'
import cluster from 'node:cluster'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CloseReport, Logger } from '../../core/create-host.ts'
import { errorText } from '../../core/index.ts'
import { FIRST_WORKER, HEARING_TIME, isTold, type Order, PRIMARY, type Pulse, type Serving } from './message.ts'

/** The message with which node:cluster passes a connection to a worker. Undocumented, unchanged since Node 0.12. */
interface NewConnection {
  readonly act: 'newconn'
  readonly seq: number
}

interface Closable {
  close(): void
}

const isNewConnection = (message: unknown): message is NewConnection =>
  typeof message === 'object' && message !== null && 'seq' in message && 'act' in message && message.act === 'newconn'

/** Closes the connections that a new worker has not accepted when it exits. */
function closeUnaccepted({ process: child }: Worker): void {
  const untaken = new Map<unknown, Closable>()
  const send = child.send.bind(child) as (...args: unknown[]) => boolean
  child.send = (...args: unknown[]) => {
    const [message, handle] = args
    if (isNewConnection(message) && handle !== undefined) untaken.set(message.seq, handle as Closable)
    return send(...args)
  }
  child.on('internalMessage', (message: { ack?: unknown } | null) => untaken.delete(message?.ack))
  child.once('exit', () => {
    for (const connection of untaken.values()) connection.close()
  })
}

/** How a worker ended. */
export interface WorkerEnd {
  /** The exit code; null where a signal ended it. */
  readonly code: number | null
  readonly signal: string | null
  /** Why it could not start, in words for the operator, where it could say so. */
  readonly problem?: string
  /** What became of its requests, where it drained. */
  readonly report?: CloseReport
}

export interface WorkerProcess {
  /** Undefined where no process could be made. */
  readonly pid: number | undefined
  /** What it serves; undefined until it listens. */
  readonly serving: Serving | undefined
  /** Resolves with that once it listens, or with undefined when it ended before. */
  readonly ready: Promise<Serving | undefined>
  readonly ended: Promise<WorkerEnd>
  /** Resolves when it has heard an order. */
  readonly heard: Promise<void>
  /** Resolves with why, when something broke in it that nobody caught: it drains, and ends. */
  readonly failing: Promise<string>
  order(order: Order): void
  /** Whether it has answered what this asked last; where it has, it is asked again. One that is to end is left to whoever said so. */
  isAwake(): boolean
  /** Ends it at once. */
  kill(): void
}

/** How long to wait for what a worker said before it ended, milliseconds. */
const LAST_WORDS = 500

function tryFork(first: boolean): Worker | Error {
  try {
    return cluster.fork({ [FIRST_WORKER]: first ? 'yes' : 'no', [PRIMARY]: String(process.pid) })
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

const notMade = (error: Error): WorkerProcess => ({
  pid: undefined,
  serving: undefined,
  ready: Promise.resolve(undefined),
  ended: Promise.resolve({ code: null, signal: null, problem: errorText(error) }),
  heard: new Promise(() => {}),
  failing: new Promise(() => {}),
  order() {},
  isAwake: () => false,
  kill() {},
})

/** Whether a worker answers, until it is told to end: whoever told it sees to that. */
function createPulse(ask: () => void) {
  let awake = true
  let leaving = false
  return {
    answered() {
      awake = true
    },
    leave() {
      leaving = true
    },
    isAwake() {
      if (leaving || !awake) return leaving
      awake = false
      ask()
      return true
    },
  }
}

interface LastWords {
  problem?: string
  report?: CloseReport
}

/** Resolves with how it ended, and what it `told` before. */
const whenEnded = (worker: Worker, told: LastWords): Promise<WorkerEnd> =>
  new Promise<WorkerEnd>(resolve => {
    const closed = new Promise<void>(done => worker.once('disconnect', done))
    worker.once('exit', async (code, signal) => {
      // What it said last is read before its channel closes. A connection that it never took may hold that back for ever.
      if (signal === null) await Promise.race([closed, sleep(LAST_WORDS)])
      resolve({ code, signal, ...told })
    })
    worker.on('error', error => {
      // Other errors are of messages to a process that is ending; a process that was never made does not end.
      if (worker.process.pid === undefined) resolve({ code: null, signal: null, problem: errorText(error) })
    })
  })

/** Starts a worker: this program again, with the same arguments. */
export function startWorker(first = false): WorkerProcess {
  const worker = tryFork(first)
  if (worker instanceof Error) return notMade(worker)
  closeUnaccepted(worker)
  const told: LastWords = {}
  let serving: Serving | undefined
  let settle: () => void = () => {}
  const ready = new Promise<Serving | undefined>(resolve => {
    settle = () => resolve(serving)
  })
  let hear: () => void = () => {}
  const heard = new Promise<void>(resolve => {
    hear = resolve
  })
  let fail: (problem: string) => void = () => {}
  const failing = new Promise<string>(resolve => {
    fail = resolve
  })
  const tell = (message: Order | Pulse) => {
    if (worker.isConnected()) worker.send(message, () => {})
  }
  const pulse = createPulse(() => tell({ mcpHost: 'pulse' }))
  worker.on('message', message => {
    if (!isTold(message)) return
    if (message.mcpHost === 'ready') {
      const { url, routes, file, files } = message
      serving = { url, routes, file, files }
      settle()
    } else if (message.mcpHost === 'failed') {
      told.problem = message.problem
    } else if (message.mcpHost === 'failing') {
      told.problem = message.problem
      fail(message.problem)
    } else if (message.mcpHost === 'awake') {
      pulse.answered()
    } else if (message.mcpHost === 'heard') {
      hear()
    } else if (message.mcpHost === 'drained') {
      told.report = { finished: message.finished, cancelled: message.cancelled }
      tell({ mcpHost: 'leave' })
    }
  })
  const ended = whenEnded(worker, told)
  void ended.then(settle)
  return {
    pid: worker.process.pid,
    get serving() {
      return serving
    },
    ready,
    ended,
    heard,
    failing,
    order(message) {
      pulse.leave()
      tell(message)
    },
    isAwake: pulse.isAwake,
    kill: () => void worker.process.kill('SIGKILL'),
  }
}

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
