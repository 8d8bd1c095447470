// Publishes one change after the other. A change with an unknown result is published again.
import { setTimeout as wait } from 'node:timers/promises'
import type { Announced } from './load.ts'

/** Milliseconds between two changes, and to the next try. */
const INTERVAL = 100

export interface Announcer {
  readonly announced: Announced
  begin(): void
  stop(): Promise<void>
}

/** `announce` returns, or resolves with, false where nobody knows whether it was. */
export function createAnnouncer(announce: (number: number) => unknown): Announcer {
  const announced = { count: 0, again: new Set<number>() }
  let over = false
  let working: Promise<void> | undefined

  async function work() {
    while (!over) {
      const number = ++announced.count
      while ((await announce(number)) === false && !over) {
        announced.again.add(number)
        await wait(INTERVAL)
      }
      await wait(INTERVAL)
    }
  }

  return {
    announced,
    begin() {
      working = work()
      // Its failure is told when it is stopped.
      working.catch(() => undefined)
    },
    async stop() {
      over = true
      await working
    },
  }
}
