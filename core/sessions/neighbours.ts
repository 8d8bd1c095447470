// The processes that serve one config behind one address (`--workers`), as one of them reaches the others: over what started
// them all. A process alone has none. For neighbour-bus.ts, neighbour-peers.ts, and `countTogether` of plugins.
import type { CountTogether } from '../kernel/kernel-host.ts'

/** All of it rejects with the HostError `unavailable` where what started the processes is gone, or does not answer. */
export interface Neighbours {
  /** From now on this process hears what all are told. `missed`: something before this number could not be kept for it. */
  hear(told: (text: string, number: number) => void, missed: (number: number) => void): void
  /** Tells all who hear, this process too. Resolves once each of them will be told, in one order for all. */
  tell(text: string): Promise<void>
  /** The number of the last thing that this process was told, or could have been: each is one more than the one before. */
  readonly last: number
  /** What all were told after this number; undefined where some of it is gone, or it is of another run of the host. */
  since(number: number): Promise<readonly string[] | undefined>
  /** From now on this process is found by this name. What is `received` comes in the order in which `send` resolved. */
  join(node: string, received: (text: string) => void): void
  /** It is found no more. */
  leave(node: string): Promise<void>
  /**
   * Resolves once it is on its way to whoever joined by this name; false where nobody did, or has left or ended since.
   * `share`: whose it is. Each share may have as much on its way as it leaves free for the others.
   */
  send(node: string, text: string, share: string): Promise<boolean>
  /** Whether somebody has joined by this name, and not left or ended. */
  has(node: string): Promise<boolean>
  readonly count: CountTogether
}
