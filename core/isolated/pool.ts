// The threads of one module under one bound of memory: started when a call comes, each with one call at a time; more calls
// wait in line. One thread is kept when all is quiet.
import type { Timer } from '../http/clock.ts'
import { HostError, shuttingDown } from '../http/errors.ts'
import type { IsolatedCall } from '../mcp/isolation.ts'
import { ToolError } from '../mcp/tool-error.ts'
import { type ThreadSettings, ToolThread } from './tool-thread.ts'

/** Calls that may wait for a thread. */
export const MAX_WAITING = 100
/** How long more threads than one wait for a call, milliseconds. */
const KEPT_IDLE = 60_000
/** After a module could not be loaded in a thread, milliseconds: doubled each time. */
const FIRST_PAUSE = 1_000
const LONGEST_PAUSE = 60_000

export interface PoolSettings extends ThreadSettings {
  /** At most. */
  readonly threads: number
}

interface Waiting {
  readonly isolated: IsolatedCall
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
  readonly leave: () => void
}

const busy = (tool: string): HostError =>
  new HostError('tooManyRequests', {
    detail: `all threads of "${tool}" are busy, and ${MAX_WAITING} calls wait; try again in 1 s`,
    headers: { 'Retry-After': '1' },
    data: { reason: 'busy', limit: 'isolate', retryAfter: 1, retryable: true },
    reason: `isolate of ${tool}: ${MAX_WAITING} calls wait`,
  })

export class Pool {
  readonly #settings: PoolSettings
  readonly #threads = new Set<ToolThread>()
  readonly #idle: ToolThread[] = []
  readonly #line = new Set<Waiting>()
  readonly #sleepers = new Map<ToolThread, Timer>()
  #starting = 0
  #failures = 0
  #failedUntil = 0
  #failure: unknown
  readonly #ending = new Set<ToolThread>()
  #isRetired = false
  #isClosed = false

  constructor(settings: PoolSettings) {
    this.#settings = settings
  }

  /** Those that run or may run a call. */
  get threads(): ReadonlySet<ToolThread> {
    return this.#threads
  }

  /** The tools that hold up threads which were told to end. */
  get unending(): readonly string[] {
    return [...this.#threads, ...this.#ending].map(({ lastTool }) => lastTool)
  }

  run(isolated: IsolatedCall): Promise<unknown> {
    const { tool, ctx } = isolated
    if (this.#isClosed) return Promise.reject(shuttingDown())
    const thread = this.#takeIdle()
    if (thread) return this.#runIn(thread, isolated)
    const left = this.#failedUntil - this.#settings.clock.monotonic()
    if (left > 0) return Promise.reject(this.#unloadable(tool.name, left))
    if (this.#line.size >= MAX_WAITING) throw busy(tool.name)
    if (ctx.signal.aborted) return Promise.reject(cancelled())
    return new Promise((resolve, reject) => {
      const gone = () => {
        waiting.leave()
        reject(cancelled())
      }
      const leave = () => {
        this.#line.delete(waiting)
        ctx.signal.removeEventListener('abort', gone)
      }
      const waiting: Waiting = { isolated, resolve, reject, leave }
      this.#line.add(waiting)
      ctx.signal.addEventListener('abort', gone, { once: true })
      this.#startMore()
    })
  }

  #takeIdle(): ToolThread | undefined {
    let thread = this.#idle.pop()
    while (thread?.isSpent) thread = this.#idle.pop()
    return thread
  }

  /** Threads that end count less: what cannot be interrupted, as one long call of zlib, must not keep all others waiting. */
  #startMore() {
    if (this.#isClosed) return
    const { threads } = this.#settings
    const mayStart = () => this.#threads.size < threads && this.#threads.size + this.#ending.size < 2 * threads
    while (this.#starting < this.#line.size && mayStart()) this.#start()
  }

  async #start() {
    const thread = new ToolThread(this.#settings)
    this.#threads.add(thread)
    this.#starting++
    thread.gone.then(() => this.#gone(thread))
    try {
      await thread.ready
      this.#starting--
      this.#failures = 0
      this.#free(thread)
    } catch (error) {
      this.#starting--
      this.#cannotLoad(error)
    }
  }

  #cannotLoad(error: unknown) {
    const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.#failures)
    this.#failures++
    this.#failure = error
    this.#failedUntil = this.#settings.clock.monotonic() + pause
    const [first] = this.#line
    if (first && !this.#isClosed) {
      this.#settings.tell({ tool: first.isolated.tool.name, over: 'unloadable', bound: pause, thrown: error })
    }
    for (const { isolated, leave, reject } of [...this.#line]) {
      leave()
      reject(this.#unloadable(isolated.tool.name, pause))
    }
  }

  #unloadable(tool: string, left: number): Error {
    const why = `${tool}: its module cannot be loaded in a thread; the next try is in ${Math.ceil(left / 1_000)} s`
    return new Error(why, { cause: this.#failure })
  }

  /** Never rejects as a thread of ours: it takes the next call when this one has ended. */
  async #runIn(thread: ToolThread, isolated: IsolatedCall): Promise<unknown> {
    this.#settings.clock.clear(this.#sleepers.get(thread))
    this.#sleepers.delete(thread)
    try {
      return await thread.run(isolated)
    } finally {
      this.#free(thread)
    }
  }

  #free(thread: ToolThread) {
    if (thread.isSpent) return this.#end(thread)
    const [next] = this.#line
    if (next) {
      next.leave()
      this.#runIn(thread, next.isolated).then(next.resolve, next.reject)
      return
    }
    if (this.#isRetired) return this.#end(thread)
    this.#idle.push(thread)
    this.#sleepers.set(thread, this.#settings.clock.setTimeout(() => this.#sleep(thread), KEPT_IDLE).unref())
  }

  #sleep(thread: ToolThread) {
    if (this.#threads.size > 1) this.#end(thread)
  }

  #end(thread: ToolThread) {
    this.#leave(thread)
    this.#ending.add(thread)
    thread.end()
    this.#startMore()
  }

  #leave(thread: ToolThread) {
    this.#threads.delete(thread)
    this.#settings.clock.clear(this.#sleepers.get(thread))
    this.#sleepers.delete(thread)
    const at = this.#idle.indexOf(thread)
    if (at !== -1) this.#idle.splice(at, 1)
  }

  #gone(thread: ToolThread) {
    this.#leave(thread)
    this.#ending.delete(thread)
    if (this.#settings.clock.monotonic() > this.#failedUntil) this.#startMore()
  }

  /** No new calls come: what runs and waits is run, and then nothing is kept. */
  retire(): void {
    this.#isRetired = true
    for (const thread of [...this.#idle]) this.#end(thread)
  }

  /** At once; what runs is ended. Resolves when no thread is left. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const { leave, reject } of [...this.#line]) {
      leave()
      reject(shuttingDown())
    }
    const threads = [...this.#threads, ...this.#ending]
    for (const thread of threads) thread.end()
    await Promise.all(threads.map(({ gone }) => gone))
  }
}

const cancelled = () => new ToolError('The call was cancelled before it ran.')
