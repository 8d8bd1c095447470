// Tests five hundred tasks on three nodes and a worker while processes and Redis are killed: clients get every outcome,
// and no non-repeatable tool runs twice.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'chai'
import { type NodeProcess, startNode } from '../cluster/support/node-process.ts'
import { drive, readJournal, tallyOf } from '../cluster/support/task-load.ts'
import { HAS_SQLITE } from '../sqlite/support/sqlite.ts'
import { startWorkersProcess, type WorkersProcess } from '../sqlite/support/workers-process.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { needsRedis, type RedisServer, startRedis, stopRedis } from '../support/redis-server.ts'
import { createSeededRandom } from '../support/seeded-random.ts'

const TASKS = 500
const SEED = Number(process.env['SEED'] ?? 20_261_123)
const SECRET = 'a secret for tests that is long enough to be one'
const CONFIG = 'test/cluster/support/tasks.config.ts'
const NODE_KILLS = 4
const REDIS_KILLS = 2

interface Nodes {
  readonly journal: string
  /** Of those that answer clients and live. */
  urls(): readonly string[]
  /** Kills one of them, and starts it again. */
  replace(index: number): Promise<void>
  readonly size: number
  /** Ends one of them with SIGTERM. */
  stopOne(index: number): Promise<void>
  /** What those that live have printed. */
  output(): string
  stop(): Promise<void>
}

/** Three nodes, the last of them a front alone, and a worker. */
async function startNodes(env: Readonly<Record<string, string>>): Promise<Nodes> {
  const folder = mkdtempSync(join(tmpdir(), 'tasks-chaos-'))
  const journal = join(folder, 'journal')
  writeFileSync(journal, '')
  const roles = [[], [], ['--role', 'front'], ['--role', 'worker']] as const
  const ports = await Promise.all(roles.map(() => freePort()))
  const all = { JOURNAL: journal, MCP_HOST_SECRETS: SECRET, ...env }
  const begin = (index: number) =>
    startNode({
      config: CONFIG,
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
    output: () => nodes.map(node => node?.output ?? '').join('\n'),
    async stopOne(index) {
      const node = nodes[index]
      nodes[index] = undefined
      await node?.stop()
    },
    async stop() {
      await Promise.all(nodes.map(node => node?.kill()))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Runs that began and have not ended, with those that a kill has ended. */
function openRuns(journal: string): number {
  const { began, ended } = readJournal(journal)
  const sum = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((all, count) => all + count, 0)
  return sum(began) - sum(ended)
}

function expectNothingLost(tally: ReturnType<typeof tallyOf>) {
  expect(tally.againRunAgain + tally.failed, 'runs that a kill ended').to.be.above(0)
  expect(tally.untold, 'clients that were told nothing').to.equal(0)
  expect([tally.unknown, tally.cancelled], 'lost, and cancelled by nobody').to.deep.equal([0, 0])
  expect(tally.onceRunTwice, 'runs of what may not run twice').to.equal(0)
  expect(tally.madeUp, 'results that nobody made').to.equal(0)
  expect(tally.againNotCompleted, 'of those that may run again').to.equal(0)
}

describe('tasks on several nodes', () => {
  before(function () {
    needsRedis(this)
  })
  let redis: RedisServer
  let crew: Nodes
  afterEach(async () => {
    await crew?.stop()
  })
  after(stopRedis)

  it('killed nodes, worker and Redis: lose no task and repeat only repeatable ones', async () => {
    const random = createSeededRandom(SEED)
    redis = await startRedis({ persistent: true })
    crew = await startNodes({ REDIS_URL: redis.url })
    const kills = { nodes: 0, redis: 0 }
    const first = random.below(crew.size)
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
          // Each process is killed once, while tasks run: otherwise a slow machine can have no run that a kill ended.
          await eventually('tasks run', () => openRuns(crew.journal) >= 4)
          await crew.replace((first + kills.nodes) % crew.size)
          kills.nodes++
        }
      }
    })()
    const [driven] = await Promise.all([drive(crew, TASKS, () => 100 + random.below(4_000)), chaos])
    const told = await driven.settled()
    const tally = tallyOf(told, readJournal(crew.journal))
    console.log(
      `      seed ${SEED}: ${driven.acknowledged} acknowledged, ${driven.refused} refused, ${JSON.stringify(kills)}`,
    )
    expect(driven.acknowledged).to.equal(TASKS)
    expectNothingLost(tally)
  })

  it('stopping nodes release their tasks before the lease expires', async () => {
    redis = await startRedis({ persistent: true })
    crew = await startNodes({ REDIS_URL: redis.url })
    const driven = await drive(crew, 60, () => 4_000)
    for (const index of [0, 1, 3]) await crew.stopOne(index)
    await crew.replace(0)
    const told = await driven.settled()
    const tally = tallyOf(told, readJournal(crew.journal))
    expect(tally.untold + tally.unknown).to.equal(0)
    expect(tally.onceRunTwice).to.equal(0)
    expect(tally.againNotCompleted).to.equal(0)
    expect(tally.againRunAgain, 'runs that were given back').to.be.above(0)
    expect(crew.output()).to.include('listening on').and.not.include('the node that ran a task was lost')
  })

  it('Redis data loss: clients are notified, and new tasks are served', async () => {
    const random = createSeededRandom(SEED + 1)
    redis = await startRedis()
    crew = await startNodes({ REDIS_URL: redis.url })
    const before = await drive(crew, 200, () => 2_000 + random.below(2_000))
    await redis.kill()
    await redis.start()
    const told = await before.settled()
    const after = await (await drive(crew, 100, () => 20, 'after-')).settled()
    const journal = readJournal(crew.journal)
    const [lost, served] = [tallyOf(told, journal), tallyOf(after, journal)]
    expect(lost.untold + served.untold, 'clients that were told nothing').to.equal(0)
    expect(lost.unknown, 'told that it is gone').to.be.above(0)
    expect([lost.onceRunTwice, served.onceRunTwice]).to.deep.equal([0, 0])
    expect(served.completed).to.equal(100)
  })
})

