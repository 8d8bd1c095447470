// A host that closes waits for the streams of its sessions to end in the store: what was answered is there then.
import { setTimeout as pause } from 'node:timers/promises'
import type { Session } from './session.ts'

/** Milliseconds. */
const LONGEST = 5_000

/** Lets what was answered get into the store, for those who come back for it elsewhere. */
export async function settleStreams(sessions: ReadonlyMap<string, Session>, patience: number) {
  const end = performance.now() + Math.min(patience, LONGEST)
  const unsettled = () =>
    [...sessions.values()].some(({ streams }) => [...streams.values()].some(({ ending }) => ending))
  while (performance.now() < end && unsettled()) await pause(10)
}
