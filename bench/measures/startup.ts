// Measures the wall-clock time until the compiled package listens, with one tool and with 1,000, and its idle memory.
// A Node.js process that only prints a line shows the share of Node.js itself.
import { setTimeout as delay } from 'node:timers/promises'
import { mcpHost } from '../contestants.ts'
import { type Figure, type Measure, type MeasureOptions, NO_PROC } from '../measure.ts'
import { HAS_PROC, readRss } from '../process-stats.ts'
import { startServer } from '../processes.ts'
import { callEcho, verifyResponse } from '../requests.ts'
import { checkTarget, checkTimeTarget } from '../targets.ts'

const LIMITS = { oneTool: 250, thousandTools: 700, memory: 60 }
const CALLS = 20
const IDLE_MS = 2_000

/** Prints a URL like a server, and runs until it is stopped. */
const NODE_ONLY = ['-e', "console.log('listening on http://127.0.0.1:1'); setInterval(() => {}, 1e6)"]

export async function timeStartup(command: readonly string[], signal: AbortSignal): Promise<number> {
  const startedAt = performance.now()
  const server = await startServer(command, signal)
  const duration = performance.now() - startedAt
  await server.stop()
  return duration
}

/** Resident memory in MB, some time after the last call. */
export async function measureIdleMemory(command: readonly string[], signal: AbortSignal): Promise<number> {
  const server = await startServer(command, signal)
  try {
    for (let call = 0; call < CALLS; call++) await verifyResponse(server.url, callEcho, signal)
    await delay(IDLE_MS, undefined, { signal })
    return readRss(server.pid) / 1e6
  } finally {
    await server.stop()
  }
}

async function timeStartups({ scratch, signal, quick }: MeasureOptions) {
  const commands = {
    nodeOnly: NODE_ONLY,
    oneTool: mcpHost(1, callEcho).command(scratch),
    thousandTools: mcpHost(1000, callEcho).command(scratch),
  }
  const times = { nodeOnly: [] as number[], oneTool: [] as number[], thousandTools: [] as number[] }
  for (let round = 0; round < (quick ? 3 : 9); round++) {
    for (const name of ['nodeOnly', 'oneTool', 'thousandTools'] as const)
      times[name].push(await timeStartup(commands[name], signal))
  }
  return times
}

export const measure: Measure = {
  name: 'startup',
  quick: true,
  async run(options) {
    const { scratch, signal, quick } = options
    const { nodeOnly, oneTool, thousandTools } = await timeStartups(options)
    const figures: Figure[] = [
      { what: 'Node.js only', unit: 'ms', values: nodeOnly },
      { what: 'startup with 1 tool', unit: 'ms', values: oneTool },
      { what: 'startup with 1,000 tools', unit: 'ms', values: thousandTools },
    ]
    const targets = [
      checkTimeTarget(`startup with 1 tool <= ${LIMITS.oneTool} ms`, oneTool, '<=', LIMITS.oneTool),
      checkTimeTarget(
        `startup with 1,000 tools <= ${LIMITS.thousandTools} ms`,
        thousandTools,
        '<=',
        LIMITS.thousandTools,
      ),
    ]
    if (!HAS_PROC) return { figures, targets, notes: [`memory not measured: ${NO_PROC}`] }
    const memory: number[] = []
    const command = mcpHost(1, callEcho).command(scratch)
    for (let round = 0; round < (quick ? 1 : 3); round++) memory.push(await measureIdleMemory(command, signal))
    const what = `idle memory, ${IDLE_MS / 1000} s after ${CALLS} calls`
    return {
      figures: [...figures, { what, unit: 'MB', values: memory }],
      targets: [...targets, checkTarget(`idle memory <= ${LIMITS.memory} MB`, memory, '<=', LIMITS.memory)],
      notes: [],
    }
  },
}
