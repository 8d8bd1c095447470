// One run: a host, attackers and a legitimate client, and the checks of the host after all have left.
import { setTimeout as wait } from 'node:timers/promises'
import { startIssuer } from '../support/test-issuer.ts'
import type { Holding, Plant } from './attacked-settings.ts'
import { ATTACKS } from './attacks/index.ts'
import { type HostEnd, type HostProcess, startHostProcess } from './host-process.ts'
import { type Attack, runRound } from './round.ts'
import { startSteadyClient } from './steady-client.ts'
import { Tally } from './tally.ts'
import { AUDIENCE, createMarkers, createTarget, type Target } from './target.ts'

export interface HostileSettings {
  /** How long it is attacked after the warm-up, which takes a sixth of it. */
  readonly seconds: number
  readonly seed: number
  /** Kinds of attack. Default: all. */
  readonly only?: readonly string[] | undefined
  /** Rounds to run again in the place of everything else, `<kind>:<number>`. */
  readonly replay?: readonly string[] | undefined
  readonly plants?: readonly Plant[]
  /** For Node, such as `--cpu-prof`. */
  readonly hostFlags?: readonly string[]
  /** For tests whose host is known not to answer, or not to come to rest. */
  readonly limits?: Limits
}

export interface HostileReport {
  readonly tally: Tally
  /** Before anybody called; when those of the warm-up were gone; when all were. */
  readonly idle: Holding | undefined
  readonly baseline: Holding | undefined
  readonly after: Holding | undefined
  /** The longest turn of the event loop, milliseconds in which the process ran. */
  readonly longest: number | undefined
  readonly latencies: readonly number[]
  readonly end: HostEnd
  readonly steadyCalls: number
}

/** Milliseconds. */
export interface Limits {
  /** In which a whole request is answered; the longest tool takes three seconds. */
  readonly answer: number
  /** In which what clients left behind ends: sessions idle out after five seconds, calls after three. */
  readonly settle: number
}
const LIMITS: Limits = { answer: 20_000, settle: 25_000 }
const SETTLE_LOOK = 250
/** Rounds that ended last, for a report. */
const REMEMBERED = 12
const WARM_UP = 1 / 6

const GONE = ['sessions', 'runs', 'subscribers', 'calls', 'sockets'] as const

class Run {
  readonly tally = new Tally()
  readonly #settings: HostileSettings
  readonly #running = new Set<string>()
  readonly #ended: string[] = []
  readonly #next = new Map<string, number>()
  readonly #answerLimit: number
  over = false

  constructor(settings: HostileSettings) {
    this.#settings = settings
    this.#answerLimit = (settings.limits ?? LIMITS).answer
  }

