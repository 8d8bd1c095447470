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
  /** What the clients last did that did not finish. */
  readonly unfinished: readonly string[]
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
  const all = LISTENERS + CALLERS
  const clients = Array.from(
    { length: all },
    (_, at) => new GoodClient(`${balancer.url}/`, tally, createSeededRandom(at)),
  )
  const failed: unknown[] = []
  const unfinished = new Set(clients)
  const ready = { count: 0 }
  const [listening, calling] = [clients.slice(0, LISTENERS), clients.slice(LISTENERS)]
  const work = [
    ...listening.map(client =>
      listenUntil(
        () => enough,
        client,
        announced,
        () => ready.count++,
      ).then(() => void unfinished.delete(client)),
    ),
    ...calling.map(client => callUntil(() => enough, client).then(() => void unfinished.delete(client))),
  ].map(one => one.catch(error => void failed.push(error)))
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
  return { tally, announced: announced.count, nodes, unfinished: [...unfinished].map(({ doing }) => doing) }
}

/** What it counted, on two lines, and one for each client that did not finish. */
export function describeLoaded({ tally, announced, unfinished }: LoadedReport): string {
  const { silence, ...counts } = tally
  const waiting = unfinished.map(doing => `\n      never done: ${doing}`).join('')
  const counted = Object.entries(counts).map(([name, count]) => `${name} ${count}`)
  return `changes announced ${announced}, longest silence of a stream ${(silence / 1_000).toFixed(1)} s\n      ${counted.join(', ')}${waiting}`
}
