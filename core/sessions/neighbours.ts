// Connects the worker processes of one config (`--workers`) through the primary process.
import type { CountTogether } from '../kernel/kernel-host.ts'
import type { Change, ChangeBus } from '../mcp/change-bus.ts'

/** Methods reject with the HostError `unavailable` if the primary process does not respond. */
export interface Neighbours {
  /** Subscribes to all texts. `missed`: an earlier text was dropped. */
  hear(told: (text: string, number: number) => void, missed: (number: number) => void): void
  /** Publishes in one order for all. Resolves once delivery is certain. */
  tell(text: string): Promise<void>
  /** The last number. Numbers have no gaps. */
  readonly last: number
  /** Undefined if texts are gone or the number is from an earlier run. */
  since(number: number): Promise<readonly string[] | undefined>
  /** Registers this process by name. Texts arrive in `send` order. */
  join(node: string, received: (text: string) => void): void
  leave(node: string): Promise<void>
  /** False if there is no such process. `share`: the unit of fairness, such as a session. */
  send(node: string, text: string, share: string): Promise<boolean>
  has(node: string): Promise<boolean>
  readonly count: CountTogether
}

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
