// Three hosts on one Redis, a load balancer, and clients: callers of a tool with numbered progress, and listeners to
// numbered changes. Counts results while the test breaks Redis.
import type { RedisSettings } from '../../../plugins/families/redis/index.ts'
import { createAnnouncer } from '../../cluster/chaos/change-publisher.ts'
import { addressOf } from '../../cluster/chaos/load.ts'
import { startLoad } from '../../cluster/chaos/start-load.ts'
import { createTally, describeTally, type Tally } from '../../cluster/chaos/tally.ts'
import { loadToolset } from '../../cluster/chaos/toolset.ts'
import { startNode } from '../../cluster/support/nodes.ts'
import { eventually } from '../../support/eventually.ts'
import type { StartedHost } from '../../support/start-host.ts'
import { startTcpBalancer } from '../../support/tcp-balancer.ts'

export interface LoadedReport {
  readonly tally: Tally
  readonly announced: number
  readonly nodes: readonly StartedHost[]
  /** What the clients that were never done asked and heard last. */
  readonly unfinished: readonly string[]
}

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
    toolsets: { load: loadToolset },
    routes: { '/': { toolsets: 'load' } },
    sessions: { maxPerOwner: 1_000 },
  }
  const nodes: StartedHost[] = []
  for (let index = 0; index < 3; index++) nodes.push(await startNode({ url: '' }, config))
  const balancer = await startTcpBalancer(nodes.map(({ url }) => Number(new URL(url).port)))
  const tally = createTally()
  const announcer = createAnnouncer(number => nodes[2]?.host.runtime.resourceUpdated(addressOf(number)))
  let enough = false
  const load = await startLoad({ url: `${balancer.url}/`, seed: 0, tally, announcer, enough: () => enough })
  try {
    await breaks(() => eventually('nodes that are ready', () => areReady(nodes)))
  } finally {
    enough = true
    await load.finish().finally(() => balancer.stop())
  }
  return { tally, announced: announcer.announced.count, nodes, unfinished: load.unfinished() }
}

/** What it counted, on three lines, and one for each client that was never done. */
export function describeLoaded({ tally, announced, unfinished }: LoadedReport): string {
  const waiting = unfinished.map(doing => `never done: ${doing}`)
  return [`changes announced ${announced}`, ...describeTally(tally), ...waiting].join('\n      ')
}
