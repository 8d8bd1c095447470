// Worker processes: one pool per module version and set of limits. A process runs one call at a time.

import { deserialize } from 'node:v8'
import { Tinypool } from 'tinypool'
import { type CallContext, HostError, ToolError } from '../../core/index.ts'
import { addCount, type InternalHost } from '../../core/internal.ts'
import { errorText } from '../../core/plugin.ts'
import { describeIsolationLimits, limitOwnerOf, processEntry } from '../../core/transport.ts'
import {
  type ExceededLimit,
  type HostRequest,
  type IsolatedCall,
  type NotifyMethod,
  type PackedError,
  packError,
  type Task,
  type TaskResult,
  type ToHost,
  type ToProcess,
  toBytes,
  unpackError,
} from './messages.ts'

/** Time for an error of a plugin function to reach the handler and return as its response, milliseconds. */
const HELD_FOR = 250

function notify(ctx: CallContext, what: NotifyMethod, [one, two, three]: readonly never[]): void {
  if (what === 'progress') ctx.progress(one as never, two, three)
  else if (what === 'log') ctx.log(one as never, two as never, three)
  else if (what === 'disconnect') ctx.disconnect(one)
  else if (what === 'resourceUpdated') ctx.host.resourceUpdated(one as never)
}

async function request({ ctx, call, members }: IsolatedCall, { what, args }: HostRequest): Promise<unknown> {
  const [one, two] = args as [never, never]
  if (what === 'elicit') return ctx.elicit(one, two)
  if (what === 'sample') return ctx.sample(one, two)
  if (what === 'roots') return ctx.roots(one)
  if (what === 'ping') return ctx.ping()
  if (what === 'settled') return ctx.host.settled()
  const member = members.functions.includes(what) ? (Reflect.get(ctx, what) as unknown) : undefined
  if (typeof member !== 'function') throw new TypeError(`ctx.${what} does not exist`)
  const release = call.hold()
  try {
    return await member(...args)
  } finally {
    setTimeout(release, HELD_FOR).unref()
  }
}

function serveCall(isolated: IsolatedCall, send: (message: ToProcess) => void) {
  const failures = new Map<number, unknown>()

  async function answer(ask: HostRequest) {
    const { n } = ask
    try {
      send({ kind: 'answer', n, value: await request(isolated, ask) })
    } catch (thrown) {
      failures.set(n, thrown)
      send({ kind: 'refusal', n, error: { ...packError(thrown), ask: n } })
    }
  }

  return {
    notify: (what: NotifyMethod, args: readonly unknown[]) => notify(isolated.ctx, what, args as never[]),
    request: (asks: readonly HostRequest[]) => void asks.map(answer),
    errorOf: (packed: PackedError): unknown =>
      packed.ask !== undefined && failures.has(packed.ask) ? failures.get(packed.ask) : unpackError(packed),
  }
}

const MAX_WAITING = 100
/** Maximum calls of one user or IP address in one pool: its tools share the pool. */
const MAX_PER_OWNER = MAX_WAITING / 2
/** How long a process waits for its next call, milliseconds. */
const IDLE_TIME = 60_000
/** How long a handler can continue after its call was cancelled or timed out, milliseconds. */
const STOP_TIME = 1_000

export interface Pools {
  run(isolated: IsolatedCall): Promise<unknown>
  size(): number
  close(): Promise<void>
}

type Worker = Tinypool['threads'][number]

const MESSAGES: Readonly<Record<ExceededLimit | 'uncaught', readonly [what: string, fix: string]>> = {
  cpuTime: [
    'An isolated tool exceeded its CPU time; its process was terminated',
    'do less work in one call, or raise cpuTime in its isolate',
  ],
  memory: [
    'An isolated tool exceeded its memory; its process was terminated',
    'use less memory, or raise memory in its isolate',
  ],
  stopped: [
    'An isolated tool kept running after its call ended; its process was terminated',
    'end the handler when ctx.signal aborts',
  ],
  kept: [
    'An isolated tool retained too much memory after its call; its thread is replaced',
    'reduce the memory that its module retains between calls, or raise memory in its isolate',
  ],
  uncaught: [
    'An isolated tool threw an error after the end of its call; its thread is replaced',
    'await everything that the handler starts, and catch its errors',
  ],
}

