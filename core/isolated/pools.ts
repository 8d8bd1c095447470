// Every thread of a host: a pool for each version of a module and each bound of memory, and the watch over what they take.
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../http/clock.ts'
import type { Figures } from '../kernel/figures.ts'
import type { Logger } from '../kernel/log.ts'
import type { Definition } from '../mcp/define.ts'
import { moduleOf, sizeInWords, timeInWords } from '../mcp/isolate.ts'
import type { IsolatedCall } from '../mcp/isolation.ts'
import type { Ended } from './ended.ts'
import { keepLoopsInterruptible } from './memory-limits.ts'
import { Pool } from './pool.ts'
import { openProbe } from './probe.ts'

/** How often what runs is looked at, milliseconds. */
const LOOK_EVERY = 25
/** How long the end of a host waits for its threads, milliseconds. */
const CLOSE_WITHIN = 2_000

export interface PoolsSettings {
  /** Milliseconds. */
  readonly fetchTimeout: number
  readonly log: Logger
  readonly clock: Clock
  /** Told of each call that was ended. */
  readonly ended: ReturnType<Figures['counter']>
}

export interface Pools {
  run(isolated: IsolatedCall): Promise<unknown>
  /** Other modules are served no more: their threads end when their calls have. */
  keepOnly(definitions: Iterable<Definition>): void
  countThreads(): number
  close(): Promise<void>
}

const WORDS: Readonly<Record<Ended['over'], readonly [what: string, fix: string]>> = {
  cpuTime: [
    'an isolated tool computed for too long, and its thread was ended',
    'let it compute less in one call, or raise cpuTime in its isolate',
  ],
  memory: [
    'an isolated tool held too much memory, and its thread was ended',
    'let it hold less at a time, or raise memory in its isolate',
  ],
  stopped: [
    'an isolated tool went on when its call was over, and its thread was ended',
    'end the handler when ctx.signal aborts',
  ],
  kept: [
    'an isolated tool left too much memory behind, and its thread was ended after the call',
    'bound what its module keeps between calls, or raise memory in its isolate',
  ],
  uncaught: [
    'an isolated tool threw where nobody catches it, after its call had ended; its thread is replaced',
    'wait for all that a handler starts, and catch what that throws',
  ],
  unloadable: [
    'the module of an isolated tool cannot be loaded in a thread, so its calls fail',
    'it is imported by the host and by each thread: mend what it throws there',
  ],
}

const UNENDING = 'an isolated tool cannot be ended: its thread computes in native code; the process ends without it'
const UNENDING_FIX = 'give one call of native code less to do, or use its asynchronous form'

function tellBy({ log, ended }: PoolsSettings) {
  return ({ tool, over, bound, thrown }: Ended): void => {
    const [what, fix] = WORDS[over]
    const inWords = over === 'memory' || over === 'kept' ? sizeInWords : timeInWords
    const limit = bound === undefined ? {} : { [over === 'unloadable' ? 'pause' : 'bound']: inWords(bound) }
    const fields = { tool, over, ...limit, ...(thrown !== undefined && { err: thrown }), fix }
    if (over === 'unloadable') log.error(fields, what)
    else log.warn(fields, what)
    ended(1, { tool, over })
  }
}

function lookAt(pools: readonly Pool[]) {
  const now = performance.now()
  const size = process.memoryUsage.rss()
  const busy = pools.flatMap(({ threads }) => [...threads].filter(({ isIdle }) => !isIdle))
  const allowed = busy.reduce((sum, { memory }) => sum + memory, 0)
  for (const thread of busy) thread.look(now, { size, allowed })
}

/** What computes in native code ends later: the host does not wait for it, and the process not for long. */
async function closeAll(pools: readonly Pool[], log: Logger): Promise<void> {
  const over = new AbortController()
  const late = pause(CLOSE_WITHIN, true, { signal: over.signal }).catch(() => false)
  const gone = Promise.all(pools.map(pool => pool.close())).then(() => over.abort())
  if (!(await Promise.race([late, gone]))) return
  for (const tool of pools.flatMap(({ unending }) => unending)) log.warn({ tool, fix: UNENDING_FIX }, UNENDING)
}

export async function openPools(settings: PoolsSettings): Promise<Pools> {
  const pools = new Map<object, Map<string, Pool>>()
  keepLoopsInterruptible()
  const probe = await openProbe()
  const tell = tellBy(settings)
  /** Pools of modules that are served no more. */
  const retired = new Set<Pool>()
  let running = 0
  let timer: NodeJS.Timeout | undefined

  const all = () => [...[...pools.values()].flatMap(bounds => [...bounds.values()]), ...retired]

  function poolFor({ origin, bounds }: IsolatedCall): Pool {
    const { memory, threads } = bounds
    const ofModule = pools.get(origin.exported) ?? new Map<string, Pool>()
    pools.set(origin.exported, ofModule)
    const key = `${memory} ${threads}`
    const { fetchTimeout, clock } = settings
    const pool = ofModule.get(key) ?? new Pool({ file: origin.file, memory, threads, fetchTimeout, clock, probe, tell })
    ofModule.set(key, pool)
    return pool
  }

  return {
    async run(isolated) {
      running++
      timer ??= setInterval(() => lookAt(all()), LOOK_EVERY).unref()
      try {
        return await poolFor(isolated).run(isolated)
      } finally {
        running--
        if (running === 0) {
          clearInterval(timer)
          timer = undefined
        }
      }
    },
    keepOnly(definitions) {
      for (const pool of retired) if (pool.threads.size === 0) retired.delete(pool)
      const served = new Set<object | undefined>([...definitions].map(definition => moduleOf(definition)?.exported))
      for (const [exported, bounds] of pools) {
        if (served.has(exported)) continue
        pools.delete(exported)
        for (const pool of bounds.values()) {
          pool.retire()
          retired.add(pool)
        }
      }
    },
    countThreads: () => all().reduce((sum, pool) => sum + pool.threads.size, 0),
    async close() {
      clearInterval(timer)
      await closeAll(all(), settings.log)
    },
  }
}
