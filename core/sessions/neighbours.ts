// The worker processes of one config (`--workers`), as one of them reaches the others through the primary process.
import type { CountTogether } from '../kernel/kernel-host.ts'
import type { Change, ChangeBus } from '../mcp/change-bus.ts'

/** All methods reject with the HostError `unavailable` if the primary process is gone or does not respond. */
export interface Neighbours {
  /** Subscribes this process to all texts. `missed`: some text before this number was dropped. */
  hear(told: (text: string, number: number) => void, missed: (number: number) => void): void
  /** Publishes to all subscribers, in one order for all. Resolves once delivery is certain. */
  tell(text: string): Promise<void>
  /** The number of the last text; numbers have no gaps. */
  readonly last: number
  /** The texts after this number; undefined if some are gone or the number is from an earlier run. */
  since(number: number): Promise<readonly string[] | undefined>
  /** Registers this process by name. Texts arrive in the order in which `send` resolved. */
  join(node: string, received: (text: string) => void): void
  leave(node: string): Promise<void>
  /** Sends to the process with this name; false if there is none. `share` is the unit of fairness, such as a session. */
  send(node: string, text: string, share: string): Promise<boolean>
  /** Whether a process with this name is running. */
  has(node: string): Promise<boolean>
  readonly count: CountTogether
}

/** The default of the slot `changeBus` with several worker processes. */
export function createNeighbourBus(neighbours: Neighbours): ChangeBus {
  const listeners = new Set<(change: Change, place?: string) => void>()
  let isSubscribed = false

  function dispatch(change: Change, place?: string) {
    for (const listener of [...listeners]) listener(change, place)
  }

  return {
    publish: change => neighbours.tell(JSON.stringify(change)),
    subscribe(listener) {
      listeners.add(listener)
      if (!isSubscribed) {
        isSubscribed = true
        neighbours.hear(
          (text, number) => {
            const change: Change = JSON.parse(text)
            if (change.kind === 'missed') dispatch(change)
            else dispatch(change, String(number))
          },
          () => dispatch({ kind: 'missed' }),
        )
      }
      return () => listeners.delete(listener)
    },
    history: {
      get position() {
        return String(neighbours.last)
      },
      isAfter: (one, other) => Number(one) > Number(other),
      async since(place) {
        const first = Number(place) + 1
        const texts = await neighbours.since(first - 1)
        return texts?.map((text, index) => ({ change: JSON.parse(text), place: String(first + index) }))
      },
    },
  }
}
