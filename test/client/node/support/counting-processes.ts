// Processes that increment a counter in one file, with a barrier before every round: a lost increment shows that two
// held the lock.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { forkJob } from './forks.ts'

export interface Counted {
  /** What the file says at the end; `expected` where nobody was disturbed. */
  readonly counter: number
  readonly expected: number
  /** How often two were seen inside at the same time. */
  readonly met: number
}

/** `beforeRound` prepares the lock while all of them wait. */
export async function countTogether(options: {
  readonly directory: string
  readonly processes: number
  readonly rounds: number
  readonly locked: boolean
  readonly beforeRound?: () => void
}): Promise<Counted> {
  const { directory, processes, rounds, locked, beforeRound } = options
  const counter = join(directory, 'counter')
  writeFileSync(counter, '0')
  const forks = Array.from({ length: processes }, () => forkJob({ type: 'count', directory, rounds, locked }))
  let met = 0
  for (let round = 0; round < rounds; round++) {
    for (const forked of forks) await forked.next()
    beforeRound?.()
    for (const forked of forks) forked.go()
    for (const forked of forks) met += (await forked.next()).met ?? 0
  }
  return { counter: Number(readFileSync(counter, 'utf8')), expected: processes * rounds, met }
}
