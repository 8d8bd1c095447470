// Connects the worker processes of one config (`--workers`) through the primary process.
import type { CountTogether } from '../kernel/kernel-host.ts'
import type { Bus } from '../store/bus.ts'

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

/** The bus of all processes of this host. */
export function createNeighbourBus(node: string, neighbours: Neighbours): Bus {
  const listeners = new Set<(text: string | undefined, position?: string) => void>()
  let receiver: ((text: string) => void) | undefined
  let hasLeft = false

  function deliver(text: string | undefined, position?: string) {
    for (const listener of [...listeners]) listener(text, position)
  }

  return {
    shared: 'host',
    node,
    publish: text => neighbours.tell(text),
    subscribe(listener) {
      if (listeners.size === 0) {
        neighbours.hear(
          (text, number) => deliver(text, String(number)),
          () => deliver(undefined),
        )
      }
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    get position() {
      return String(neighbours.last)
    },
    isAfter: (one, other) => Number(one) > Number(other),
    async since(position) {
      const first = Number(position) + 1
      const texts = await neighbours.since(first - 1)
      return texts?.map((text, index) => ({ text, position: String(first + index) }))
    },
    send: (other, text, share) => neighbours.send(other, text, share),
    receive(listener) {
      if (!receiver) neighbours.join(node, text => receiver?.(text))
      receiver = listener
    },
    isAlive: async other => (other === node ? !hasLeft : neighbours.has(other)),
    async leave() {
      if (hasLeft) return
      hasLeft = true
      await neighbours.leave(node)
    },
  }
}
