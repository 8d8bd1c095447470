// Applies the limits to requests and calls: keys of callers, 429 responses and the RateLimit headers.
import { hash } from 'node:crypto'
import { addressKey, attributeError, type ToolItem } from '../../core/auth.ts'
import { HostError, type User } from '../../core/index.ts'
import type { Call, HostContext, HostMiddleware, Next } from '../../core/plugin.ts'
import { limitOwnerOf } from '../../core/transport.ts'
import { type Cap, formatRate, type Limit, type Limits, type ToolRule } from './limits.ts'
import type { Tally } from './memory-counter.ts'

/** Pseudonymises the key. */
const digest = (text: string) => hash('sha256', text, 'base64url').slice(0, 22)

const userKeys = new WeakMap<User, string>()

function keyOfUser(user: User): string {
  const cached = userKeys.get(user)
  if (cached !== undefined) return cached
  const key = digest(limitOwnerOf({ user, ip: '' }))
  userKeys.set(user, key)
  return key
}

const callerKey = (user: User | undefined, ip: string, prefix: number): string =>
  user ? keyOfUser(user) : addressKey(ip, prefix)

const clientKey = (user: User | undefined): string | undefined =>
  user?.clientId === undefined ? undefined : digest(JSON.stringify([user.issuer ?? '', user.clientId]))

/** Value of `Retry-After`, seconds, because the end of a running call is unknown. */
const RETRY_AFTER = 1

const secondsUntilReset = ({ until }: Tally, now: number) => Math.max(1, Math.ceil((until - now) / 1_000))

const formatState = ({ name, rate }: Limit, tally: Tally, now: number): string =>
  `"${name}";r=${Math.max(0, rate.max - tally.used)};t=${secondsUntilReset(tally, now)}`

export interface Limiter {
  readonly plugin: string
  now(): number
  count(limit: string): void
}

interface Refusal {
  readonly detail: string
  readonly reason: string
  readonly limit: string
  /** Seconds. */
  readonly retryAfter: number
  readonly headers: Record<string, string>
}

function createError({ plugin, count }: Limiter, { detail, reason, limit, retryAfter, headers }: Refusal): HostError {
  const error = new HostError('tooManyRequests', {
    detail: `${detail}; try again in ${retryAfter} s`,
    headers: { 'Retry-After': String(retryAfter), ...headers },
    data: { reason: 'rate-limited', limit, retryAfter, retryable: true },
    reason,
  })
  attributeError(error, plugin)
  count(limit)
  return error
}

const SUBJECTS: Readonly<Record<string, string>> = {
  address: 'from one address',
  user: 'of one user',
  client: 'of one client',
  tool: 'of this tool',
}

function createRateError(limit: Limit, tally: Tally, limiter: Limiter): HostError {
  const { name, path, rate, policy } = limit
  const what = formatRate(limit, name === 'tool' ? 'call' : 'request')
  return createError(limiter, {
    detail: `at most ${what} ${SUBJECTS[name]}`,
    reason: `rate limit ${path}: ${rate.text}`,
    limit: name,
    retryAfter: secondsUntilReset(tally, limiter.now()),
    headers: { 'RateLimit-Policy': policy, RateLimit: formatState(limit, tally, limiter.now()) },
  })
}

function createConcurrencyError({ name, path, max }: Cap, limiter: Limiter): HostError {
  const calls = `${max} call${max === 1 ? '' : 's'}`
  return createError(limiter, {
    detail: `at most ${calls} ${SUBJECTS[name]} at once`,
    reason: `rate limit ${path}: ${max} at once`,
    limit: 'concurrent',
    retryAfter: RETRY_AFTER,
    headers: {
      'RateLimit-Policy': `"concurrent";q=${max};qu="concurrent-requests"`,
      RateLimit: `"concurrent";r=0`,
    },
  })
}

/** Throws above the limit; otherwise sets the RateLimit fields of the response. */
function enforceLimit(ctx: HostContext, limit: Limit, tally: Tally | undefined, limiter: Limiter): void {
  if (!tally) return
  if (tally.used > limit.rate.max) throw createRateError(limit, tally, limiter)
  ctx.res.appendHeader('RateLimit-Policy', limit.policy)
  ctx.res.appendHeader('RateLimit', formatState(limit, tally, limiter.now()))
}

