// One chaos run on one machine: workers on one file under load, with repeated SIGKILL of single workers and then of all
// processes, which restart on the file.
import { randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { createAnnouncer } from '../../cluster/chaos/change-publisher.ts'
import { LISTENERS, startLoad } from '../../cluster/chaos/start-load.ts'
import { createTally, describeTally, faultsOf, type Tally } from '../../cluster/chaos/tally.ts'
import { freePort } from '../../support/free-port.ts'
import { modern } from '../../support/rpc.ts'
import { createSeededRandom, type SeededRandom } from '../../support/seeded-random.ts'
import { startWorkersProcess, type WorkersProcess } from '../support/workers-process.ts'

export interface ChaosSettings {
  readonly workers: number
  /** SIGKILLs in all: of a worker, or of the whole crew. */
  readonly kills: number
  readonly seed: number
  /** Where the store is. */
  readonly env: Readonly<Record<string, string>>
}

export interface ChaosReport {
  readonly kills: { workers: number; crews: number }
  readonly announced: number
  /** Changes of which nobody knows whether they were announced, and so they were again. */
  readonly announcedAgain: number
  readonly seconds: number
  readonly tally: Tally
  /** What must not have happened; empty when all is well. */
  readonly faults: readonly string[]
  readonly output: string
}

/** Workers killed before the crew is: their places are filled again, later each time. */
const WORKER_KILLS = 7

const CONFIG = 'test/sqlite/chaos/load.config.ts'

interface Deployment {
  crew: WorkersProcess
  start(): Promise<WorkersProcess>
}

async function createDeployment({ workers, env }: ChaosSettings): Promise<Deployment> {
  const port = await freePort()
  const secrets = { MCP_HOST_SECRETS: randomBytes(32).toString('base64') }
  const start = () => startWorkersProcess({ config: CONFIG, workers, port, env: { ...secrets, ...env } })
  return { crew: await start(), start }
}

/** One that serves, at random; undefined where none does at the moment. */
function victimOf({ serving }: WorkersProcess, random: SeededRandom): number | undefined {
  return [...serving][random.below(Math.max(1, serving.size))]
}

async function killOften(deployment: Deployment, { kills }: ChaosSettings, random: SeededRandom) {
  const done = { workers: 0, crews: 0 }
  while (done.workers + done.crews < kills) {
    for (let kill = 0; kill < WORKER_KILLS && done.workers + done.crews < kills - 1; kill++) {
      await wait(200 + random.below(600))
      const victim = victimOf(deployment.crew, random)
      if (victim === undefined) continue
      process.kill(victim, 'SIGKILL')
      done.workers++
    }
    await wait(random.below(600))
    await deployment.crew.kill()
    done.crews++
    deployment.crew = await deployment.start()
  }
  return done
}

/** Announces a change by a call of a tool, at whichever worker takes it. False where it was not answered. */
async function announceAt(url: string, number: number): Promise<boolean> {
  const signal = AbortSignal.timeout(10_000)
  const params = { name: 'announce', arguments: { number } }
  const answer = await modern(url, 'tools/call', params, { init: { signal } }).catch(() => undefined)
  if (answer === undefined || answer.status >= 500) return false
  if (answer.message?.result?.content?.[0]?.text === 'announced') return true
  throw new Error(`an announcement was answered ${answer.status} ${answer.text}`)
}

export async function runChaos(settings: ChaosSettings): Promise<ChaosReport> {
  const random = createSeededRandom(settings.seed)
  const tally = createTally()
  const deployment = await createDeployment(settings)
  const began = performance.now()
  try {
    const { url } = deployment.crew
    const announcer = createAnnouncer(number => announceAt(`${url}/announce`, number))
    let enough = false
    const { seed } = settings
    const load = await startLoad({ url: `${url}/mcp`, seed, tally, announcer, enough: () => enough })
    const kills = await killOften(deployment, settings, random)
    enough = true
    const seconds = (performance.now() - began) / 1_000
    await load.finish()
    const faults = faultsOf(tally, { gaps: false, toldAnew: true, nodeLost: true })
    // The primary keeps the changes, and a worker that is killed while it takes a stream over loses the place of the stream.
    // Only then a listener is told that anything may have changed, to the end of it once for each kill.
    const most = (kills.crews + kills.workers) * LISTENERS
    if (tally.toldWhole > most) faults.push(`toldWhole: ${tally.toldWhole}, more than ${most} for the kills`)
    const { announced } = announcer
    return {
      kills,
      seconds,
      announced: announced.count,
      announcedAgain: announced.again.size,
      tally,
      faults,
      output: faults.length > 0 ? deployment.crew.output.slice(-8_000) : '',
    }
  } catch (cause) {
    throw new Error(`${cause}\n${deployment.crew.output.slice(-8_000)}`, { cause })
  } finally {
    await deployment.crew.kill()
  }
}

/** A report for people, on several lines. */
export function describeReport({ kills, seconds, announced, announcedAgain, tally, faults }: ChaosReport): string {
  return [
    `SIGKILL: ${kills.workers} of a worker, ${kills.crews} of the whole crew, in ${seconds.toFixed(0)} s`,
    `changes announced ${announced}, ${announcedAgain} of them twice because nobody knew`,
    ...describeTally(tally),
    ...faults.map(fault => `MUST NOT BE: ${fault}`),
  ].join('\n      ')
}
