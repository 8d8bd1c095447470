// Puts changes on the bus, and knows which of them are not acknowledged yet: an answer waits for those of its call.
// For catalog.ts, where all changes are made.
import type { Logger } from '../kernel/log.ts'
import type { Change, ChangeBus } from './change-bus.ts'

/** What one call, or somebody outside of calls, publishes. */
export interface Publisher {
  /** Never throws: what the bus refuses is logged. */
  readonly publish: (change: Change) => void
  /** Resolves once all that was published so far is acknowledged, or is known to be late; undefined: nothing is open. */
  readonly pending: () => Promise<void> | undefined
}

export interface Publishing {
  open(): Publisher
}

/** Changes that were not acknowledged are told of this often at most, milliseconds. */
const LOG_INTERVAL = 10_000

/** Puts every change on each of these buses. */
export function createPublishing(buses: readonly ChangeBus[], log: Logger): Publishing {
  let late = 0
  let loggedAt = Number.NEGATIVE_INFINITY

  function logLate(err: unknown) {
    late++
    if (performance.now() - loggedAt < LOG_INTERVAL) return
    loggedAt = performance.now()
    log.warn({ err, changes: late }, 'changes are not acknowledged by the change bus: clients may hear of them late')
    late = 0
  }

  return {
    open() {
      const open = new Set<Promise<void>>()

      function publishOn(bus: ChangeBus, change: Change) {
        try {
          const publishing = bus.publish(change)
          if (publishing === undefined) return
          const told: Promise<void> = Promise.resolve(publishing)
            .catch(logLate)
            .finally(() => open.delete(told))
          open.add(told)
        } catch (err) {
          logLate(err)
        }
      }

      return {
        publish(change) {
          for (const bus of buses) publishOn(bus, change)
        },
        pending: () => (open.size === 0 ? undefined : Promise.all(open).then(() => undefined)),
      }
    },
  }
}
