// The load: one request repeated over so many connections, by a program of its own (clients/load.ts).
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LoadAsked, LoadFound } from './clients/load.ts'
import { CAN_PIN, type Cores, runClient } from './processes.ts'
import type { BenchRequest } from './requests.ts'

/** Where a row does not say how many. */
export const CONNECTIONS = 32
/** How much longer than asked for a load may run before it counts as stuck, milliseconds. */
const GRACE_MS = 20_000

interface Load {
  readonly url: string
  readonly request: BenchRequest
  readonly seconds: number
  readonly connections: number
  readonly scratch: string
  readonly signal: AbortSignal
  readonly cores?: Cores
}

/** Repeats the request for so many seconds. Throws when any answer failed; slow servers may have answered none. */
export async function applyLoad({ url, request, seconds, connections, scratch, ...load }: Load): Promise<LoadFound> {
  const signal = AbortSignal.any([load.signal, AbortSignal.timeout(seconds * 1000 + GRACE_MS)])
  const { headers, body } = request
  const sleeps = !CAN_PIN || load.cores === 'all'
  const asked: LoadAsked = { url, headers, body, connections, seconds, sleeps }
  // A file: a body of megabytes is too long for an argument.
  const file = join(scratch, 'load.json')
  writeFileSync(file, JSON.stringify(asked))
  return runClient<LoadFound>('load.ts', file, signal, load.cores)
}