/** V8 aborts the process if it cannot allocate, and the kernel kills it if the machine has no memory left. */
const isOutOfMemory = (code: number | null, signal: NodeJS.Signals | undefined) =>
  signal === 'SIGABRT' || signal === 'SIGKILL' || code === 134

function busy(tool: string, waiting: string): HostError {
  return new HostError('tooManyRequests', {
    detail: `all processes of "${tool}" are busy, and ${waiting} wait; try again in 1 s`,
    headers: { 'Retry-After': '1' },
    data: { reason: 'busy', limit: 'isolate', retryAfter: 1, retryable: true },
    reason: `isolate of ${tool}: ${waiting} wait`,
  })
}

function createPool({ processes }: IsolatedCall['limits']): Tinypool {
  const { filename, execArgv } = processEntry('plugins/isolate/process/main')
  // Two processes cannot use one inspector port.
  const own = process.execArgv.filter(option => !option.startsWith('--inspect'))
  const pool = new Tinypool({
    runtime: 'child_process',
    filename,
    execArgv: execArgv.length > 0 ? execArgv : own,
    env: process.env as Record<string, string>,
    serialization: 'advanced',
    minThreads: 0,
    maxThreads: processes,
    idleTimeout: IDLE_TIME,
  })
  // An idle process ended. If a process with a call ends, the call reports it.
  pool.on('error', () => undefined)
  return pool
}

function taskOf(isolated: IsolatedCall): Task {
  const { tool, origin, limits, used, args, ctx, members, fetchTimeout, headers: fetchHeaders } = isolated
  const { user, session, route, client, meta } = ctx
  return {
    tool: tool.name,
    file: origin.file,
    name: origin.name,
    index: origin.index,
    args,
    data: { user, session, route, headers: { ...ctx.headers }, client, meta, fetchTimeout, fetchHeaders, members },
    memory: limits.memory,
    cpuTime: limits.cpuTime - (used?.cpuTime ?? 0),
  }
}

