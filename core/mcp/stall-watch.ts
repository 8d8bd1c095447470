// Says in the log what held the event loop: while one handler computes, nobody else is served. What a handler does before
// its first `await` is measured; what it does later is found by a timer that came late while the process computed.

import type { Logger } from '../kernel/log.ts'
import type { CatalogItem } from './catalog.ts'

/** How often the timer should come, milliseconds; what it finds may have lasted so much longer than it says. */
const INTERVAL = 50
/** Names in one line. */
const MAX_NAMES = 5

export interface StallWatch {
  /** Runs what a handler does until it first waits. */
  run<T>(item: CatalogItem, handle: () => T): T
  /** The handler waits, and goes on whenever it likes until `end`. */
  begin(item: CatalogItem): void
  end(item: CatalogItem): void
}

/** The tasks of a host's start and end. */
interface Life {
  readonly starting: Array<() => void | Promise<void>>
  readonly closing: Array<() => void | Promise<void>>
}

type Log = Pick<Logger, 'warn' | 'debug'>

const OFF: StallWatch = {
  run: (_, handle) => handle(),
  begin() {},
  end() {},
}

/** `threshold` in milliseconds; undefined: nothing is watched. */
export function createStallWatch(threshold: number | undefined, log: Log, life: Life): StallWatch {
  return threshold === undefined ? OFF : watch(threshold, log, life)
}

function watch(threshold: number, log: Log, { starting, closing }: Life): StallWatch {
  const running = new Map<CatalogItem, number>()
  /** Those that ended since the timer came last: one of them may be why it was late. */
  const ended = new Set<CatalogItem>()
  let timer: NodeJS.Timeout | undefined
  let last = 0
  let cpu = process.cpuUsage()
  /** Milliseconds since the timer came last that are in the log already. */
  let told = 0

  function tick() {
    const now = performance.now()
    const used = process.cpuUsage(cpu)
    const late = now - last - INTERVAL - told
    // Late for another reason: the machine was busy with others, or slept.
    const computed = (used.user + used.system) / 1_000 - told
    if (late > threshold && computed > threshold) tell(late)
    last = now
    cpu = process.cpuUsage()
    told = 0
    ended.clear()
  }

  function tell(ms: number) {
    const items = [...new Set([...running.keys(), ...ended])]
    const fields = { ms: Math.round(ms), among: items.slice(0, MAX_NAMES).map(({ kind, key }) => `${kind} ${key}`) }
    // With nobody to name it is of no use to those who run tools: long bodies, a start, a collection of garbage.
    if (items.length === 0) log.debug(fields, 'the event loop was held')
    else log.warn(fields, 'the event loop was held, and nobody else served, while these handlers ran')
  }

  starting.push(() => {
    last = performance.now()
    cpu = process.cpuUsage()
    timer = setInterval(tick, INTERVAL).unref()
  })
  closing.push(() => clearInterval(timer))

  return {
    run(item, handle) {
      const start = performance.now()
      try {
        return handle()
      } finally {
        const ms = performance.now() - start
        if (ms > threshold) {
          told += ms
          const { kind, key } = item
          log.warn({ ms: Math.round(ms), kind, name: key }, 'a handler held the event loop: nobody else was served')
        }
      }
    },
    begin(item) {
      running.set(item, (running.get(item) ?? 0) + 1)
    },
    end(item) {
      const left = (running.get(item) ?? 1) - 1
      if (left > 0) running.set(item, left)
      else running.delete(item)
      ended.add(item)
    },
  }
}
