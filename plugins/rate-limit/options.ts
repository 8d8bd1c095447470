// The options of rate-limit, and rates such as `120/1m`.
import { type OptionsOf, parseDuration } from '../../core/plugin.ts'

/** A number of requests per window. */
export interface Rate {
  /** As configured. */
  readonly text: string
  readonly most: number
  /** Milliseconds, at least a second. */
  readonly window: number
}

const RATE_PATTERN = '^[1-9]\\d{0,9}/[1-9]\\d{0,4}(s|m|h|d)$'
const RATE_WORDS = "a limit such as '120/1m' (requests, a slash, and a time in s, m, h or d)"

export function readRate(text: string): Rate {
  const [most, time = ''] = text.split('/')
  return { text, most: Number(most), window: parseDuration(time) }
}

const rate = <const D extends string>(description: D) =>
  ({ type: 'string', pattern: RATE_PATTERN, patternErrorMessage: RATE_WORDS, description }) as const

const concurrent = <const D extends string>(description: D) => ({ type: 'integer', minimum: 1, description }) as const

export const optionsSchema = {
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
} as const

export interface RateLimitOptions extends OptionsOf<typeof optionsSchema> {}
export interface FilledRateLimit extends OptionsOf<typeof optionsSchema, true> {}
