// Runs the load generator (clients/load.ts), which repeats a request over several connections.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LoadOptions, LoadResult } from './clients/load.ts'
import { CAN_PIN_CPUS, type CpuPlacement, runClient } from './processes.ts'
import type { BenchRequest } from './requests.ts'

/** Default of a row. */
export const CONNECTIONS = 32
/** A load that takes this much longer than requested is aborted. */
const GRACE_MS = 20_000

interface Load {
  readonly url: string
  readonly request: BenchRequest
  readonly seconds: number
  readonly connections: number
  readonly scratch: string
  readonly signal: AbortSignal
  readonly placement?: CpuPlacement
}

/** Throws if a response is an error. The result of a slow server can have zero requests. */
export async function applyLoad({ url, request, seconds, connections, scratch, ...load }: Load): Promise<LoadResult> {
  const signal = AbortSignal.any([load.signal, AbortSignal.timeout(seconds * 1000 + GRACE_MS)])
  const { headers, body } = request
  const busyPoll = CAN_PIN_CPUS && load.placement !== 'unpinned'
  const options: LoadOptions = { url, headers, body, connections, seconds, busyPoll }
  // A body of several megabytes is too long for an argument.
  const file = join(scratch, 'load.json')
  writeFileSync(file, JSON.stringify(options))
  return runClient<LoadResult>('load.ts', file, signal, load.placement)
}