function countRequest(ctx: HostContext, limit: Limit, key: string, limiter: Limiter): Promise<void> | undefined {
  const tally = limit.count(key)
  if (tally instanceof Promise) return tally.then(counted => enforceLimit(ctx, limit, counted, limiter))
  enforceLimit(ctx, limit, tally, limiter)
  return undefined
}

/** Creates the middleware for `host.onRequest`. */
export const limitAddresses =
  (now: () => Limits, limiter: Limiter): HostMiddleware =>
  (ctx, next) => {
    const { address, options } = now()
    if (!address) return next()
    const counting = countRequest(ctx, address, addressKey(ctx.ip, options.ipv6Prefix), limiter)
    return counting ? counting.then(next) : next()
  }

/** Creates the middleware for `host.authorize`. Counts concurrently, in one round trip to Redis. */
export const limitUsers =
  (now: () => Limits, limiter: Limiter): HostMiddleware =>
  (ctx, next) => {
    const { user, client: clientLimit, options } = now()
    const caller = ctx.state.user
    const clientId = clientLimit && clientKey(caller)
    const first = user && countRequest(ctx, user, callerKey(caller, ctx.ip, options.ipv6Prefix), limiter)
    const second = clientLimit && clientId !== undefined ? countRequest(ctx, clientLimit, clientId, limiter) : undefined
    return first || second ? Promise.all([first, second]).then(next) : next()
  }

const ALL_CALLERS = ''

const NO_RULES: readonly ToolRule[] = []

/** Returns the called tool. Undefined if the caller cannot call it, because denied calls are not counted. */
const toolOf = ({ method, params, view }: Call): ToolItem | undefined => {
  const name = method === 'tools/call' ? params['name'] : undefined
  const tool = typeof name === 'string' ? view.tools.get(name) : undefined
  return tool && view.denialOf(tool) ? undefined : tool
}

function acquireAll(caps: ReadonlyArray<readonly [Cap, string]>, limiter: Limiter) {
  for (const [index, [cap, key]] of caps.entries()) {
    if (cap.running.acquire(key)) continue
    releaseAll(caps.slice(0, index))
    throw createConcurrencyError(cap, limiter)
  }
}

function releaseAll(caps: ReadonlyArray<readonly [Cap, string]>) {
  for (const [cap, key] of caps) cap.running.release(key)
}

function enforceCallLimit(limit: Limit, tally: Tally | undefined, limiter: Limiter) {
  if (tally && tally.used > limit.rate.max) throw createRateError(limit, tally, limiter)
}

/** Counts concurrently in Redis. In memory, each limit is checked before the next one counts. */
function countCall(rules: readonly ToolRule[], caller: string, limiter: Limiter): Promise<unknown> | undefined {
  let counting: Promise<void>[] | undefined
  for (const { limit, isShared } of rules) {
    if (!limit) continue
    const tally = limit.count(isShared ? ALL_CALLERS : caller)
    if (tally instanceof Promise) {
      counting ??= []
      counting.push(tally.then(counted => enforceCallLimit(limit, counted, limiter)))
    } else enforceCallLimit(limit, tally, limiter)
  }
  return counting && Promise.all(counting)
}

async function runLimited(call: Call, next: Next, limits: Limits, rules: readonly ToolRule[], limiter: Limiter) {
  const caller = callerKey(call.user, call.offer.ip, limits.options.ipv6Prefix)
  const caps: Array<readonly [Cap, string]> = limits.cap ? [[limits.cap, caller]] : []
  for (const { cap, isShared } of rules) if (cap) caps.push([cap, isShared ? ALL_CALLERS : caller])
  // Concurrency limits come first, because a call that they refuse is not counted.
  acquireAll(caps, limiter)
  try {
    const counting = countCall(rules, caller, limiter)
    if (counting) await counting
    return await next()
  } finally {
    // Waits for the end of the handler, even if its client has disconnected.
    releaseAll(caps)
  }
}

/** Creates the wrapper for `host.onCall`. */
export const limitCalls =
  (now: () => Limits, limiter: Limiter) =>
  (call: Call, next: Next): Promise<object> => {
    const limits = now()
    // Already counted when the task was created.
    if (call.deferred) return next()
    if (limits.cap === undefined && limits.rules.length === 0) return next()
    const tool = toolOf(call)
    if (!tool) return next()
    const rules = limits.rules.length === 0 ? NO_RULES : limits.rulesOf(tool)
    return limits.cap === undefined && rules.length === 0 ? next() : runLimited(call, next, limits, rules, limiter)
  }
