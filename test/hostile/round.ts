// One round of an attack: its random numbers, its target, and connections with checked responses. All are closed at its
// end.

import { Connection } from './connection.ts'
import { type Chance, createChance } from './random.ts'
import { createWatcher, show } from './response-checks.ts'
import type { Tally } from './tally.ts'
import type { Identity, Target } from './target.ts'

export interface Round {
  /** `<kind>:<number>`. */
  readonly name: string
  readonly index: number
  readonly chance: Chance
  readonly target: Target
  /** True once the program wants to end: rounds that loop stop then. */
  readonly over: () => boolean
  connect(who: Identity, localAddress?: string): Promise<Connection>
  /** Waits for the heads of this many answers, or the end of the connection. Not in time is a fault. */
  heads(connection: Connection, count: number): Promise<void>
  /** The same for whole answers. */
  answers(connection: Connection, count: number): Promise<void>
  fault(text: string): void
}

export interface Attack {
  readonly kind: string
  /** What it does, in a few words. */
  readonly about: string
  /** Rounds at once. Default 1. */
  readonly lanes?: number
  /** Milliseconds between two rounds of a lane. Default 0. */
  readonly pause?: number
  run(round: Round): Promise<void>
}

export interface RoundSettings {
  readonly attack: Attack
  readonly index: number
  readonly seed: number
  readonly target: Target
  readonly tally: Tally
  readonly over: () => boolean
  /** A whole request is to be answered within this, milliseconds. */
  readonly answerLimit: number
}

export async function runRound({
  attack,
  index,
  seed,
  target,
  tally,
  over,
  answerLimit,
}: RoundSettings): Promise<void> {
  const name = `${attack.kind}:${index}`
  const connections: Connection[] = []
  const sent = new WeakMap<Connection, () => Uint8Array | undefined>()
  tally.of(attack.kind).rounds++

  async function wait(connection: Connection, what: 'heads' | 'answers', count: number) {
    const inTime = await connection.until(() => connection[what].length >= count, answerLimit)
    if (inTime) return
    const text = `${connection.who}: ${connection[what].length} of ${count} ${what}`
    tally.fault({ kind: 'unanswered', text, rounds: [name], request: show(sent.get(connection)?.()) })
    connection.drop()
  }

  const round: Round = {
    name,
    index,
    chance: createChance(seed, name),
    target,
    over,
    async connect(who, localAddress) {
      const watcher = createWatcher(tally, target.markers, name, who)
      let last: Uint8Array | undefined
      const noting = {
        ...watcher,
        sent(requests: number, bytes: Uint8Array) {
          last = bytes
          watcher.sent(requests, bytes)
        },
      }
      const connection = await Connection.open(target.url, who, noting, localAddress)
      sent.set(connection, () => last)
      connections.push(connection)
      return connection
    },
    heads: (connection, count) => wait(connection, 'heads', count),
    answers: (connection, count) => wait(connection, 'answers', count),
    fault: text => tally.fault({ kind: 'unanswered', text, rounds: [name] }),
  }
  try {
    await attack.run(round)
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    tally.fault({ kind: 'attack', text, rounds: [name] })
  } finally {
    for (const connection of connections) connection.drop()
  }
}
