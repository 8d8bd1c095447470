// Handlers that go on though the time of their call is over: they ignore `ctx.signal`. Nobody can stop them; the log names them,
// and the figures say how many there are.
import type { Clock } from '../http/clock.ts'
import type { Figures } from '../kernel/figures.ts'
import type { Logger } from '../kernel/log.ts'
import type { CatalogItem } from './catalog.ts'

/** How long a handler has for what it does once its signal aborted, milliseconds. */
const GRACE = 2_000
/** Told again, of one item, when there are twice as many, or after so long, milliseconds. */
const AGAIN = 60_000

interface Told {
  /** Handlers that go on past the grace. */
  count: number
  /** How many there were when the log was told last, and when that was. */
  last: number
  at: number
}

const FIX =
  'pass ctx.signal on to what it waits for, or look at ctx.signal.aborted between steps; `concurrency` bounds them'

/** What it gives is told that the time of a handler is over, and gives what is to be called once the handler is. */
export function watchOverdue(
  log: Pick<Logger, 'warn'>,
  figures: Pick<Figures, 'gauge'>,
  clock: Clock,
): (item: CatalogItem, limit: number) => () => void {
  const items = new WeakMap<CatalogItem, Told>()
  let all = 0
  const figure = { name: 'mcp_host_handlers_overdue', help: 'Handlers that run though the time of their call is over.' }
  figures.gauge(figure, () => all)

  function tell(item: CatalogItem, limit: number): Told {
    const told = items.get(item) ?? { count: 0, last: 0, at: Number.NEGATIVE_INFINITY }
    items.set(item, told)
    told.count++
    const now = clock.monotonic()
    if (told.count >= told.last * 2 || now - told.at > AGAIN) {
      told.last = told.count
      told.at = now
      const fields = { kind: item.kind, name: item.key, limit, running: told.count, fix: FIX }
      log.warn(fields, 'a handler goes on though its time is over: it ignores its signal')
    }
    return told
  }

  return (item, limit) => {
    all++
    let told: Told | undefined
    const timer = clock
      .setTimeout(() => {
        told = tell(item, limit)
      }, GRACE)
      .unref()
    return () => {
      all--
      clock.clear(timer)
      if (told) told.count--
    }
  }
}
