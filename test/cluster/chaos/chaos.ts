// One chaos run: a deployment, its load, one kind of failure, and the counts of the clients.
import { setTimeout as wait } from 'node:timers/promises'
import { createSeededRandom } from '../../support/seeded-random.ts'
import { startBalanced } from '../support/balanced-deployment.ts'
import { createAnnouncer } from './change-publisher.ts'
import { BALANCED, createLines, failUntil, type Kind } from './failure-kinds.ts'
import { startLoad } from './start-load.ts'
import { createTally, describeTally, faultsOf, type Tally } from './tally.ts'

export interface ChaosSettings {
  /** By turns. */
  readonly kinds: readonly Kind[]
  /** How long nodes and Redis fail; clients then finish what they began. */
  readonly seconds: number
  /** How often something fails at least, however long that takes on a machine that is busy. */
  readonly failures: number
  readonly seed: number
}

export interface ChaosReport {
  /** How often something failed. */
  readonly failures: number
  readonly announced: number
  /** Requests of each node, by nginx's log. */
  readonly requests: string
  readonly tally: Tally
  /** What must not have happened; empty when all is well. */
  readonly faults: readonly string[]
  /** What the nodes logged last, where something must not have happened. */
  readonly output: string
}

/** Milliseconds between two looks at how often something failed. */
const LOOK_INTERVAL = 50

export async function runChaos({ kinds, seconds, failures: least, seed }: ChaosSettings): Promise<ChaosReport> {
  const lines = createLines()
  const tally = createTally()
  const balanced = await startBalanced({
    config: 'test/cluster/chaos/load.config.ts',
    nodes: BALANCED,
    redis: { persistent: kinds.includes('restart') },
    ...(kinds.includes('cut') && { redisUrl: lines.urlFor }),
  })
  const output = () => balanced.nodes.map(({ output }, at) => `node ${at + 1}:\n${output.slice(-4_000)}`).join('\n')
  try {
    let enough = false
    // A node that serves nobody.
    const beside = await balanced.startBeside()
    const announcer = createAnnouncer(announce => beside.tell({ announce }))
    const load = await startLoad({ url: `${balanced.url}/mcp`, seed, tally, announcer, enough: () => enough })
    const done = { faults: 0 }
    const failing = failUntil(() => enough, kinds, balanced, lines, createSeededRandom(seed), done)
    await Promise.race([wait(seconds * 1_000), failing])
    // The one that is under way counts, too.
    while (done.faults < least - 1) await Promise.race([wait(LOOK_INTERVAL), failing])
    enough = true
    const failures = await failing
    await load.finish()
    const faults = faultsOf(tally, {
      gaps: kinds.includes('forget'),
      nodeLost: kinds.includes('kill') || kinds.includes('forget'),
    })
    const requests = balanced.describeCounts()
    const announced = announcer.announced.count
    return { failures, announced, requests, tally, faults, output: faults.length > 0 ? output() : '' }
  } catch (cause) {
    throw new Error(`${kinds}: ${cause}\n${output()}`, { cause })
  } finally {
    await balanced.stop()
    await lines.stop()
  }
}

/** A report for people, on several lines. */
export function describeReport({ failures, announced, requests, tally, faults }: ChaosReport): string {
  return [
    `failures ${failures}, changes announced ${announced}, requests: ${requests}`,
    ...describeTally(tally),
    ...faults.map(fault => `MUST NOT BE: ${fault}`),
  ].join('\n      ')
}
