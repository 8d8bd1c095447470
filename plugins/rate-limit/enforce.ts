// Applies the limits to requests and calls: keys of callers, 429 responses and the RateLimit headers.
import { hash } from 'node:crypto'
import { addressKey, blame, type ToolItem } from '../../core/auth.ts'
import { HostError, type User } from '../../core/index.ts'
import type { Call, HostContext, HostMiddleware, Next } from '../../core/plugin.ts'
import { limitOwnerOf } from '../../core/transport.ts'
import { type Cap, inWords, type Limit, type Limits, type ToolRule } from './limits.ts'
import type { Tally } from './memory-counts.ts'

/** Pseudonymises the key. */
const digest = (text: string) => hash('sha256', text, 'base64url').slice(0, 22)

const userKeys = new WeakMap<User, string>()

function keyOfUser(user: User): string {
  const known = userKeys.get(user)
  if (known !== undefined) return known
  const key = digest(limitOwnerOf({ user, ip: '' }))
  userKeys.set(user, key)
  return key
}

const callerKey = (user: User | undefined, ip: string, prefix: number): string =>
  user ? keyOfUser(user) : addressKey(ip, prefix)

const clientKey = (user: User | undefined): string | undefined =>
  user?.clientId === undefined ? undefined : digest(JSON.stringify([user.issuer ?? '', user.clientId]))

/** Value of `Retry-After`, seconds, because the end of a running call is unknown. */
const SOON = 1

const secondsLeft = ({ until }: Tally, now: number) => Math.max(1, Math.ceil((until - now) / 1_000))

const standing = ({ name, rate }: Limit, tally: Tally, now: number): string =>
  `"${name}";r=${Math.max(0, rate.most - tally.used)};t=${secondsLeft(tally, now)}`

export interface Refusing {
  readonly by: string
  now(): number
  refused(limit: string): void
}

interface Told {
  readonly detail: string
  readonly reason: string
  readonly limit: string
  /** Seconds. */
  readonly retryAfter: number
  readonly headers: Record<string, string>
}

function tooMany({ by, refused }: Refusing, { detail, reason, limit, retryAfter, headers }: Told): HostError {
  const error = new HostError('tooManyRequests', {
    detail: `${detail}; try again in ${retryAfter} s`,
    headers: { 'Retry-After': String(retryAfter), ...headers },
    data: { reason: 'rate-limited', limit, retryAfter, retryable: true },
    reason,
  })
  blame(error, by)
  refused(limit)
  return error
}

const WHAT: Readonly<Record<string, string>> = {
  address: 'from one address',
  user: 'of one user',
  client: 'of one client',
  tool: 'of this tool',
}

function overLimit(limit: Limit, tally: Tally, refusing: Refusing): HostError {
  const { name, place, rate, policy } = limit
  const what = inWords(limit, name === 'tool' ? 'call' : 'request')
  return tooMany(refusing, {
    detail: `at most ${what} ${WHAT[name]}`,
    reason: `rate limit ${place}: ${rate.text}`,
    limit: name,
    retryAfter: secondsLeft(tally, refusing.now()),
    headers: { 'RateLimit-Policy': policy, RateLimit: standing(limit, tally, refusing.now()) },
  })
}

function overCap({ name, place, most }: Cap, refusing: Refusing): HostError {
  const calls = `${most} call${most === 1 ? '' : 's'}`
  return tooMany(refusing, {
    detail: `at most ${calls} ${WHAT[name]} at once`,
    reason: `rate limit ${place}: ${most} at once`,
    limit: 'concurrent',
    retryAfter: SOON,
    headers: {
      'RateLimit-Policy': `"concurrent";q=${most};qu="concurrent-requests"`,
      RateLimit: `"concurrent";r=0`,
    },
  })
}

/** Throws above the limit; otherwise sets the RateLimit fields of the response. */
function judge(ctx: HostContext, limit: Limit, tally: Tally | undefined, refusing: Refusing): void {
  if (!tally) return
  if (tally.used > limit.rate.most) throw overLimit(limit, tally, refusing)
  ctx.res.appendHeader('RateLimit-Policy', limit.policy)
  ctx.res.appendHeader('RateLimit', standing(limit, tally, refusing.now()))
}

