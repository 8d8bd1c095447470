// Detects handlers that block the event loop. It measures the time before a handler's first `await`. Later stalls show as a late
// timer; if several handlers are possible, close-watch.ts finds out which one causes the next stall. Results go to the log, the
// metrics and the readiness check (stall-readiness.ts).

import type { Clock, Timer } from '../http/clock.ts'
import { ownWork } from '../http/own-work.ts'
import { type Report, StartError } from '../http/start-error.ts'
import type { Figures } from '../kernel/figures.ts'
import type { KernelHost } from '../kernel/kernel-host.ts'
import type { Logger } from '../kernel/log.ts'
import type { KernelNotes } from '../kernel/set-up.ts'
import type { CatalogItem } from './catalog.ts'
import { createCloseWatch } from './close-watch.ts'
import { HeldWindow, WINDOW } from './held-window.ts'
import { amongProcesses, createStallReadiness } from './stall-readiness.ts'

/** How often the timer should come, milliseconds; what it finds may have lasted so much longer than it says. */
const INTERVAL = 50
/** What a handler does at once is remembered from here on, milliseconds: several of them together may be a stall. */
const NOTABLE = 10
/** Names in one line. */
const MAX_NAMES = 5

export interface StallWatch {
  /** Runs what a handler does until it first waits. */
  run<T>(item: CatalogItem, handle: () => T): T
  /** The handler waits, and goes on whenever it likes until `end`. */
  begin(item: CatalogItem): void
  end(item: CatalogItem): void
}

export interface StallSettings {
  /** Milliseconds; undefined: nothing is watched. */
  readonly threshold: number | undefined
  /** Milliseconds of the window for which the loop is held before the host is not ready; undefined: it stays ready. */
  readonly unready: number | undefined
}

/** What it tells, and the tasks of a host's start and end. */
interface Surroundings extends Pick<KernelNotes, 'ready' | 'starting' | 'closing'> {
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn' | 'debug'>
  readonly figures: Pick<Figures, 'counter'>
  /** Those that serve behind one address. */
  readonly processes: number
  readonly inEveryProcess: KernelHost['inEveryProcess']
}

/** Of readiness. */
const CONDITION = 'event loop'

/** Nothing is watched. */
export const UNWATCHED: StallWatch = {
  run: (_, handle) => handle(),
  begin() {},
  end() {},
}

const HELD = {
  name: 'mcp_host_event_loop_held_seconds_total',
  help: 'How long handlers held the event loop, in stalls longer than tools.stallWarning; several: one of those that ran.',
  labels: ['handler'],
}
const SEVERAL = { handler: 'several' }

/** Reports what can never be. */
export function checkStallSettings({ unready }: StallSettings, report: Report): void {
  if (unready === undefined || unready <= WINDOW * 1_000) return
  const what = `it is a part of the last ${WINDOW} s, so it is at most '${WINDOW}s'; 'off' leaves readiness alone`
  report(new StartError(what, { at: ['tools', 'stallUnready'] }))
}

/** Undefined for the threshold: nothing is watched. */
export function createStallWatch(settings: StallSettings, around: Surroundings): StallWatch {
  const { threshold, unready } = settings
  if (threshold === undefined) return UNWATCHED
  const stalls = watch(threshold, around)
  if (unready !== undefined) {
    const isReady = createStallReadiness(unready)
    const own = () => isReady(stalls.window.held(around.clock.monotonic()), around.clock.monotonic())
    const askAll = around.processes === 1 ? undefined : around.inEveryProcess(CONDITION, own)
    around.ready.set(CONDITION, () => (askAll ? amongProcesses(own(), askAll) : own()))
  }
  return stalls
}

const nameOf = ({ kind, key }: CatalogItem) => `${kind.slice(0, -1)} ${key}`

