// Limits requests per address, user, OAuth client and tool, and concurrent calls; above a limit clients get 429.
import { matchesGlob } from '../../core/auth.ts'
import { definePlugin, nearest } from '../../core/internal.ts'
import { StartError } from '../../core/plugin.ts'
import {
  REDIS_SECTIONS,
  type RedisHost,
  type RedisSections,
  redisConnection,
  STORE_COMMANDS,
} from '../families/redis/index.ts'
import { createGuard, createRedisCounts } from './counts.ts'
import { limitAddresses, limitCalls, limitUsers, type Refusing } from './enforce.ts'
import { compileLimits, describeRoute, describeTool, type Limits } from './limits.ts'
import { type CreateCount, createMemoryCount, MOST_CALLERS } from './memory-counts.ts'
import { type FilledRateLimit, optionsSchema, type RateLimitOptions } from './options.ts'

export type { RateLimitOptions }

const toolLimits = ({ tools = {} }: FilledRateLimit) => Object.values(tools)

const counts = (options: FilledRateLimit) =>
  [options.address, options.user, options.client].some(rate => rate !== undefined) ||
  toolLimits(options).some(rule => typeof rule === 'string' || rule.limit !== undefined)

function faultIn(
  options: FilledRateLimit,
  { config: { at, processes }, countTogether }: RedisHost,
): StartError | undefined {
  if (!counts(options) && options.concurrent === undefined && toolLimits(options).length === 0) {
    const fix = "set address, user, client, tools or concurrent, such as user: '120/1m', or remove the plugin"
    return new StartError('MH2701', `it has no limits; ${fix}`, { at })
  }
  if (processes === 1 || countTogether || options.store === 'redis' || !counts(options)) return undefined
  const why = `${processes} processes serve this config and each counts separately`
  const fix = "Start them with `mcp-host start --workers`, set `store: 'redis'`, or limit requests in the load balancer"
  return new StartError('MH2702', `${why}, so callers get up to ${processes} times each limit. ${fix}`, { at })
}

const countInMemory =
  ({ log, clock }: RedisHost): CreateCount =>
  (name, { window }) => {
    const full = () => {
      const means = 'new callers share counters and can be refused because of others; no caller exceeds the limit'
      log.warn(
        { code: 'MH2705', limit: name, callers: MOST_CALLERS, means },
        'a rate limit has no free counters for further callers',
      )
    }
    return createMemoryCount({ window, full, now: clock.monotonic }).count
  }

function countInPrimary(
  host: RedisHost,
  countTogether: NonNullable<RedisHost['countTogether']>,
  { onFailure }: FilledRateLimit,
): CreateCount {
  const guard = createGuard(host, onFailure, 'the primary process')
  return (name, { text, window }) => {
    const counter = [scopeOf(host), name, text].join(' ')
    return guard(async key => {
      const { used, left } = await countTogether(counter, window, key)
      return { used, until: host.clock.monotonic() + left }
    })
  }
}

/** Returns a scope that is equal on every node, and distinct for routes with their own options. */
const scopeOf = ({ config: { at } }: RedisHost) => at.join('.').replace(/[^\w./*-]/g, '_')

function openCounts(host: RedisHost, options: FilledRateLimit): CreateCount {
  const { store, onFailure } = options
  if (store === 'memory') {
    return host.countTogether ? countInPrimary(host, host.countTogether, options) : countInMemory(host)
  }
  const redis = redisConnection(host, {}, STORE_COMMANDS, { vital: onFailure === 'closed' })
  return createRedisCounts(redis, host, { scope: scopeOf(host), onFailure })
}

function lintRules({ rules }: Limits, host: RedisHost) {
  const tools = host.routes
    .flatMap(route => host.services.reachableItemsOf(route))
    .flatMap(({ kind, key }) => (kind === 'tools' ? key : []))
  for (const { glob } of rules) {
    if (tools.some(tool => matchesGlob(glob, tool))) continue
    const near = nearest(glob.replaceAll('*', ''), tools)
    if (near === undefined && !host.services.knowsItems()) continue
    const hint = near === undefined ? '' : `; did you mean "${near}"?`
    const what = `the limit matches no tool that is defined at startup${hint}`
    host.report(new StartError('MH1113', what, { at: [...host.config.at, 'tools', glob] }), 'warning')
  }
}

function createRefusing({ name, metrics, clock }: RedisHost): Refusing {
  const tell = metrics.counter({
    name: 'mcp_host_rate_limited_total',
    help: 'Requests and calls that were refused with 429, by the limit: address, user, client, tool or concurrent.',
    labels: ['limit'],
  })
  return { by: name, now: clock.monotonic, refused: limit => tell(1, { limit }) }
}

function setup(host: RedisHost, options: FilledRateLimit) {
  const fault = faultIn(options, host)
  if (fault) return host.report(fault)
  const createCount = openCounts(host, options)
  let limits = compileLimits(options, createCount)
  const now = () => limits
  const refusing = createRefusing(host)
  host.onRequest(limitAddresses(now, refusing))
  host.authorize(limitUsers(now, refusing))
  host.onCall(limitCalls(now, refusing))
  host.explain(item => {
    if (!item) return describeRoute(limits)
    return item.kind === 'tools' ? describeTool(limits, item) : []
  })
  host.onReady(() => lintRules(limits, host))
  host.onReload<FilledRateLimit>(changed => {
    const wrong = faultIn(changed, host)
    if (wrong) throw wrong
    // A reload cannot change the store.
    if (changed.store !== options.store || changed.onFailure !== options.onFailure) return undefined
    const next = compileLimits(changed, createCount, limits)
    return () => {
      limits = next
    }
  })
}

export const rateLimit = definePlugin<RateLimitOptions, FilledRateLimit, RedisSections>({
  sections: REDIS_SECTIONS,
  options: optionsSchema,
  setup,
})
