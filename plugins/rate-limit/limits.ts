// Compiles the options of an instance: counters, tool rules and descriptions.
import { matchesGlob, type ToolItem } from '../../core/auth.ts'
import { addCount } from '../../core/internal.ts'
import type { Counter, CreateCounter } from './memory-counter.ts'
import { type FilledRateLimit, parseRate, type Rate } from './options.ts'

interface ConcurrencyCounter {
  acquire(key: string): boolean
  release(key: string): void
  readonly count: number
}

function createConcurrencyCounter(max: number): ConcurrencyCounter {
  const running = new Map<string, number>()
  return {
    acquire(key) {
      if ((running.get(key) ?? 0) >= max) return false
      addCount(running, key, 1)
      return true
    },
    release: key => addCount(running, key, -1),
    get count() {
      return [...running.values()].reduce((sum, count) => sum + count, 0)
    },
  }
}

export interface Limit {
  /** `address`, `user`, `client` or `tool`. */
  readonly name: string
  readonly path: string
  readonly rate: Rate
  /** The `RateLimit-Policy` member. */
  readonly policy: string
  readonly count: Counter
}

export interface Cap {
  readonly name: string
  readonly path: string
  readonly max: number
  readonly running: ConcurrencyCounter
}

export interface ToolRule {
  readonly glob: string
  readonly limit: Limit | undefined
  readonly cap: Cap | undefined
  readonly isShared: boolean
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

type Identity = Pick<Limit, 'name' | 'path'>

const createCap = (max: number | undefined, identity: Identity): Cap | undefined =>
  max === undefined ? undefined : { ...identity, max, running: createConcurrencyCounter(max) }

/** Unchanged limits of `old` keep their counters. */
export function compileLimits(options: FilledRateLimit, createCount: CreateCounter, old?: Limits): Limits {
  const oldLimits = [old?.address, old?.user, old?.client, ...(old?.rules ?? []).map(({ limit }) => limit)]
  const oldCaps = [old?.cap, ...(old?.rules ?? []).map(({ cap }) => cap)]

  function createLimit(text: string | undefined, { name, path }: Identity): Limit | undefined {
    if (text === undefined) return undefined
    const unchanged = oldLimits.find(limit => limit?.path === path && limit.rate.text === text)
    if (unchanged) return unchanged
    const rate = parseRate(text)
    const policy = `"${name}";q=${rate.max};w=${rate.window / 1_000}`
    return { name, path, rate, policy, count: createCount(path, rate) }
  }
  function reuseCap(max: number | undefined, identity: Identity): Cap | undefined {
    return oldCaps.find(cap => cap?.path === identity.path && cap.max === max) ?? createCap(max, identity)
  }
  function createRule([glob, configured]: [string, NonNullable<FilledRateLimit['tools']>[string]]): ToolRule {
    const { limit, concurrent, per } = typeof configured === 'string' ? { limit: configured } : configured
    const path = `tools.${glob}`
    const isShared = per === 'all'
    return {
      glob,
      limit: createLimit(limit, { name: 'tool', path: isShared ? `${path} of all` : path }),
      cap: reuseCap(concurrent, { name: 'tool', path: `${path}.concurrent` }),
      isShared,
    }
  }

  const rules = Object.entries(options.tools ?? {}).map(createRule)
  const cache = new WeakMap<ToolItem, readonly ToolRule[]>()
  return {
    options,
    address: createLimit(options.address, { name: 'address', path: 'address' }),
    user: createLimit(options.user, { name: 'user', path: 'user' }),
    client: createLimit(options.client, { name: 'client', path: 'client' }),
    cap: reuseCap(options.concurrent, { name: 'user', path: 'concurrent' }),
    rules,
    rulesOf(tool) {
      let matching = cache.get(tool)
      if (!matching) {
        matching = rules.filter(({ glob }) => matchesGlob(glob, tool.key))
        cache.set(tool, matching)
      }
      return matching
    },
  }
}

/** Formats a rate, such as `120 requests in 1m`. */
export const formatRate = ({ rate: { max, text } }: Limit, what: string): string =>
  `${max} ${what}${max === 1 ? '' : 's'} in ${text.slice(text.indexOf('/') + 1)}`

const SUBJECTS = { address: 'of one address', user: 'of one user', client: 'of one OAuth client' } as const

/** Formats one line per limit, for `mcp-host explain`. */
export function describeRoute(limits: Limits): string[] {
  const { options, cap } = limits
  const lines = (['address', 'user', 'client'] as const).flatMap(name => {
    const limit = limits[name]
    return limit ? `${name}: at most ${formatRate(limit, 'request')} ${SUBJECTS[name]}` : []
  })
  if (cap) lines.push(`concurrent: at most ${cap.max} tool calls of one user at once, in one process`)
  const counted = options.store === 'redis' ? `in Redis; if it is unavailable: ${options.onFailure}` : 'in this process'
  return [...lines, `counted ${counted}`]
}

export function describeTool(limits: Limits, tool: ToolItem): string[] {
  return limits.rulesOf(tool).flatMap(({ glob, limit, cap, isShared }) => {
    const subject = isShared ? 'of all callers' : 'of one user'
    return [
      ...(limit ? [`tools "${glob}": at most ${formatRate(limit, 'call')} ${subject}`] : []),
      ...(cap ? [`tools "${glob}": at most ${cap.max} at once ${subject}, in one process`] : []),
    ]
  })
}