if (HAS_SQLITE) {
  describe('tasks in a SQLite file', () => {
    let crew: WorkersProcess | undefined
    const folder = mkdtempSync(join(tmpdir(), 'tasks-chaos-'))
    after(async () => {
      await crew?.kill()
      rmSync(folder, { recursive: true, force: true })
    })

    it('killed workers: lose no task and repeat only repeatable ones', async () => {
      const random = createSeededRandom(SEED + 2)
      const journal = join(folder, 'journal')
      writeFileSync(journal, '')
      const port = await freePort()
      const env = { STORE_FILE: join(folder, 'host.db'), JOURNAL: journal, MCP_HOST_SECRETS: SECRET }
      const begin = () => startWorkersProcess({ config: CONFIG, workers: 3, port, env })
      crew = await begin()
      const { url } = crew
      const kills = { workers: 0, all: 0 }
      const chaos = (async () => {
        for (let rounds = 0; kills.workers < NODE_KILLS && rounds < 10 * NODE_KILLS; rounds++) {
          await pause(500 + random.below(1_000))
          const pids = [...(crew?.serving ?? [])]
          const pid = pids[random.below(Math.max(1, pids.length))]
          if (pid === undefined) continue
          process.kill(pid, 'SIGKILL')
          kills.workers++
          if (kills.workers !== NODE_KILLS / 2) continue
          await crew?.kill()
          crew = await begin()
          kills.all++
        }
      })()
      const urls = () => [url]
      const [driven] = await Promise.all([drive({ urls }, TASKS, () => 100 + random.below(4_000)), chaos])
      const told = await driven.settled()
      const tally = tallyOf(told, readJournal(journal))
      console.log(
        `      seed ${SEED}: ${driven.acknowledged} acknowledged, ${driven.refused} refused, ${JSON.stringify(kills)}`,
      )
      expectNothingLost(tally)
    })
  })
}
