// One run of chaos: a deployment, a load on it, one kind of failure, and what the clients counted.
import { setTimeout as wait } from 'node:timers/promises'
import { createGate } from '../../support/gate.ts'
import { createSeededRandom } from '../../support/seeded-random.ts'
import { type Balanced, startBalanced } from '../support/balanced.ts'
import { GoodClient } from './good-client.ts'
import { BALANCED, createLines, failUntil, type Kind } from './kinds.ts'
import { type Announced, callUntil, listenUntil } from './load.ts'
import { createTally, faultsOf, type Tally } from './tally.ts'

export interface ChaosSettings {
  readonly kind: Kind
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

const CALLERS = 6
const LISTENERS = 3
/** Milliseconds between two changes. */
const CHANGE_INTERVAL = 100
/** Milliseconds between two looks at how often something failed. */
const LOOK_INTERVAL = 50
/** Milliseconds that clients have to finish in when nothing fails any more; a node's death is noticed within 30 s. */
const FINISH_LIMIT = 90_000

/** Announces changes by a node that serves nobody, until every listener has what it waits for. */
async function announceUntil(over: () => boolean, announced: Announced, balanced: Balanced) {
  const node = await balanced.startBeside()
  return async () => {
    while (!over()) {
      node.tell({ announce: ++announced.count })
      await wait(CHANGE_INTERVAL)
    }
  }
}

interface Load {
  /** Resolves when all have what they wait for, or had long enough for it after the last failure. */
  finish(): Promise<void>
}

async function startLoad(balanced: Balanced, seed: number, tally: Tally, announced: Announced, enough: () => boolean) {
  const url = `${balanced.url}/mcp`
  const client = (index: number) => new GoodClient(url, tally, createSeededRandom(seed + index))
  const announce = await announceUntil(() => over, announced, balanced)
  const ready = createGate()
  let over = false
  let unready = LISTENERS
  const onReady = () => {
    if (--unready === 0) ready.open()
  }
  const failed: unknown[] = []
  const clients = [
    ...Array.from({ length: LISTENERS }, (_, index) => listenUntil(enough, client(index), announced, onReady)),
    ...Array.from({ length: CALLERS }, (_, index) => callUntil(enough, client(LISTENERS + index))),
  ].map(work => work.catch(error => void failed.push(error)))
  await Promise.race([ready.opened, Promise.all(clients)])
  const announcing = announce()
  const load: Load = {
    async finish() {
      const patience = new AbortController()
      const late = wait(FINISH_LIMIT, undefined, { signal: patience.signal }).catch(() => undefined)
      await Promise.race([Promise.all(clients), late])
      patience.abort()
      over = true
      await announcing
      if (failed.length > 0) throw new AggregateError(failed, failed.map(String).join('\n'))
    },
  }
  return load
}

export async function runChaos({ kind, seconds, failures: least, seed }: ChaosSettings): Promise<ChaosReport> {
  const lines = createLines()
  const tally = createTally()
  const announced: Announced = { count: 0 }
  const balanced = await startBalanced({
    config: 'test/cluster/chaos/load.config.ts',
    nodes: BALANCED,
    redis: { persistent: kind === 'restart' },
    ...(kind === 'cut' && { redisUrl: lines.urlFor }),
  })
  const output = () => balanced.nodes.map(({ output }, at) => `node ${at + 1}:\n${output.slice(-4_000)}`).join('\n')
  try {
    let enough = false
    const load = await startLoad(balanced, seed, tally, announced, () => enough)
    const done = { faults: 0 }
    const failing = failUntil(() => enough, kind, balanced, lines, createSeededRandom(seed), done)
    await Promise.race([wait(seconds * 1_000), failing])
    // The one that is under way counts, too.
    while (done.faults < least - 1) await Promise.race([wait(LOOK_INTERVAL), failing])
    enough = true
    const failures = await failing
    await load.finish()
    const faults = faultsOf(tally, { gaps: kind === 'forget', nodeLost: kind === 'kill' || kind === 'forget' })
    const requests = balanced.describeCounts()
    return { failures, announced: announced.count, requests, tally, faults, output: faults.length > 0 ? output() : '' }
  } catch (cause) {
    throw new Error(`${kind}: ${cause}\n${output()}`, { cause })
  } finally {
    await balanced.stop()
    await lines.stop()
  }
}

/** A report for people, on several lines. */
export function describeReport({ failures, announced, requests, tally, faults }: ChaosReport): string {
  const { silence, ...counts } = tally
  const counted = Object.entries(counts).map(([name, count]) => `${name} ${count}`)
  return [
    `failures ${failures}, changes announced ${announced}, requests: ${requests}`,
    counted.join(', '),
    `longest silence of a stream ${(silence / 1_000).toFixed(1)} s`,
    ...faults.map(fault => `MUST NOT BE: ${fault}`),
  ].join('\n      ')
}
