// Compiles the options of an instance: counters, tool rules and descriptions.
import { matchesGlob, type ToolItem } from '../../core/auth.ts'
import type { Count, CreateCount } from './memory-counts.ts'
import { type FilledRateLimit, type Rate, readRate } from './options.ts'

interface Running {
  enter(key: string): boolean
  leave(key: string): void
  readonly count: number
}

function createRunning(most: number): Running {
  const running = new Map<string, number>()
  return {
    enter(key) {
      const count = running.get(key) ?? 0
      if (count >= most) return false
      running.set(key, count + 1)
      return true
    },
    leave(key) {
      const count = (running.get(key) ?? 0) - 1
      if (count > 0) running.set(key, count)
      else running.delete(key)
    },
    get count() {
      return [...running.values()].reduce((sum, count) => sum + count, 0)
    },
  }
}

export interface Limit {
  /** `address`, `user`, `client` or `tool`. */
  readonly name: string
  readonly place: string
  readonly rate: Rate
  /** The `RateLimit-Policy` member. */
  readonly policy: string
  readonly count: Count
}

export interface Cap {
  readonly name: string
  readonly place: string
  readonly most: number
  readonly running: Running
}

export interface ToolRule {
  readonly glob: string
  readonly limit: Limit | undefined
  readonly cap: Cap | undefined
  readonly forAll: boolean
}

export interface Limits {
  readonly options: FilledRateLimit
  readonly address: Limit | undefined
  readonly user: Limit | undefined
  readonly client: Limit | undefined
  readonly cap: Cap | undefined
  readonly rules: readonly ToolRule[]
  rulesOf(tool: ToolItem): readonly ToolRule[]
}

type Named = Pick<Limit, 'name' | 'place'>

const createCap = (most: number | undefined, named: Named): Cap | undefined =>
  most === undefined ? undefined : { ...named, most, running: createRunning(most) }

/** Unchanged limits of `known` keep their counters. */
export function compileLimits(options: FilledRateLimit, createCount: CreateCount, known?: Limits): Limits {
  const knownLimits = [known?.address, known?.user, known?.client, ...(known?.rules ?? []).map(({ limit }) => limit)]
  const knownCaps = [known?.cap, ...(known?.rules ?? []).map(({ cap }) => cap)]

  function limitOf(text: string | undefined, { name, place }: Named): Limit | undefined {
    if (text === undefined) return undefined
    const same = knownLimits.find(limit => limit?.place === place && limit.rate.text === text)
    if (same) return same
    const rate = readRate(text)
    const policy = `"${name}";q=${rate.most};w=${rate.window / 1_000}`
    return { name, place, rate, policy, count: createCount(place, rate) }
  }
  function capOf(most: number | undefined, named: Named): Cap | undefined {
    return knownCaps.find(cap => cap?.place === named.place && cap.most === most) ?? createCap(most, named)
  }
  function ruleOf([glob, written]: [string, NonNullable<FilledRateLimit['tools']>[string]]): ToolRule {
    const { limit, concurrent, per } = typeof written === 'string' ? { limit: written } : written
    const place = `tools.${glob}`
    const forAll = per === 'all'
    return {
      glob,
      limit: limitOf(limit, { name: 'tool', place: forAll ? `${place} of all` : place }),
      cap: capOf(concurrent, { name: 'tool', place: `${place}.concurrent` }),
      forAll,
    }
  }

  const rules = Object.entries(options.tools ?? {}).map(ruleOf)
  const found = new WeakMap<ToolItem, readonly ToolRule[]>()
  return {
    options,
    address: limitOf(options.address, { name: 'address', place: 'address' }),
    user: limitOf(options.user, { name: 'user', place: 'user' }),
    client: limitOf(options.client, { name: 'client', place: 'client' }),
    cap: capOf(options.concurrent, { name: 'user', place: 'concurrent' }),
    rules,
    rulesOf(tool) {
      let own = found.get(tool)
      if (!own) {
        own = rules.filter(({ glob }) => matchesGlob(glob, tool.key))
        found.set(tool, own)
      }
      return own
    },
  }
}

/** Formats a rate, such as `120 requests in 1m`. */
export const inWords = ({ rate: { most, text } }: Limit, what: string): string =>
  `${most} ${what}${most === 1 ? '' : 's'} in ${text.slice(text.indexOf('/') + 1)}`

const WHOSE = { address: 'of one address', user: 'of one user', client: 'of one OAuth client' } as const

/** Formats one line per limit, for `mcp-host explain`. */
export function describeRoute(limits: Limits): string[] {
  const { options, cap } = limits
  const lines = (['address', 'user', 'client'] as const).flatMap(name => {
    const limit = limits[name]
    return limit ? `${name}: at most ${inWords(limit, 'request')} ${WHOSE[name]}` : []
  })
  if (cap) lines.push(`concurrent: at most ${cap.most} tool calls of one user at once, in one process`)
  const counted = options.store === 'redis' ? `in Redis; while it is away ${options.onFailure}` : 'in this process'
  return [...lines, `counted ${counted}`]
}

export function describeTool(limits: Limits, tool: ToolItem): string[] {
  return limits.rulesOf(tool).flatMap(({ glob, limit, cap, forAll }) => {
    const whose = forAll ? 'of all callers' : 'of one user'
    return [
      ...(limit ? [`tools "${glob}": at most ${inWords(limit, 'call')} ${whose}`] : []),
      ...(cap ? [`tools "${glob}": at most ${cap.most} at once ${whose}, in one process`] : []),
    ]
  })
}
