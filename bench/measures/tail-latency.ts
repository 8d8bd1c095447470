// Measures tail latency at half the saturation rate, with 1,000 open GET streams and 100 listeners, which are notified
// twice a second. Koa at the same rate, without streams, shows the latency of the machine and the client.
import type { TailOptions, TailResult } from '../clients/tail-latency.ts'
import { serverScript } from '../contestants.ts'
import { applyLoad, CONNECTIONS } from '../load.ts'
import type { Figure, Measure, MeasureOptions } from '../measure.ts'
import { notifyingHostCommand } from '../notifying-host.ts'
import { type RunningServer, runClient, startServer } from '../processes.ts'
import { callEcho } from '../requests.ts'
import { median } from '../spread.ts'
import { checkTimeTarget } from '../targets.ts'

const STREAMS = 1_000
const LISTENERS = 100
const LIMIT_MS = 20

const createFigures = (name: string, rounds: readonly TailResult[]): Figure[] =>
  (
    [
      ['p50', 'p50'],
      ['p99', 'p99'],
      ['p99.9', 'p999'],
      ['maximum', 'max'],
      ['longest stall of the client', 'clientStall'],
    ] as const
  ).map(([what, key]) => ({ what: `${name}: ${what}`, unit: 'ms', values: rounds.map(round => round[key]) }))

/** Calls per second that saturate the host. */
async function measureSaturation({ url }: RunningServer, { scratch, signal, quick }: MeasureOptions): Promise<number> {
  const load = { url, request: callEcho, connections: CONNECTIONS, scratch, signal }
  const rates: number[] = []
  await applyLoad({ ...load, seconds: quick ? 1 : 4 })
  for (let round = 0; round < (quick ? 1 : 3); round++) {
    const { requests, seconds } = await applyLoad({ ...load, seconds: quick ? 1 : 2 })
    rates.push(requests / seconds)
  }
  return median(rates)
}

async function measureTail(options: MeasureOptions, host: RunningServer, koa: RunningServer) {
  const saturation = await measureSaturation(host, options)
  const load = { rate: Math.round(saturation / 2), seconds: options.quick ? 2 : 10 }
  const runLoad = (load: TailOptions) => runClient<TailResult>('tail-latency.ts', JSON.stringify(load), options.signal)
  const [hostRounds, koaRounds]: [TailResult[], TailResult[]] = [[], []]
  for (let round = 0; round < (options.quick ? 1 : 3); round++) {
    koaRounds.push(await runLoad({ ...load, url: koa.url, streams: 0, listeners: 0 }))
    hostRounds.push(await runLoad({ ...load, url: host.url, streams: STREAMS, listeners: LISTENERS }))
  }
  if (hostRounds.some(({ notifications }) => notifications < LISTENERS)) throw new Error('listeners were not notified')
  const p999 = hostRounds.map(round => round.p999)
  return {
    figures: [
      { what: 'calls at saturation', unit: '/s', values: [saturation] },
      ...createFigures('Koa', koaRounds),
      ...createFigures('ours with streams', hostRounds),
    ],
    targets: [
      checkTimeTarget(`p99.9 <= ${LIMIT_MS} ms`, p999, '<=', LIMIT_MS),
      checkTimeTarget(
        `maximum <= ${LIMIT_MS} ms`,
        hostRounds.map(({ max }) => max),
        '<=',
        LIMIT_MS,
      ),
    ],
    notes: [`${load.rate.toLocaleString('en')} calls per second, rounds of ${load.seconds} s after a warm-up of 2 s`],
  }
}

export const measure: Measure = {
  name: 'tail latency',
  quick: true,
  async run(options) {
    const host = await startServer(notifyingHostCommand(options.scratch), options.signal)
    try {
      const koa = await startServer(serverScript('Koa', 'koa.mjs', [], callEcho).command(''), options.signal)
      try {
        return await measureTail(options, host, koa)
      } finally {
        await koa.stop()
      }
    } finally {
      await host.stop()
    }
  },
}