export function createPools(
  { log, clock }: Pick<InternalHost, 'log' | 'clock'>,
  ended: (by: number, labels: { tool: string; over: string }) => void,
): Pools {
  const byModule = new WeakMap<object, Map<string, Tinypool>>()
  const open = new Set<Tinypool>()

  function reportLimit(tool: string, over: ExceededLimit | 'uncaught', more: object = {}) {
    const [what, fix] = MESSAGES[over]
    log.warn({ code: 'MH2930', tool, over, ...more, fix }, what)
    ended(1, { tool, over })
  }

  function poolFor({ origin, limits }: IsolatedCall): Tinypool {
    for (const pool of open) if (pool.threads.length === 0) open.delete(pool)
    const ofModule = byModule.get(origin.exported) ?? new Map<string, Tinypool>()
    byModule.set(origin.exported, ofModule)
    const key = `${limits.memory} ${limits.processes}`
    const pool = ofModule.get(key) ?? createPool(limits)
    ofModule.set(key, pool)
    open.add(pool)
    return pool
  }

  const outOfMemory = new WeakSet<Worker>()
  const watched = new WeakSet<Worker>()

  function watchExit(pool: Tinypool, pid: number): Worker | undefined {
    const worker = pool.threads.find(({ threadId }) => threadId === pid)
    if (!worker || watched.has(worker)) return worker
    watched.add(worker)
    const note = (code: number | null, signal?: NodeJS.Signals) => {
      if (isOutOfMemory(code, signal)) outOfMemory.add(worker)
    }
    worker.once('exit', note)
    return worker
  }

  const counts = new WeakMap<Tinypool, Map<string, number>>()

  async function run(isolated: IsolatedCall): Promise<unknown> {
    const pool = poolFor(isolated)
    const owners = counts.get(pool) ?? new Map<string, number>()
    counts.set(pool, owners)
    const { user, offer } = isolated.call
    const owner = limitOwnerOf({ user, ip: offer.ip })
    const own = owners.get(owner) ?? 0
    if (own >= MAX_PER_OWNER) throw busy(isolated.tool.name, `${own} calls of one user or address`)
    addCount(owners, owner, 1)
    try {
      return await runIn(pool, isolated)
    } finally {
      addCount(owners, owner, -1)
    }
  }

  async function runIn(pool: Tinypool, isolated: IsolatedCall): Promise<unknown> {
    const { tool, limits, ctx, used, args } = isolated
    const words = describeIsolationLimits(limits)
    try {
      toBytes(args)
    } catch (cause) {
      throw new TypeError(`${tool.name}: its arguments cannot be sent to its process: ${errorText(cause)}`, { cause })
    }
    // `maxQueue` of Tinypool would also reject the call that starts a process when the queue is full.
    if (pool.queueSize >= MAX_WAITING) throw busy(tool.name, `${MAX_WAITING} calls`)
    const kill = new AbortController()
    let send: ((message: ToProcess) => void) | undefined
    let over: ExceededLimit | undefined
    let worker: Worker | undefined
    let stopTimer: ReturnType<typeof clock.setTimeout> | undefined
    const served = serveCall(isolated, message => send?.(message))

    function end(what: ExceededLimit) {
      over ??= what
      kill.abort()
    }
    function stop() {
      if (!send) return kill.abort()
      // The process is starting. `begun` calls this function again, so that the process remains usable.
      if (!worker) return
      send({ kind: 'abort', reason: packError(ctx.signal.reason) })
      stopTimer = clock.setTimeout(() => end('stopped'), STOP_TIME).unref()
    }
    function receive(message: ToHost) {
      if (message.kind === 'begun') {
        worker = watchExit(pool, message.pid)
        if (ctx.signal.aborted) stop()
      } else if (message.kind === 'tell') served.notify(message.what, message.args)
      else if (message.kind === 'ask') served.request(message.asks)
      else if (message.kind === 'uncaught') reportLimit(message.tool, 'uncaught', { err: unpackError(message.error) })
      else if (message.over === 'kept') reportLimit(tool.name, 'kept', { limit: words.memory })
      else end(message.over)
    }
    const channel = {
      onMessage(listener: (message: ToProcess) => void) {
        send = listener
      },
      postMessage(message: ToHost) {
        // A handler's messages must not cause errors in the host.
        try {
          receive(message)
        } catch (err) {
          log.debug({ err, tool: tool.name }, 'A message of an isolated tool was ignored')
        }
      },
    }

    if (ctx.signal.aborted) throw new ToolError('The call was cancelled before it ran.')
    ctx.signal.addEventListener('abort', stop, { once: true })
    try {
      const result: TaskResult = await pool.run(taskOf(isolated), { signal: kill.signal, channel })
      if (used) used.cpuTime += result.cpuTime
      if ('thrown' in result) throw served.errorOf(result.thrown)
      return deserialize(result.value)
    } catch (error) {
      if (worker && outOfMemory.has(worker)) over ??= 'memory'
      if (over === 'memory' || over === 'cpuTime') {
        reportLimit(tool.name, over, { limit: words[over] })
        throw new ToolError(`${tool.name} used more than ${words[over]} and was terminated`)
      }
      if (over === 'stopped') {
        reportLimit(tool.name, over)
        throw new ToolError(`${tool.name} kept running after its call ended, and was terminated`)
      }
      if (!send && ctx.signal.aborted) throw new ToolError('The call was cancelled before it ran.')
      throw error
    } finally {
      ctx.signal.removeEventListener('abort', stop)
      clock.clear(stopTimer)
      // After a process ended, Tinypool starts a new one only at the next `run`, not for queued calls.
      if (pool.queueSize > 0 && pool.threads.length < limits.processes) pool.run(null).catch(() => undefined)
    }
  }

  return {
    run,
    size: () => [...open].reduce((sum, pool) => sum + pool.threads.length, 0),
    async close() {
      await Promise.all([...open].map(pool => pool.destroy()))
    },
  }
}
