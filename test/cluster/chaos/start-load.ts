// Starts all clients and change announcements of a chaos run, and ends them when all have finished.
import { setTimeout as wait } from 'node:timers/promises'
import { createGate } from '../../support/gate.ts'
import { createSeededRandom } from '../../support/seeded-random.ts'
import type { Announcer } from './change-publisher.ts'
import { callUntil, listenUntil } from './load.ts'
import { GoodClient } from './resilient-client.ts'
import type { Tally } from './tally.ts'

const CALLERS = 6
export const LISTENERS = 3
/** Milliseconds that clients have to finish in when nothing fails any more; a node's death is noticed within 30 s. */
const FINISH_LIMIT = 120_000

export interface LoadSettings {
  /** What clients ask. */
  readonly url: string
  readonly seed: number
  readonly tally: Tally
  readonly announcer: Announcer
  /** Whether calls are not to be repeated any more, and listeners to wait for no later changes. */
  enough(): boolean
}

export interface Load {
  /** Resolves when all have what they wait for, or had long enough for it after the last failure. */
  finish(): Promise<void>
  /** What each client that is not done asked and heard last. */
  unfinished(): readonly string[]
}

/** Resolves once everybody listens. */
export async function startLoad({ url, seed, tally, announcer, enough }: LoadSettings): Promise<Load> {
  const all = Array.from(
    { length: LISTENERS + CALLERS },
    (_, index) => new GoodClient(url, tally, createSeededRandom(seed + index)),
  )
  const ready = createGate()
  let unready = LISTENERS
  const onReady = () => {
    if (--unready === 0) ready.open()
  }
  const failed: unknown[] = []
  const busy = new Set(all)
  const clients = all.map(async (client, index) => {
    try {
      if (index < LISTENERS) await listenUntil(enough, client, announcer.announced, onReady)
      else await callUntil(enough, client)
      busy.delete(client)
    } catch (error) {
      failed.push(error)
    }
  })
  await Promise.race([ready.opened, Promise.all(clients)])
  announcer.begin()
  return {
    async finish() {
      const patience = new AbortController()
      const late = wait(FINISH_LIMIT, undefined, { signal: patience.signal }).catch(() => undefined)
      await Promise.race([Promise.all(clients), late])
      patience.abort()
      await announcer.stop()
      if (failed.length > 0) throw new AggregateError(failed, failed.map(String).join('\n'))
    },
    unfinished: () => [...busy].map(({ doing }) => doing),
  }
}
