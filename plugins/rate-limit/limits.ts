// Options of rate-limit, compiled to counters, tool rules and descriptions.
import { matchesGlob, type ToolItem } from '../../core/auth.ts'
import { type BuiltInOptions, type FilledOptions, type OptionsSchema, parseDuration } from '../../core/index.ts'
import type { Count, CreateCount, Rate } from './memory-counts.ts'

export type RateLimitOptions = BuiltInOptions['rate-limit']
export type FilledRateLimit = FilledOptions['rate-limit']

const RATE_PATTERN = '^[1-9]\\d{0,9}/[1-9]\\d{0,4}(s|m|h|d)$'
const RATE_WORDS = "a limit such as '120/1m' (requests, a slash, and a time in s, m, h or d)"

function readRate(text: string): Rate {
  const [most, time = ''] = text.split('/')
  return { text, most: Number(most), window: parseDuration(time) }
}

const rate = (description: string) => ({
  type: 'string' as const,
  pattern: RATE_PATTERN,
  patternErrorMessage: RATE_WORDS,
  description,
})

const concurrent = (description: string) => ({ type: 'integer' as const, minimum: 1, description })

export const optionsSchema: OptionsSchema<RateLimitOptions, FilledRateLimit> = {
  type: 'object',
  description: 'How often, and how many at once: limits per address, user, client and tool.',
  additionalProperties: false,
  properties: {
    address: rate("HTTP requests of one address, before anybody asks who calls: '600/1m'."),
    user: rate("HTTP requests of one user: '120/1m'. For anonymous callers their address stands for the user."),
    client: rate(
      'HTTP requests of one OAuth client, of all its users together. Of tokens that name none nobody counts.',
    ),
    tools: {
      type: 'object',
      description: 'Glob over tool names -> limit of their calls, all tools that fit counted together.',
      additionalProperties: {
        anyOf: [
          rate("Calls of one user: '10/1m'."),
          {
            title: 'ToolLimit',
            type: 'object',
            description: 'More than a limit.',
            additionalProperties: false,
            minProperties: 1,
            properties: {
              limit: rate("Calls in a time: '10/1m'."),
              concurrent: concurrent('Calls that run at once, in one process.'),
              per: {
                type: 'string',
                enum: ['user', 'all'],
                description:
                  "Whose calls count together: 'user' (default) those of one user, 'all' those of everybody.",
              },
            },
          },
        ],
      },
      examples: [{ 'search*': '10/1m', purge: { limit: '5/1h', concurrent: 1 } }],
    },
    concurrent: concurrent('Tool calls of one user that run at once, in one process.'),
    ipv6Prefix: {
      type: 'integer',
      minimum: 32,
      maximum: 128,
      default: 64,
      description: 'How many bits of an IPv6 address are one caller: who has one address has a /64.',
    },
    store: {
      type: 'string',
      enum: ['memory', 'redis'],
      default: 'memory',
      description:
        "Where requests are counted: in memory, for all workers of this host, or in the config's `redis`, for all nodes.",
    },
    onFailure: {
      type: 'string',
      enum: ['open', 'closed'],
      default: 'open',
      description:
        "While requests cannot be counted (no response from Redis): 'open' lets them pass, 'closed' refuses them with 503.",
    },
  },
}

interface Running {
  /** Returns false at the limit. */
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
  /** Place in the options, for logs, such as `tools.search*`. */
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
  /** Whether all callers are counted together. */
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

/** `120 requests in 1m`. */
export const inWords = ({ rate: { most, text } }: Limit, what: string): string =>
  `${most} ${what}${most === 1 ? '' : 's'} in ${text.slice(text.indexOf('/') + 1)}`

const WHOSE = { address: 'of one address', user: 'of one user', client: 'of one OAuth client' } as const

/** One line per limit, for `mcp-host explain`. */
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
