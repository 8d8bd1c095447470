// A thousand tasks at three nodes and a worker, each a process of the CLI, that are killed in between, and Redis as well: every
// client is told how its task ended, no tool runs twice that may not, and what may is run again until it is done.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'chai'
import { type NodeProcess, startNode } from '../cluster/support/node-process.ts'
import {
  type Acknowledged,
  make,
  readJournal,
  type Told,
  type Tool,
  tallyOf,
  waitFor,
} from '../cluster/support/task-load.ts'
import { freePort } from '../support/free-port.ts'
import { needsRedis, type RedisServer, startRedis, stopRedis } from '../support/redis-server.ts'
import { createSeededRandom } from '../support/seeded-random.ts'

const TASKS = 1_000
const SEED = Number(process.env['SEED'] ?? 20_261_123)
const NODE_KILLS = 8
const REDIS_KILLS = 3
/** Milliseconds: of a lease that lapses, of those who look for it, and of whoever runs it then. */
const PATIENCE = 60_000

interface Crew {
  readonly journal: string
  /** Of those that answer clients and live. */
  urls(): readonly string[]
  /** Kills one of them, and starts it again. */
  replace(index: number): Promise<void>
  readonly size: number
  stop(): Promise<void>
}

/** Three nodes, the last of them a front alone, and a worker. */
async function startCrew(env: Readonly<Record<string, string>>): Promise<Crew> {
  const folder = mkdtempSync(join(tmpdir(), 'tasks-chaos-'))
  const journal = join(folder, 'journal')
  writeFileSync(journal, '')
  const roles = [[], [], ['--role', 'front'], ['--role', 'worker']] as const
  const ports = await Promise.all(roles.map(() => freePort()))
  const all = { JOURNAL: journal, MCP_HOST_SECRETS: 'a secret for tests that is long enough to be one', ...env }
  const begin = (index: number) =>
    startNode({
      config: 'test/cluster/support/tasks.config.ts',
      port: ports[index] ?? 0,
      env: all,
      more: roles[index] ?? [],
    })
  const nodes: Array<NodeProcess | undefined> = await Promise.all(roles.map((_, index) => begin(index)))
  return {
    journal,
    size: roles.length,
    urls: () => nodes.slice(0, 3).flatMap(node => (node ? [node.url] : [])),
    async replace(index) {
      const node = nodes[index]
      nodes[index] = undefined
      await node?.kill()
      nodes[index] = await begin(index)
    },
    async stop() {
      await Promise.all(nodes.map(node => node?.kill()))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Clients that make tasks, eight at a time, and wait for each. */
async function drive(crew: Crew, count: number, time: () => number, prefix = '') {
  const waiting: Array<Promise<void>> = []
  const told = new Map<Acknowledged, Told | undefined>()
  let next = 0
  let refused = 0
  async function client() {
    while (next < count) {
      const number = next++
      const tool: Tool = number % 2 ? 'again' : 'once'
      for (let attempt = 0; ; attempt++) {
        const urls = crew.urls()
        const url = urls[(number + attempt) % Math.max(1, urls.length)]
        const task = url && (await make(url, tool, `${tool}-${prefix}${number}-${attempt}`, time()))
        if (task) {
          told.set(task, undefined)
          waiting.push(waitFor(task, crew.urls, PATIENCE).then(how => void told.set(task, how)))
          break
        }
        refused++
        await pause(50)
      }
    }
  }
  await Promise.all(Array.from({ length: 8 }, client))
  return {
    acknowledged: told.size,
    get refused() {
      return refused
    },
    async settled() {
      await Promise.all(waiting)
      return told
    },
  }
}

describe('a thousand tasks', function () {
  this.timeout(300_000)
  before(function () {
    needsRedis(this)
  })
  let redis: RedisServer
  let crew: Crew
  afterEach(async () => {
    await crew?.stop()
  })
  after(stopRedis)

  it('whose nodes, worker and Redis are killed: none is lost, none runs twice that may not', async () => {
    const random = createSeededRandom(SEED)
    redis = await startRedis({ persistent: true })
    crew = await startCrew({ REDIS_URL: redis.url })
    const kills = { nodes: 0, redis: 0 }
    const chaos = (async () => {
      while (kills.nodes < NODE_KILLS || kills.redis < REDIS_KILLS) {
        await pause(300 + random.below(1_000))
        const [left, others] = [REDIS_KILLS - kills.redis, NODE_KILLS - kills.nodes]
        if (random.below(left + others) < left) {
          await redis.kill()
          await pause(random.below(1_000))
          await redis.start()
          kills.redis++
        } else {
          await crew.replace(random.below(crew.size))
          kills.nodes++
        }
      }
    })()
    const driven = await drive(crew, TASKS, () => 100 + random.below(4_000))
    await chaos
    const told = await driven.settled()
    const tally = tallyOf(told, readJournal(crew.journal))
    console.log(
      `      seed ${SEED}: ${driven.acknowledged} acknowledged, ${driven.refused} refused, ${JSON.stringify(kills)}`,
    )
    console.log(`      ${JSON.stringify(tally)}`)
    expect(driven.acknowledged).to.equal(TASKS)
    expect(tally.againRunAgain + tally.failed, 'runs that a kill ended').to.be.above(0)
    expect(tally.untold, 'clients that were told nothing').to.equal(0)
    expect([tally.unknown, tally.cancelled], 'lost, and cancelled by nobody').to.deep.equal([0, 0])
    expect(tally.onceRunTwice, 'runs of what may not run twice').to.equal(0)
    expect(tally.madeUp, 'results that nobody made').to.equal(0)
    expect(tally.againNotCompleted, 'of those that may run again').to.equal(0)
  })

  it('of a Redis that forgets them: every client is told so, and those that come after are served', async () => {
    const random = createSeededRandom(SEED + 1)
    redis = await startRedis()
    crew = await startCrew({ REDIS_URL: redis.url })
    const before = await drive(crew, 200, () => 2_000 + random.below(2_000))
    await redis.kill()
    await redis.start()
    const told = await before.settled()
    const after = await (await drive(crew, 100, () => 20, 'after-')).settled()
    const journal = readJournal(crew.journal)
    const [lost, served] = [tallyOf(told, journal), tallyOf(after, journal)]
    console.log(`      before: ${JSON.stringify(lost)}\n      after: ${JSON.stringify(served)}`)
    expect(lost.untold + served.untold, 'clients that were told nothing').to.equal(0)
    expect(lost.unknown, 'told that it is gone').to.be.above(0)
    expect([lost.onceRunTwice, served.onceRunTwice]).to.deep.equal([0, 0])
    expect(served.completed).to.equal(100)
  })
})
