// The options of rate-limit, and rates such as `120/1m`.
import { choice, closed, count, mapOf, words } from '../../core/internal.ts'
import { type OptionsOf, parseDuration } from '../../core/plugin.ts'

/** A number of requests per window. */
export interface Rate {
  readonly text: string
  readonly max: number
  /** Milliseconds, at least a second. */
  readonly window: number
}

const RATE_PATTERN = '^[1-9]\\d{0,9}/[1-9]\\d{0,4}(s|m|h|d)$'
const RATE_HINT = "a limit such as '120/1m' (requests, a slash, and a time in s, m, h or d)"

export function parseRate(text: string): Rate {
  const [max, time = ''] = text.split('/')
  return { text, max: Number(max), window: parseDuration(time) }
}

const rate = <const D extends string>(description: D) =>
  words(description, { pattern: RATE_PATTERN, patternErrorMessage: RATE_HINT })

const concurrent = <const D extends string>(description: D) => count(description)

export const rateLimitSchema = closed(
  {
    address: rate("HTTP requests per IP address, counted before authentication: '600/1m'."),
    user: rate("HTTP requests per user: '120/1m'. Anonymous callers are counted by IP address."),
    client: rate('HTTP requests per OAuth client, for all its users. Tokens without client_id are not counted.'),
    tools: mapOf(
      {
        anyOf: [
          rate("Calls of one user: '10/1m'."),
          closed(
            {
              limit: rate("Calls per time: '10/1m'."),
              concurrent: concurrent('Maximum concurrent calls in one process.'),
              per: choice(
                ['user', 'all'],
                '`user` (default): a limit for each user. `all`: one limit for all users together.',
              ),
            },
            { title: 'ToolLimit', description: 'A limit with settings.', minProperties: 1 },
          ),
        ],
      },
      'Glob for tool names -> limit of their calls together, or { limit, concurrent, per }.',
      { examples: [{ 'search*': '10/1m', purge: { limit: '5/1h', concurrent: 1 } }] },
    ),
    concurrent: concurrent('Maximum concurrent tool calls of one user in one process.'),
    ipv6Prefix: count('Prefix length that identifies an IPv6 caller: 32 to 128.', {
      minimum: 32,
      maximum: 128,
      default: 64,
    }),
    store: choice(
      ['memory', 'redis'],
      'Store of the counters. `memory`: for one host with all its workers. `redis`: for all nodes, with the `redis` of the config.',
      { default: 'memory' },
    ),
    onFailure: choice(
      ['open', 'closed'],
      'If the store does not respond: `open` accepts requests, `closed` refuses them with 503.',
      { default: 'open' },
    ),
  },
  { description: 'Rate and concurrency limits per address, user, client and tool.' },
)

export interface RateLimitOptions extends OptionsOf<typeof rateLimitSchema> {}
export interface FilledRateLimit extends OptionsOf<typeof rateLimitSchema, true> {}
