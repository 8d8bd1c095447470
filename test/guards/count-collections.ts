// Counts full collections and promoted bytes while many connections call, in a separate process with the default young
// generation. Prints one line of JSON.
import { GCProfiler, type HeapSpaceStatistics } from 'node:v8'
import { startGuarded, WORKS, type Work } from './guarded-host.ts'

export interface Survived {
  readonly calls: number
  readonly collections: number
  readonly full: number
  /** Bytes a call that young collections moved out of the young generation. */
  readonly promoted: number
}

const CONNECTIONS = 32
const WARM = 2_560
const CALLS = 9_600
/** On a busy machine log writes wait in some rounds and are promoted: the lowest round counts. */
const ROUNDS = 5

const { work, close } = await startGuarded()
const oldOf = ({ heapSpaceStatistics }: { readonly heapSpaceStatistics: readonly HeapSpaceStatistics[] }) =>
  heapSpaceStatistics.find(({ spaceName }) => spaceName === 'old_space')?.spaceUsedSize ?? 0

async function count(what: Work): Promise<Survived> {
  await work(what, WARM / CONNECTIONS, CONNECTIONS)
  globalThis.gc?.()
  const profiler = new GCProfiler()
  const [promoted, counts] = [[] as number[], { collections: 0, full: 0 }]
  for (let round = 0; round < ROUNDS; round++) {
    profiler.start()
    await work(what, CALLS / ROUNDS / CONNECTIONS, CONNECTIONS)
    const { statistics = [] } = profiler.stop() ?? {}
    const young = statistics.filter(({ gcType }) => /Scavenge|Minor/.test(gcType))
    promoted.push(young.reduce((sum, { beforeGC, afterGC }) => sum + oldOf(afterGC) - oldOf(beforeGC), 0))
    counts.collections += young.length
    counts.full += statistics.filter(({ gcType }) => /MarkSweep|MarkCompact/.test(gcType)).length
  }
  return { calls: CALLS, ...counts, promoted: Math.round((Math.min(...promoted) * ROUNDS) / CALLS) }
}

const survived: Partial<Record<Work, Survived>> = {}
for (const what of WORKS) if (what !== 'list') survived[what] = await count(what)
console.log(JSON.stringify(survived))
await close()
