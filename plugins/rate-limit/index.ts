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
import { type Limiter, limitAddresses, limitCalls, limitUsers } from './enforce.ts'
import { compileLimits, describeRoute, describeTool, type Limits } from './limits.ts'
import { type CreateCounter, createMemoryCounter, MAX_CALLERS } from './memory-counter.ts'
import { type FilledRateLimit, type RateLimitOptions, rateLimitSchema } from './options.ts'
import { createRedisCounters, createStoreGuard } from './shared-counters.ts'

export type { RateLimitOptions }

const toolLimits = ({ tools = {} }: FilledRateLimit) => Object.values(tools)

const hasRates = (options: FilledRateLimit) =>
  [options.address, options.user, options.client].some(rate => rate !== undefined) ||
  toolLimits(options).some(rule => typeof rule === 'string' || rule.limit !== undefined)

function checkOptions(
  options: FilledRateLimit,
  { config: { at, processes }, countTogether }: RedisHost,
): StartError | undefined {
  if (!hasRates(options) && options.concurrent === undefined && toolLimits(options).length === 0) {
    const fix = "set address, user, client, tools or concurrent, such as user: '120/1m', or remove the plugin"
    return new StartError('MH2701', `it has no limits; ${fix}`, { at })
  }
  if (processes === 1 || countTogether || options.store === 'redis' || !hasRates(options)) return undefined
  const why = `${processes} processes serve this config and each counts separately`
  const fix = "Start them with `mcp-host start --workers`, set `store: 'redis'`, or limit requests in the load balancer"
  return new StartError('MH2702', `${why}, so callers get up to ${processes} times each limit. ${fix}`, { at })
}

const countInMemory =
  ({ log, clock }: RedisHost): CreateCounter =>
  (name, { window }) => {
    const onFull = () => {
      const effect = 'new callers share counters and can be refused because of others; no caller exceeds the limit'
      log.warn(
        { code: 'MH2705', limit: name, callers: MAX_CALLERS, means: effect },
        'a rate limit has no free counters for further callers',
      )
    }
    return createMemoryCounter({ window, onFull, now: clock.monotonic }).count
  }

function countInPrimary(
  host: RedisHost,
  countTogether: NonNullable<RedisHost['countTogether']>,
  { onFailure }: FilledRateLimit,
): CreateCounter {
  const guard = createStoreGuard(host, onFailure, 'the primary process')
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

function createCounters(host: RedisHost, options: FilledRateLimit): CreateCounter {
  const { store, onFailure } = options
  if (store === 'memory') {
    return host.countTogether ? countInPrimary(host, host.countTogether, options) : countInMemory(host)
  }
  const redis = redisConnection(host, {}, STORE_COMMANDS, { vital: onFailure === 'closed' })
  return createRedisCounters(redis, host, { scope: scopeOf(host), onFailure })
}

function warnOfUnmatchedRules({ rules }: Limits, host: RedisHost) {
  const tools = host.routes
    .flatMap(route => host.services.reachableItemsOf(route))
    .flatMap(({ kind, key }) => (kind === 'tools' ? key : []))
  for (const { glob } of rules) {
    if (tools.some(tool => matchesGlob(glob, tool))) continue
    const suggestion = nearest(glob.replaceAll('*', ''), tools)
    if (suggestion === undefined && !host.services.hasStaticItems()) continue
    const hint = suggestion === undefined ? '' : `; did you mean "${suggestion}"?`
    const what = `the limit matches no tool that is defined at startup${hint}`
    host.report(new StartError('MH1113', what, { at: [...host.config.at, 'tools', glob] }), 'warning')
  }
}

function createLimiter({ name, metrics, clock }: RedisHost): Limiter {
  const count = metrics.counter({
    name: 'mcp_host_rate_limited_total',
    help: 'Requests and calls that were refused with 429, by the limit: address, user, client, tool or concurrent.',
    labels: ['limit'],
  })
  return { plugin: name, now: clock.monotonic, count: limit => count(1, { limit }) }
}

function setup(host: RedisHost, options: FilledRateLimit) {
  const error = checkOptions(options, host)
  if (error) return host.report(error)
  const createCounter = createCounters(host, options)
  let limits = compileLimits(options, createCounter)
  const now = () => limits
  const limiter = createLimiter(host)
  host.onRequest(limitAddresses(now, limiter))
  host.authorize(limitUsers(now, limiter))
  host.onCall(limitCalls(now, limiter))
  host.explain(item => {
    if (!item) return describeRoute(limits)
    return item.kind === 'tools' ? describeTool(limits, item) : []
  })
  host.onReady(() => warnOfUnmatchedRules(limits, host))
  host.onReload<FilledRateLimit>(changed => {
    const error = checkOptions(changed, host)
    if (error) throw error
    // A reload cannot change the store.
    if (changed.store !== options.store || changed.onFailure !== options.onFailure) return undefined
    const next = compileLimits(changed, createCounter, limits)
    return () => {
      limits = next
    }
  })
}

export const rateLimit = definePlugin<RateLimitOptions, FilledRateLimit, RedisSections>({
  sections: REDIS_SECTIONS,
  options: rateLimitSchema,
  setup,
})
