// Counts the bytes that a request allocates, in a separate process: in the young generation, and outside of it, where
// only full collections free memory. Prints one line of JSON.
import { GCProfiler, getHeapSpaceStatistics } from 'node:v8'
import { startGuarded, WORKS, type Work } from './guarded-host.ts'

/** Bytes a request. */
export interface Allocated {
  readonly young: number
  readonly old: number
}

/** Requests between two collections. */
const CHUNK = 500
/** The first warms up. */
const CHUNKS = 6

function used() {
  let young = 0
  let old = 0
  for (const { space_name, space_used_size } of getHeapSpaceStatistics()) {
    if (space_name.startsWith('new_')) young += space_used_size
    if (space_name === 'old_space') old += space_used_size
  }
  return { young, old }
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

const { work, close } = await startGuarded()
const profiler = new GCProfiler()

async function countChunk(what: Work) {
  globalThis.gc?.()
  profiler.start()
  const before = used()
  await work(what, CHUNK)
  const after = used()
  if (profiler.stop()?.statistics.length)
    throw new Error('a collection came between: the young generation is too small')
  return { young: (after.young - before.young) / CHUNK, old: (after.old - before.old) / CHUNK }
}

async function countBytes(what: Work): Promise<Allocated> {
  await countChunk(what)
  const chunks: Array<{ young: number; old: number }> = []
  while (chunks.length < CHUNKS - 1) chunks.push(await countChunk(what))
  return {
    young: Math.round(median(chunks.map(chunk => chunk.young))),
    // What else the process does adds to it.
    old: Math.round(Math.min(...chunks.map(({ old }) => old))),
  }
}

const allocated: Partial<Record<Work, Allocated>> = {}
for (const what of WORKS) allocated[what] = await countBytes(what)
console.log(JSON.stringify(allocated))
await close()