  /** The rounds that run, and those that ended last. */
  readonly rounds = (): readonly string[] => [...this.#running, ...this.#ended]

  async one(attack: Attack, index: number, target: Target): Promise<void> {
    const name = `${attack.kind}:${index}`
    this.#running.add(name)
    await runRound({
      attack,
      index,
      seed: this.#settings.seed,
      target,
      tally: this.tally,
      over: () => this.over,
      answerLimit: this.#answerLimit,
    })
    this.#running.delete(name)
    this.#ended.unshift(name)
    if (this.#ended.length > REMEMBERED) this.#ended.pop()
  }

  async #lane(attack: Attack, target: Target) {
    while (!this.over) {
      const index = this.#next.get(attack.kind) ?? 0
      this.#next.set(attack.kind, index + 1)
      await this.one(attack, index, target)
      // At least a turn: one lane must not keep the others waiting.
      await wait(attack.pause ?? 0)
    }
  }

  /** Attacks in every lane, for so many milliseconds. */
  async attack(attacks: readonly Attack[], target: Target, milliseconds: number): Promise<void> {
    this.over = false
    const lanes = attacks.flatMap(attack => Array.from({ length: attack.lanes ?? 1 }, () => this.#lane(attack, target)))
    const all = Promise.all(lanes)
    try {
      for (const until = Date.now() + milliseconds; Date.now() < until && !this.over; )
        await Promise.race([wait(50), all])
    } finally {
      this.over = true
    }
    await all
  }

  /** One round of each kind, one after the other: a host that was just started compiles what it runs. */
  async acquaint(attacks: readonly Attack[], target: Target): Promise<void> {
    for (const attack of attacks) {
      const index = this.#next.get(attack.kind) ?? 0
      this.#next.set(attack.kind, index + 1)
      await this.one(attack, index, target)
    }
  }

  async replay(names: readonly string[], target: Target): Promise<void> {
    this.over = false
    for (const name of names) {
      const [kind, index] = name.split(':')
      const attack = ATTACKS.find(known => known.kind === kind)
      if (!attack || !Number.isInteger(Number(index))) throw new Error(`there is no round "${name}"`)
      await this.one(attack, Number(index), target)
    }
  }
}

/** What the host holds once nothing is left of its clients, or will not be. */
async function settle(host: HostProcess, limit: number): Promise<Holding | undefined> {
  for (const until = Date.now() + limit; Date.now() < until && host.alive(); await wait(SETTLE_LOOK)) {
    const holding = await host.holding(false)
    if (holding && GONE.every(name => holding[name] === 0)) break
  }
  return host.holding(true)
}

export function attacksOf(only: readonly string[] | undefined): readonly Attack[] {
  if (only === undefined) return ATTACKS
  return only.map(kind => {
    const attack = ATTACKS.find(known => known.kind === kind)
    if (!attack) throw new Error(`there is no kind "${kind}"; there are ${ATTACKS.map(known => known.kind).join(', ')}`)
    return attack
  })
}

export async function runHostile(settings: HostileSettings): Promise<HostileReport> {
  const { seconds, seed, only, replay, plants = [], hostFlags = [], limits = LIMITS } = settings
  const attacks = attacksOf(only)
  const run = new Run(settings)
  const { tally } = run
  // A host that was just started compiles what it runs; that is no attacker's doing.
  let acquainted = replay !== undefined
  const issuer = await startIssuer()
  const markers = createMarkers(seed)
  const host = await startHostProcess(
    { issuer: issuer.url, audience: AUDIENCE, markers, plants, plain: seed % 2 === 0 },
    {
      stalled({ ran, wall, collecting, during }) {
        if (!acquainted) return
        const text = `${ran} ms (${wall} ms by the clock, ${collecting} of them garbage collection): ${during}`
        tally.fault({ kind: 'stall', text, rounds: run.rounds() })
      },
      logged(level, text, line) {
        const key = `${level >= 50 ? 'error' : level >= 40 ? 'warn' : 'info'}: ${text}`
        tally.logLines.set(key, (tally.logLines.get(key) ?? 0) + 1)
        if (level >= 50) tally.fault({ kind: 'errorLine', text: line.slice(0, 400), rounds: run.rounds() })
      },
      crashed(how, lastLines) {
        tally.fault({ kind: 'crash', text: `the host ended with ${how}:\n${lastLines}`, rounds: run.rounds() })
        run.over = true
      },
    },
    hostFlags,
  )
  try {
    const target = createTarget(host.url, issuer, markers)
    const idle = await host.holding(true)
    const latencies: number[] = []
    const attacked = async (milliseconds: number) => {
      const steady = startSteadyClient(target, tally, run.rounds, limits.answer)
      try {
        if (replay) await run.replay(replay, target)
        else await run.attack(attacks, target, milliseconds)
      } finally {
        await steady.stop()
      }
      latencies.push(...steady.latencies)
    }
    if (!replay) {
      await run.acquaint(attacks, target)
      acquainted = true
      await attacked(seconds * 1_000 * WARM_UP)
    }
    const baseline = await settle(host, limits.settle)
    if (host.alive()) await attacked(seconds * 1_000)
    const after = await settle(host, limits.settle)
    const longest = await host.longest()
    const end = await host.stop()
    return { tally, idle, baseline, after, longest, latencies, end, steadyCalls: latencies.length }
  } finally {
    if (host.alive()) await host.stop()
    await issuer.stop()
  }
}
