// How long the compiled package takes from nothing to listening, with one tool and with a thousand, and what it then keeps
// of memory. Wall-clock time: that is what waits. Plain node printing a line says how much of it is node's own.
import { setTimeout as delay } from 'node:timers/promises'
import { ours } from '../contestants.ts'
import { judge, judgeClock } from '../judge.ts'
import type { Figure, Measure, MeasureOptions } from '../measure.ts'
import { CAN_READ_COST, readRss } from '../process-cost.ts'
import { startServer } from '../processes.ts'
import { callEcho, checkSample } from '../requests.ts'

const LIMITS = { plain: 250, thousand: 700, rest: 60 }
const CALLS = 20
const REST_MS = 2_000

/** Says that it listens, and goes on until it is stopped. */
const BARE = ['-e', "console.log('listening on http://127.0.0.1:1'); setInterval(() => {}, 1e6)"]

export async function timeStart(command: readonly string[], signal: AbortSignal): Promise<number> {
  const began = performance.now()
  const server = await startServer(command, signal)
  const took = performance.now() - began
  await server.stop()
  return took
}

export async function measureRest(command: readonly string[], signal: AbortSignal): Promise<number> {
  const server = await startServer(command, signal)
  try {
    for (let call = 0; call < CALLS; call++) await checkSample(server.url, callEcho, signal)
    await delay(REST_MS, undefined, { signal })
    return readRss(server.pid) / 1e6
  } finally {
    await server.stop()
  }
}

async function timeStarts({ scratch, signal, quick }: MeasureOptions) {
  const commands = {
    bare: BARE,
    plain: ours(1, callEcho).command(scratch),
    thousand: ours(1000, callEcho).command(scratch),
  }
  const took = { bare: [] as number[], plain: [] as number[], thousand: [] as number[] }
  for (let round = 0; round < (quick ? 3 : 9); round++) {
    for (const name of ['bare', 'plain', 'thousand'] as const) took[name].push(await timeStart(commands[name], signal))
  }
  return took
}

export const measure: Measure = {
  name: 'start',
  quick: true,
  async run(options) {
    const { scratch, signal, quick } = options
    const { bare, plain, thousand } = await timeStarts(options)
    const figures: Figure[] = [
      { what: 'node that prints a line', unit: 'ms', values: bare },
      { what: 'a plain config listens', unit: 'ms', values: plain },
      { what: '1,000 tools listen', unit: 'ms', values: thousand },
    ]
    const targets = [
      judgeClock(`a plain config listens within ${LIMITS.plain} ms`, plain, '<=', LIMITS.plain),
      judgeClock(`1,000 tools listen within ${LIMITS.thousand} ms`, thousand, '<=', LIMITS.thousand),
    ]
    if (!CAN_READ_COST) return { figures, targets, notes: ['this system does not tell how much memory a process has'] }
    const rest: number[] = []
    const command = ours(1, callEcho).command(scratch)
    for (let round = 0; round < (quick ? 1 : 3); round++) rest.push(await measureRest(command, signal))
    const what = `resident at rest, ${CALLS} calls and ${REST_MS / 1000} s after the start`
    return {
      figures: [...figures, { what, unit: 'MB', values: rest }],
      targets: [...targets, judge(`at rest <= ${LIMITS.rest} MB`, rest, '<=', LIMITS.rest)],
      notes: [],
    }
  },
}