/** Writes down each stall, and says whose it was as far as anybody can tell. */
function createTeller({ log, figures, clock }: Pick<Surroundings, 'log' | 'figures' | 'clock'>) {
  const window = new HeldWindow()
  const count = figures.counter(HELD)

  function note(ms: number, items: readonly CatalogItem[]) {
    const [first] = items
    const names = items.map(nameOf)
    window.note(clock.monotonic(), ms, names)
    count(ms / 1_000, first && items.length === 1 ? { handler: nameOf(first) } : SEVERAL)
  }

  return {
    window,
    /** A handler did it before it waited, or after, where it was followed. */
    one(ms: number, item: CatalogItem) {
      note(ms, [item])
      const { kind, key } = item
      log.warn({ ms: Math.round(ms), kind, name: key }, 'a handler held the event loop: nobody else was served')
    },
    among(ms: number, items: readonly CatalogItem[]) {
      // With nobody to name it is of no use to those who run tools: long bodies, a start, a collection of garbage.
      if (items.length === 0) return log.debug({ ms: Math.round(ms) }, 'the event loop was held')
      note(ms, items)
      const { whose } = window.held(clock.monotonic())
      const among = items.slice(0, MAX_NAMES).map(({ kind, key }) => `${kind} ${key}`)
      // Of those who ran this time, the one that was there every time.
      const fields = { ms: Math.round(ms), among, ...(whose.length === 1 && { likely: whose[0] }) }
      return log.warn(fields, 'the event loop was held, and nobody else served, while these handlers ran')
    },
  }
}

function watch(
  threshold: number,
  { starting, closing, clock, ...told }: Surroundings,
): StallWatch & { window: HeldWindow } {
  const running = new Map<CatalogItem, number>()
  /** Those that ended since the timer came last: one of them may be why it was late. */
  const ended = new Set<CatalogItem>()
  /** What handlers did at once since then, milliseconds. */
  const parts = new Map<CatalogItem, number>()
  const teller = createTeller({ ...told, clock })
  const closely = createCloseWatch(clock)
  let timer: Timer | undefined
  let last = 0
  let cpu = process.cpuUsage()
  let own = ownWork()
  /** Milliseconds since the timer came last that are in the log already. */
  let inLog = 0

  /** Handlers computed together for longer than the threshold. */
  function tell(late: number, followed: ReadonlyMap<CatalogItem, number>, now: number) {
    const known = [...parts.values()].reduce((sum, ms) => sum + ms, 0)
    // Many short ones, one after the other: those that wait have nothing to do with it.
    if (late - known <= threshold) return teller.among(late, [...parts.keys()])
    const [first] = [...followed].sort(([, one], [, other]) => other - one)
    if (first && first[1] > threshold) return teller.one(first[1], first[0])
    const items = [...new Set([...running.keys(), ...ended])]
    teller.among(late, items)
    if (items.length > 1) closely.begin(now)
  }

  function tick() {
    const now = clock.monotonic()
    const followed = closely.take(now)
    const used = process.cpuUsage(cpu)
    const others = inLog + ownWork() - own
    const late = now - last - INTERVAL - others
    // Late for another reason: the machine was busy with others, or slept.
    const computed = (used.user + used.system) / 1_000 - others
    if (late > threshold && computed > threshold) tell(late, followed, now)
    last = now
    cpu = process.cpuUsage()
    own = ownWork()
    inLog = 0
    ended.clear()
    parts.clear()
  }

  starting.push(() => {
    last = clock.monotonic()
    cpu = process.cpuUsage()
    timer = clock.setInterval(tick, INTERVAL).unref()
  })
  closing.push(() => {
    clock.clear(timer)
    closely.end()
  })

  return {
    window: teller.window,
    run(item, handle) {
      const start = clock.monotonic()
      try {
        return closely.run(item, handle)
      } finally {
        const ms = clock.monotonic() - start
        if (ms > threshold) {
          inLog += ms
          teller.one(ms, item)
        } else if (ms > NOTABLE) parts.set(item, (parts.get(item) ?? 0) + ms)
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
