// Announces one change after the other by a call of a tool, at whichever worker takes it. What was not answered is announced
// again, for nobody knows whether it had been.
import { setTimeout as wait } from 'node:timers/promises'
import type { Announced } from '../../cluster/chaos/load.ts'
import { modern } from '../../support/rpc.ts'

/** Milliseconds between two changes, and to the next try. */
const INTERVAL = 100

export interface Announcer {
  readonly announced: Announced & { readonly again: Set<number> }
  begin(): void
  stop(): Promise<void>
}

export function startAnnouncer(url: string): Announcer {
  const announced = { count: 0, again: new Set<number>() }
  let over = false
  let working: Promise<void> | undefined

  /** True when it was answered that it is done. */
  async function announce(number: number): Promise<boolean> {
    const signal = AbortSignal.timeout(10_000)
    const params = { name: 'announce', arguments: { number } }
    const answer = await modern(url, 'tools/call', params, { init: { signal } }).catch(() => undefined)
    if (answer === undefined || answer.status >= 500) return false
    if (answer.message?.result?.content?.[0]?.text === 'announced') return true
    throw new Error(`an announcement was answered ${answer.status} ${answer.text}`)
  }

  async function work() {
    while (!over) {
      const number = ++announced.count
      while (!(await announce(number)) && !over) {
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
