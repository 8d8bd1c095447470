// A worker process of isolated tools. It runs handlers in a thread and watches the limits of the thread.
import { MessageChannel } from 'node:worker_threads'
import { startThread } from '../../../core/transport.ts'
import {
  type FromThread,
  type Outcome,
  packError,
  type Task,
  type TaskResult,
  type ThreadData,
  type ToHost,
  type ToThread,
  unpackError,
} from '../messages.ts'

const MEGABYTE = 1_024 ** 2
/** Bytes that the process can hold beyond `memory`: garbage that V8 has not collected. */
const GARBAGE = 64 * MEGABYTE
/** How often the limits are checked, milliseconds. */
const CHECK_EVERY = 25

interface Thread {
  run(task: Task): Promise<Outcome>
  send(message: ToThread): void
  end(): void
  readonly active: () => number
  /** Bytes of the process after the start of the thread. */
  readonly base: number
  readonly isSpent: () => boolean
}

const send = (message: ToHost, sent?: () => void) => void process.send?.(message, undefined, undefined, sent)
const failure = (message: string): Outcome => {
  const error = new Error(message)
  error.stack = `${error.name}: ${message}`
  return { thrown: packError(error) }
}

async function openThread({ file, memory }: Task): Promise<Thread> {
  const { port1: port, port2 } = new MessageChannel()
  const read = new Int32Array(new SharedArrayBuffer(4))
  const workerData: ThreadData = { file, port: port2, read }
  const worker = startThread('plugins/isolate/thread/main', {
    workerData,
    transferList: [port2],
    resourceLimits: { maxOldGenerationSizeMb: memory / MEGABYTE },
  })
  let isSpent = false
  let failed: unknown
  let tool = ''
  let settle: ((outcome: Outcome) => void) | undefined
  let resolveReady: () => void
  let rejectReady: (reason: unknown) => void
  const ready = new Promise<void>((resolve, reject) => {
    resolveReady = resolve
    rejectReady = reject
  })

  port.on('message', (message: FromThread) => {
    if (message.kind === 'ready') resolveReady()
    else if (message.kind === 'unloadable') {
      rejectReady(unpackError(message.error))
      worker.terminate()
    } else if (message.kind === 'end') {
      isSpent ||= message.spent
      settle?.(message.outcome)
    } else if (message.kind === 'tell') send(message, () => Atomics.add(read, 0, 1))
    else {
      if (message.kind === 'uncaught') isSpent = true
      send(message)
    }
  })
  worker.on('error', error => {
    failed = error
  })
  worker.on('exit', code => {
    isSpent = true
    rejectReady(failed ?? new Error(`the module ended its thread by process.exit(${code})`))
    if (failed === undefined)
      settle?.(failure(`${tool} ended its thread by process.exit(${code}): throw an error instead`))
    else if ((failed as { code?: string }).code === 'ERR_WORKER_OUT_OF_MEMORY') send({ kind: 'over', over: 'memory' })
    else settle?.({ thrown: packError(failed) })
  })

  await ready
  return {
    base: process.memoryUsage.rss(),
    active: () => worker.performance.eventLoopUtilization().active,
    isSpent: () => isSpent,
    send: message => port.postMessage(message),
    end: () => void worker.terminate(),
    run: task =>
      new Promise(resolve => {
        tool = task.tool
        settle = outcome => {
          settle = undefined
          resolve(outcome)
        }
        port.postMessage({ kind: 'call', task } satisfies ToThread)
      }),
  }
}

function watch({ base, active }: Thread, { memory, cpuTime }: Task): () => number {
  const before = active()
  const startUsage = process.cpuUsage()
  /** Excludes time in which the thread was preempted, and CPU time of this process outside of the thread. */
  function used(): number {
    const { user, system } = process.cpuUsage(startUsage)
    return Math.min(active() - before, (user + system) / 1_000)
  }
  const timer = setInterval(() => {
    const over =
      used() > cpuTime ? 'cpuTime' : process.memoryUsage.rss() - base > memory + GARBAGE ? 'memory' : undefined
    if (over === undefined) return
    clearInterval(timer)
    send({ kind: 'over', over })
  }, CHECK_EVERY)
  return () => {
    clearInterval(timer)
    return used()
  }
}

let thread: Thread | undefined

process.on('message', (message: ToThread) => {
  if (message.kind !== undefined) thread?.send(message)
})

// The host ended without ending this process. `process.exit` would wait for native code of the thread.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))

/** Runs one call. The pool calls it without a task to start a process. */
export default async function run(task: Task | null): Promise<TaskResult | undefined> {
  if (!task) return undefined
  try {
    thread ??= await openThread(task)
  } catch (cause) {
    const error = new Error(`${task.tool}: its module cannot be loaded in a worker process`, { cause })
    return { thrown: packError(error), cpuTime: 0 }
  }
  const stop = watch(thread, task)
  const ended = thread.run(task)
  send({ kind: 'begun', pid: process.pid })
  const outcome = await ended
  const cpuTime = stop()
  const isFull = process.memoryUsage.rss() - thread.base > task.memory
  if (isFull) send({ kind: 'over', over: 'kept' })
  if (isFull || thread.isSpent()) {
    thread.end()
    thread = undefined
  }
  return { ...outcome, cpuTime }
}
