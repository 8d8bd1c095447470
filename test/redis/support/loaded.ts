// Three hosts on one Redis, a balancer in front of them, and the clients of chaos: callers of a tool that streams numbered
// progress, and listeners to numbered changes. Says what they counted while the test broke Redis.
import { setTimeout as wait } from 'node:timers/promises'
import { defineResource, defineTool } from '../../../core/index.ts'
import type { RedisSettings } from '../../../plugins/families/redis/index.ts'
import { GoodClient } from '../../cluster/chaos/good-client.ts'
import { type Announced, addressOf, callUntil, listenUntil } from '../../cluster/chaos/load.ts'
import { createTally, type Tally } from '../../cluster/chaos/tally.ts'
import { startNode } from '../../cluster/support/nodes.ts'
import { eventually } from '../../support/eventually.ts'
import { createSeededRandom } from '../../support/seeded-random.ts'
import type { StartedHost } from '../../support/start-host.ts'
import { startTcpBalancer } from '../../support/tcp-balancer.ts'

const CALLERS = 6
const LISTENERS = 2
/** Milliseconds between two changes. */
const CHANGE_INTERVAL = 100
/** Milliseconds that clients have to finish in when nothing is broken any more. */
const FINISH_LIMIT = 60_000

export interface LoadedReport {
  readonly tally: Tally
  readonly announced: number
  readonly nodes: readonly StartedHost[]
  /** The places of clients that did not finish; listeners come first. */
  readonly unfinished: readonly number[]
}

const stream = defineTool({
  name: 'stream',
  input: {
    type: 'object',
    properties: { events: { type: 'integer' }, pace: { type: 'integer' } },
    required: ['events', 'pace'],
  },
  async handler({ events, pace }, { progress, signal }) {
    for (let event = 1; event <= events; event++) {
      progress(event, events)
      await wait(pace, undefined, { signal })
    }
    return `done ${events}`
  },
})
const changes = defineResource({ name: 'changes', uriTemplate: 'load://changes/{number}', handler: () => 'text' })

const areReady = async (nodes: readonly StartedHost[]) => {
  const answers = await Promise.all(nodes.map(({ url }) => fetch(`${url}/readyz`)))
  await Promise.all(answers.map(answer => answer.text()))
  return answers.every(({ status }) => status === 200)
}

/** Runs `breaks` under the load, and then lets every client finish. */
export async function underLoad(
  redis: RedisSettings,
  breaks: (whenReady: () => Promise<unknown>) => Promise<void>,
): Promise<LoadedReport> {
  const config = {
    redis,
    toolsets: { load: [stream, changes] },
    routes: { '/': { toolsets: 'load' } },
    sessions: { maxPerOwner: 1_000 },
  }
  const nodes: StartedHost[] = []
  for (let index = 0; index < 3; index++) nodes.push(await startNode({ url: '' }, config))
  const balancer = await startTcpBalancer(nodes.map(({ url }) => Number(new URL(url).port)))
  const tally = createTally()
  const announced: Announced = { count: 0 }
  let [enough, over] = [false, false]
  const client = (index: number) => new GoodClient(`${balancer.url}/`, tally, createSeededRandom(index))
  const failed: unknown[] = []
  const unfinished = new Set(Array.from({ length: LISTENERS + CALLERS }, (_, at) => at))
  const ready = { count: 0 }
  const work = [
    ...Array.from({ length: LISTENERS }, (_, at) =>
      listenUntil(
        () => enough,
        client(at),
        announced,
        () => ready.count++,
      ),
    ),
    ...Array.from({ length: CALLERS }, (_, at) => callUntil(() => enough, client(LISTENERS + at))),
  ].map((one, at) =>
    one.then(
      () => void unfinished.delete(at),
      error => void failed.push(error),
    ),
  )
  async function announce() {
    while (!over) {
      nodes[2]?.host.runtime.resourceUpdated(addressOf(++announced.count))
      await wait(CHANGE_INTERVAL)
    }
  }
  while (ready.count < LISTENERS && failed.length === 0) await wait(10)
  const announcing = announce()
  try {
    await breaks(() => eventually('nodes that are ready', () => areReady(nodes), Boolean, 30_000))
  } finally {
    enough = true
    const patience = new AbortController()
    const late = wait(FINISH_LIMIT, undefined, { signal: patience.signal }).catch(() => undefined)
    await Promise.race([Promise.all(work), late])
    patience.abort()
    over = true
    await announcing
    await balancer.stop()
  }
  if (failed.length > 0) throw new AggregateError(failed, failed.map(String).join('\n'))
  return { tally, announced: announced.count, nodes, unfinished: [...unfinished] }
}

/** What it counted, on two lines. */
export function describeLoaded({ tally, announced, unfinished }: LoadedReport): string {
  const { silence, ...counts } = tally
  const counted = Object.entries(counts).map(([name, count]) => `${name} ${count}`)
  const silent = `longest silence of a stream ${(silence / 1_000).toFixed(1)} s`
  const places = unfinished.length > 0 ? unfinished.join(', ') : 'none'
  return `changes announced ${announced}, ${silent}\n      ${counted.join(', ')}; unfinished: ${places}`
}