function charge(ctx: HostContext, limit: Limit, key: string, refusing: Refusing): Promise<void> | undefined {
  const tally = limit.count(key)
  if (tally instanceof Promise) return tally.then(counted => judge(ctx, limit, counted, refusing))
  judge(ctx, limit, tally, refusing)
  return undefined
}

/** Creates the middleware for `host.onRequest`. */
export const limitAddresses =
  (now: () => Limits, refusing: Refusing): HostMiddleware =>
  (ctx, next) => {
    const { address, options } = now()
    if (!address) return next()
    const counting = charge(ctx, address, addressKey(ctx.ip, options.ipv6Prefix), refusing)
    return counting ? counting.then(next) : next()
  }

/** Creates the middleware for `host.authorize`. Counts concurrently, in one round trip to Redis. */
export const limitUsers =
  (now: () => Limits, refusing: Refusing): HostMiddleware =>
  (ctx, next) => {
    const { user, client, options } = now()
    const caller = ctx.state.user
    const whoseClient = client && clientKey(caller)
    const first = user && charge(ctx, user, callerKey(caller, ctx.ip, options.ipv6Prefix), refusing)
    const second = client && whoseClient !== undefined ? charge(ctx, client, whoseClient, refusing) : undefined
    return first || second ? Promise.all([first, second]).then(next) : next()
  }

const EVERYBODY = ''

const NO_RULES: readonly ToolRule[] = []

/** Returns the called tool. Undefined if the caller cannot call it, because denied calls are not counted. */
const toolOf = ({ method, params, view }: Call): ToolItem | undefined => {
  const name = method === 'tools/call' ? params['name'] : undefined
  const tool = typeof name === 'string' ? view.tools.get(name) : undefined
  return tool && view.denialOf(tool) ? undefined : tool
}

function enterAll(caps: ReadonlyArray<readonly [Cap, string]>, refusing: Refusing) {
  for (const [index, [cap, key]] of caps.entries()) {
    if (cap.running.enter(key)) continue
    leaveAll(caps.slice(0, index))
    throw overCap(cap, refusing)
  }
}

function leaveAll(caps: ReadonlyArray<readonly [Cap, string]>) {
  for (const [cap, key] of caps) cap.running.leave(key)
}

function judgeCall(limit: Limit, tally: Tally | undefined, refusing: Refusing) {
  if (tally && tally.used > limit.rate.most) throw overLimit(limit, tally, refusing)
}

/** Counts concurrently in Redis. In memory, each limit is checked before the next one counts. */
function chargeCall(rules: readonly ToolRule[], who: string, refusing: Refusing): Promise<unknown> | undefined {
  let counting: Promise<void>[] | undefined
  for (const { limit, forAll } of rules) {
    if (!limit) continue
    const tally = limit.count(forAll ? EVERYBODY : who)
    if (tally instanceof Promise) {
      counting ??= []
      counting.push(tally.then(counted => judgeCall(limit, counted, refusing)))
    } else judgeCall(limit, tally, refusing)
  }
  return counting && Promise.all(counting)
}

async function runLimited(call: Call, next: Next, limits: Limits, rules: readonly ToolRule[], refusing: Refusing) {
  const who = callerKey(call.user, call.offer.ip, limits.options.ipv6Prefix)
  const caps: Array<readonly [Cap, string]> = limits.cap ? [[limits.cap, who]] : []
  for (const { cap, forAll } of rules) if (cap) caps.push([cap, forAll ? EVERYBODY : who])
  // Concurrency limits come first, because a call that they refuse is not counted.
  enterAll(caps, refusing)
  try {
    const counting = chargeCall(rules, who, refusing)
    if (counting) await counting
    return await next()
  } finally {
    // Waits for the end of the handler, even if its client has disconnected.
    leaveAll(caps)
  }
}

/** Creates the wrapper for `host.onCall`. */
export const limitCalls =
  (now: () => Limits, refusing: Refusing) =>
  (call: Call, next: Next): Promise<object> => {
    const limits = now()
    // Already counted when the task was created.
    if (call.deferred) return next()
    if (limits.cap === undefined && limits.rules.length === 0) return next()
    const tool = toolOf(call)
    if (!tool) return next()
    const rules = limits.rules.length === 0 ? NO_RULES : limits.rulesOf(tool)
    return limits.cap === undefined && rules.length === 0 ? next() : runLimited(call, next, limits, rules, refusing)
  }
