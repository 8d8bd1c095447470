// The tail: how long calls take that come at half the rate which saturates the host, with 1,000 GET streams open and 100
// listeners told twice a second. Calls are sent when they are due, whatever became of those before. Koa under the same
// rate, without streams, says what the machine and the client add.
import type { TailAsked, TailFound } from '../clients/tail.ts'
import { peer } from '../contestants.ts'
import { judgeClock } from '../judge.ts'
import { applyLoad, CONNECTIONS } from '../load.ts'
import type { Figure, Measure, MeasureOptions } from '../measure.ts'
import { type RunningServer, runClient, startServer } from '../processes.ts'
import { callEcho } from '../requests.ts'
import { median } from '../spread.ts'
import { startToldHost } from '../told-host.ts'

const STREAMS = 1_000
const LISTENERS = 100
const LIMIT_MS = 20

const figuresOf = (name: string, rounds: readonly TailFound[]): Figure[] =>
  (
    [
      ['p50', 'p50'],
      ['p99', 'p99'],
      ['p99.9', 'p999'],
      ['longest', 'max'],
      ['the client itself was held up', 'clientStall'],
    ] as const
  ).map(([what, key]) => ({ what: `${name}: ${what}`, unit: 'ms', values: rounds.map(round => round[key]) }))

/** Calls a second that keep the host busy. */
async function findSaturation({ url }: RunningServer, { scratch, signal, quick }: MeasureOptions): Promise<number> {
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
  const saturation = await findSaturation(host, options)
  const load = { rate: Math.round(saturation / 2), seconds: options.quick ? 2 : 10 }
  const ask = (asked: TailAsked) => runClient<TailFound>('tail.ts', JSON.stringify(asked), options.signal)
  const [ours, theirs]: [TailFound[], TailFound[]] = [[], []]
  for (let round = 0; round < (options.quick ? 1 : 3); round++) {
    theirs.push(await ask({ ...load, url: koa.url, streams: 0, listeners: 0 }))
    ours.push(await ask({ ...load, url: host.url, streams: STREAMS, listeners: LISTENERS }))
  }
  if (ours.some(({ told }) => told < LISTENERS)) throw new Error('listeners were not told')
  const p999 = ours.map(round => round.p999)
  return {
    figures: [
      { what: 'calls that saturate the host', unit: '/s', values: [saturation] },
      ...figuresOf('Koa alone', theirs),
      ...figuresOf('ours with streams', ours),
    ],
    targets: [
      judgeClock(`p99.9 <= ${LIMIT_MS} ms`, p999, '<=', LIMIT_MS),
      judgeClock(
        `the longest <= ${LIMIT_MS} ms`,
        ours.map(({ max }) => max),
        '<=',
        LIMIT_MS,
      ),
    ],
    notes: [`${load.rate.toLocaleString('en')} calls a second, ${load.seconds} s a round after 2 s of warming up`],
  }
}

export const measure: Measure = {
  name: 'tail',
  quick: true,
  async run(options) {
    const host = await startServer(startToldHost(options.scratch), options.signal)
    try {
      const koa = await startServer(peer('Koa', 'koa.mjs', [], callEcho).command(''), options.signal)
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
