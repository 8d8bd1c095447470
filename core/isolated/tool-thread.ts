// One thread of isolated tools, as the host has it: loads their module, runs one call at a time, and is ended where a call
// goes over its bounds.
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads'
import type { Clock, Timer } from '../http/clock.ts'
import type { IsolatedCall } from '../mcp/isolation.ts'
import type { CallUsage } from '../mcp/replayed-asks.ts'
import { startThread } from '../threads/start-thread.ts'
import { createTimeCount } from './cpu-time.ts'
import { endProcessWithout } from './end-process.ts'
import { type Ended, endedBy, type Over } from './ended.ts'
import { heapLimit, type Whole } from './memory-limits.ts'
import type { FromThread, ThreadData, ToThread } from './messages.ts'
import { packError, unpackError } from './pack-error.ts'
import type { Probe } from './probe.ts'
import { dataOf, type ServedCall, serveCall } from './serve-call.ts'

const MEGABYTE = 1_024 ** 2
/** How long a handler may go on when its call is over, milliseconds. */
const STOP_TIME = 1_000
/** Between the first and the second try to end a thread, milliseconds. */
const TRY_AGAIN = 25
/** How long a call waits for the end of its thread before it is answered, milliseconds. */
const END_TIME = 1_000
/** Bytes by which the process grew since a thread was asked what it holds; without growth it is asked every second. */
const GROWTH = 16 * MEGABYTE
const ASK_EVERY = 1_000
/** Looks after which a thread that has not answered is judged by how the process has grown meanwhile. */
const OVERDUE = 10

export interface ThreadSettings {
  readonly file: string
  /** Bytes. */
  readonly memory: number
  /** Milliseconds. */
  readonly fetchTimeout: number
  readonly clock: Clock
  readonly probe: Probe | undefined
  /** Told of what ends a call of its tool, and of what is thrown outside of every call. */
  readonly tell: (ended: Ended) => void
}

interface Running {
  readonly isolated: IsolatedCall
  readonly served: ServedCall
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
  readonly used: CallUsage
  readonly countTime: () => void
  /** Whether its memory was checked. */
  isChecked: boolean
  readonly stop: () => void
  stopTimer: Timer | undefined
  over: Over | undefined
}

let calls = 0

export class ToolThread {
  /** Resolves once the module is loaded; rejects with why it is not. */
  readonly ready: Promise<void>
  /** Resolves once the thread is no more. */
  readonly gone: Promise<void>
  /** Runs no further call: it holds too much, or something of an earlier call failed in it. */
  isSpent = false
  /** The number that Linux has for it. */
  task: string | undefined
  /** Whose call it runs or ran. */
  lastTool = ''
  readonly #settings: ThreadSettings
  readonly #worker: Worker
  readonly #port: MessagePort
  readonly #read: Int32Array<SharedArrayBuffer>
  #running: Running | undefined
  #failure: Error | undefined
  #endingSince: number | undefined
  #terminating: NodeJS.Timeout | undefined
  #asked = 0
  #sizeThen = 0
  #unanswered = 0

