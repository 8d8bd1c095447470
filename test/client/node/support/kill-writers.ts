// Kills processes at random moments of a write, and checks the files after each kill.
import { readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createFileTokenCache } from '../../../../client/node/file-cache.ts'
import type { SeededRandom } from '../../../support/seeded-random.ts'
import { type Forked, forkJob } from './forks.ts'

export interface Killed {
  kills: number
  /** How many stores were told of, and the last number that was. */
  acknowledged: number
  /** Kills that left a half-written file, and that left the lock taken. */
  leftFile: number
  leftLock: number
  /** After a kill: no container could be read, or one that is older than the last that was told of. */
  unreadable: number
  older: number
}

export interface Enough {
  readonly kills: number
  /** How many kills leave a half-written file, and how many leave the lock taken. */
  readonly left: number
  /** Kills at most. */
  readonly most: number
}

/** Two writers at a time: one is killed, the other continues with the files that it left. */
export async function killWriters(directory: string, enough: Enough, random: SeededRandom): Promise<Killed> {
  const counts: Killed = { kills: 0, acknowledged: 0, leftFile: 0, leftLock: 0, unreadable: 0, older: 0 }
  let last = 0
  let following = forkJob({ type: 'store', directory })
  const isEnough = () => counts.kills >= enough.kills && Math.min(counts.leftFile, counts.leftLock) >= enough.left
  while (counts.kills < enough.most && !isEnough()) {
    const writer = following
    following = forkJob({ type: 'store', directory })
    await writer.next()
    // The one wait whose length is chance: it is what puts the kill anywhere in a store.
    await sleep(random.below(12))
    await writer.kill()
    counts.kills++
    last = Math.max(last, lastTold(writer))
    look(directory, writer.pid, counts)
    await check(directory, last, counts)
  }
  await following.next()
  await following.kill()
  counts.acknowledged = Math.max(last, lastTold(following))
  return counts
}

const lastTold = (forked: Forked) => Math.max(0, ...forked.told.map(({ stored }) => stored ?? 0))

function look(directory: string, pid: number, counts: Killed): void {
  const ofKilled = (name: string) => name.includes(`.${pid}.`)
  const names = readdirSync(directory)
  if (names.some(name => name.includes('.tokens.tmp.') && ofKilled(name))) counts.leftFile++
  if (names.includes('counted.refresh.lock') && readLock(directory).some(ofKilled)) counts.leftLock++
}

function readLock(directory: string): string[] {
  try {
    return readdirSync(`${directory}/counted.refresh.lock`)
  } catch {
    return []
  }
}

async function check(directory: string, last: number, counts: Killed): Promise<void> {
  try {
    const tokens = await createFileTokenCache(directory).getTokens({ key: 'counted' })
    if (Number(tokens?.accessToken ?? 0) < last) counts.older++
  } catch (error) {
    console.log(error)
    counts.unreadable++
  }
}