  constructor(settings: ThreadSettings) {
    this.#settings = settings
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    this.#read = new Int32Array(new SharedArrayBuffer(4))
    const workerData: ThreadData = { port: port2, file: settings.file, memory: settings.memory, read: this.#read }
    const worker = startThread('core/isolated/thread/main', {
      workerData,
      transferList: [port2],
      name: 'isolated tools',
      resourceLimits: { maxOldGenerationSizeMb: heapLimit(settings.memory, settings.probe !== undefined) },
    })
    this.#worker = worker
    // Each try to end it waits for its end.
    worker.setMaxListeners(0)
    this.ready = new Promise((resolve, reject) => {
      port1.on('message', (message: FromThread) => {
        if (message.kind === 'ready') {
          this.task = message.task
          resolve()
        } else if (message.kind === 'unloadable') {
          reject(unpackError(message.error))
          this.end()
        } else this.#hearSafely(message)
      })
      port1.on('messageerror', error => this.#settle()?.reject(error))
      worker.on('error', error => {
        this.#failure ??= error
      })
      worker.on('exit', code => {
        reject(this.#failure ?? new Error(`its thread ended while it was loaded, by process.exit(${code})`))
        this.#lost(code)
      })
    })
    this.ready.catch(() => undefined)
    this.gone = new Promise(resolve => worker.once('exit', () => resolve()))
    this.gone.then(endProcessWithout(this))
    port1.unref()
    worker.unref()
  }

  /** The handler's value. Rejects with what it throws, or with why it was ended. */
  run(isolated: IsolatedCall): Promise<unknown> {
    const { ctx, tool } = isolated
    const { signal } = ctx
    const id = calls++
    return new Promise((resolve, reject) => {
      const stop = () => this.#stop()
      const served = serveCall(id, isolated, message => this.#post(message))
      const used = isolated.used ?? { cpuTime: 0 }
      const countTime = createTimeCount(this.#worker, this.task, used)
      const begun = { isolated, served, resolve, reject, stop, used, countTime }
      this.#running = { ...begun, isChecked: false, stopTimer: undefined, over: undefined }
      if (isolated.used) countTime()
      this.lastTool = tool.name
      // While it runs it keeps the process alive, as other work does.
      this.#worker.ref()
      signal.addEventListener('abort', stop, { once: true })
      try {
        this.#port.postMessage(this.#callMessage(id, isolated))
      } catch (cause) {
        const why = 'what the handler is given must be data, to cross to its thread'
        this.#settle()?.reject(new TypeError(`${tool.name}: ${why}: ${packError(cause).message}`, { cause }))
      }
      if (signal.aborted) stop()
    })
  }

  #callMessage(id: number, isolated: IsolatedCall): ToThread {
    const { name, index } = isolated.origin
    const at = { name, index, tool: isolated.tool.name }
    return { kind: 'call', id, at, args: isolated.args, data: dataOf(isolated, this.#settings.fetchTimeout) }
  }

  #post(message: ToThread) {
    this.#port.postMessage(message)
  }

  /** Nothing that a thread says is an error of the host's own. */
  #hearSafely(message: FromThread) {
    try {
      this.#hear(message)
    } catch (error) {
      this.isSpent = true
      this.#settle()?.reject(error)
    }
  }

  #hear(message: FromThread) {
    const running = this.#running
    if (message.kind === 'tell') Atomics.add(this.#read, 0, 1)
    if (message.kind === 'uncaught') return this.#uncaught(message)
    if (!running || !('id' in message) || message.id !== running.served.id) return
    if (message.kind === 'tell') running.served.tell(message)
    else if (message.kind === 'ask') running.served.ask(message)
    else if (message.kind === 'over') this.#endOver('memory')
    else if (message.kind === 'value' || message.kind === 'thrown') {
      if (running.isolated.used) running.countTime()
      this.#keeps(message.held)
      const ended = this.#settle()
      if (message.kind === 'value') ended?.resolve(message.value)
      else ended?.reject(ended.served.thrownBy(message.error))
    }
  }

  /** What a call leaves behind is not the next one's. */
  #keeps(held: number) {
    const { memory, tell } = this.#settings
    if (held <= memory) return
    this.isSpent = true
    tell({ tool: this.lastTool, over: 'kept', bound: memory })
  }

  #uncaught({ id, tool, error }: Extract<FromThread, { kind: 'uncaught' }>) {
    this.isSpent = true
    const thrown = unpackError(error)
    if (this.#running && (id === undefined || id === this.#running.served.id)) this.#settle()?.reject(thrown)
    else this.#settings.tell({ tool: tool || this.lastTool, over: 'uncaught', thrown })
    if (!this.#running) this.end()
  }

  /** The call is over for its client: its handler may end by itself, for a while. */
  #stop() {
    const running = this.#running
    if (!running) return
    this.#post({ kind: 'abort', id: running.served.id, reason: packError(running.isolated.ctx.signal.reason) })
    running.stopTimer = this.#settings.clock.setTimeout(() => this.#endOver('stopped'), STOP_TIME).unref()
  }

  #settle(): Running | undefined {
    const running = this.#running
    if (!running) return undefined
    this.#running = undefined
    this.#settings.clock.clear(running.stopTimer)
    running.isolated.ctx.signal.removeEventListener('abort', running.stop)
    this.#worker.unref()
    return running
  }

  /** Looks whether the call that runs is within its bounds. */
  look(now: number, whole: Whole) {
    const running = this.#running
    if (!running || running.over) return
    running.countTime()
    if (running.used.cpuTime > running.isolated.bounds.cpuTime) this.#endOver('cpuTime')
    else if (running.isChecked) this.#lookAtMemory(now, whole)
    else this.#askNow(now, whole.size)
    running.isChecked = true
  }

  /** Whoever does not answer while the process grows by more than all may hold together is taken for the cause. */
  #lookAtMemory(now: number, { size, allowed }: Whole) {
    const { probe } = this.#settings
    const grown = size - this.#sizeThen
    this.#sizeThen = Math.min(this.#sizeThen, size)
    this.#unanswered = probe?.owes(this.#worker) ? this.#unanswered + 1 : 0
    if (this.#unanswered > OVERDUE && grown > allowed) this.#endOver('memory')
    else if (this.#unanswered === 0 && (grown > GROWTH || now - this.#asked > ASK_EVERY)) this.#askNow(now, size)
  }

  #askNow(now: number, size: number) {
    this.#asked = now
    this.#sizeThen = size
    this.#unanswered = 0
    this.#settings.probe?.ask(this.#worker)
  }

  #endOver(over: Over) {
    if (!this.#running) return
    this.#running.over = over
    this.end()
  }

  /** The thread is no more: by us, by `process.exit`, or by what V8 could not go on with. */
  #lost(code: number) {
    this.isSpent = true
    clearTimeout(this.#terminating)
    this.#port.close()
    this.#answerEnded(this.#failure ?? code)
  }

  #answerEnded(cause: Error | number) {
    const running = this.#settle()
    if (!running) return
    const { tool, bounds } = running.isolated
    const ended = endedBy(tool.name, bounds, running.over, cause)
    if (ended.told) this.#settings.tell(ended.told)
    running.reject(ended.error)
  }

  /** Neither runs a call nor is to end. */
  get isIdle(): boolean {
    return this.#running === undefined && this.#endingSince === undefined
  }

  get endingFor(): number {
    return this.#endingSince === undefined ? 0 : performance.now() - this.#endingSince
  }

  get memory(): number {
    return this.#settings.memory
  }

  /** At once, whatever runs in it. */
  end(): void {
    this.isSpent = true
    if (this.#endingSince !== undefined) return
    this.#endingSince = performance.now()
    this.#terminate(TRY_AGAIN)
  }

  /** Again until it is done: what comes while the inspector looks ends that look alone. */
  #terminate(after: number) {
    this.#worker.terminate().catch(() => undefined)
    // What goes on in native code keeps nobody waiting.
    if (this.#running?.over && this.endingFor > END_TIME) this.#answerEnded(1)
    this.#terminating = setTimeout(() => this.#terminate(2 * after), after).unref()
  }
}
