// Applies the limits to requests and calls: keys of callers, 429 responses and the RateLimit headers.
import { hash } from 'node:crypto'
import { blame, type ToolItem } from '../../core/auth.ts'
import { type Call, type HostContext, HostError, type HostMiddleware, type Next, type User } from '../../core/index.ts'
import { holderOf } from '../../core/transport.ts'
import { addressKey } from '../families/address/index.ts'
import { type Cap, inWords, type Limit, type Limits, type ToolRule } from './limits.ts'
import type { Tally } from './memory-counts.ts'

/** Short, and nothing that anybody could read a name in. */
const digest = (text: string) => hash('sha256', text, 'base64url').slice(0, 22)

const userKeys = new WeakMap<User, string>()

function keyOfUser(user: User): string {
  const known = userKeys.get(user)
  if (known !== undefined) return known
  const key = digest(holderOf({ user, ip: '' }))
  userKeys.set(user, key)
  return key
}

/** The user, else the address that stands for it. */
const callerKey = (user: User | undefined, ip: string, prefix: number): string =>
  user ? keyOfUser(user) : addressKey(ip, prefix)

/** The OAuth client that the user came with; undefined where there is none. */
const clientKey = (user: User | undefined): string | undefined =>
  user?.clientId === undefined ? undefined : digest(JSON.stringify([user.issuer ?? '', user.clientId]))

/** Seconds until a call may have ended: nobody knows. */
const SOON = 1

/** Whole seconds until a window ends, at least one. */
const secondsLeft = ({ until }: Tally, now: number) => Math.max(1, Math.ceil((until - now) / 1_000))

/** The limit's member of `RateLimit`. */
const standing = ({ name, rate }: Limit, tally: Tally, now: number): string =>
  `"${name}";r=${Math.max(0, rate.most - tally.used)};t=${secondsLeft(tally, now)}`

/** Whose refusals these are. */
export interface Refusing {
  /** The plugin, as the config names it. */
  readonly by: string
  /** By the clock that tallies are made with. */
  now(): number
  /** Is told of each, by the name of its limit. */
  refused(limit: string): void
}

interface Told {
  readonly detail: string
  /** For logs and observers. */
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

/** For whom asks more often than a limit allows. */
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

/** For whom has as many calls running as may. */
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

/** Throws where it is one too many, else says what is left: these fields go out with every answer, streams as well. */
function judge(ctx: HostContext, limit: Limit, tally: Tally | undefined, refusing: Refusing): void {
  if (!tally) return
  if (tally.used > limit.rate.most) throw overLimit(limit, tally, refusing)
  ctx.res.appendHeader('RateLimit-Policy', limit.policy)
  ctx.res.appendHeader('RateLimit', standing(limit, tally, refusing.now()))
}

/** Counts a request; nothing where it may pass, a promise where that is not known yet. */
function charge(ctx: HostContext, limit: Limit, key: string, refusing: Refusing): Promise<void> | undefined {
  const tally = limit.count(key)
  if (tally instanceof Promise) return tally.then(counted => judge(ctx, limit, counted, refusing))
  judge(ctx, limit, tally, refusing)
  return undefined
}

/** For `host.edge`. */
export const limitAddresses =
  (now: () => Limits, refusing: Refusing): HostMiddleware =>
  (ctx, next) => {
    const { address, options } = now()
    if (!address) return next()
    const counting = charge(ctx, address, addressKey(ctx.ip, options.ipv6Prefix), refusing)
    return counting ? counting.then(next) : next()
  }

/** For `host.admit`. Both are counted at once, so that Redis is asked once. */
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

/** All callers together are one. */
const EVERYBODY = ''

const NO_RULES: readonly ToolRule[] = []

/** The tool of a call; undefined if the caller is not allowed to call it: denied calls are not counted. */
const toolOf = ({ method, params, view }: Call): ToolItem | undefined => {
  const name = method === 'tools/call' ? params['name'] : undefined
  const tool = typeof name === 'string' ? view.tools.get(name) : undefined
  return tool && view.denialOf(tool) ? undefined : tool
}

/** Takes a place under every cap, or none: what was taken is given back before it throws. */
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

/**
 * Counts the call for every rule, in one round trip where that takes any; throws, or rejects, for one that has enough. What is
 * counted here and now is judged at once: the same counter goes on counting for others.
 */
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
  // First what costs nothing: a call that finds no place is not counted.
  enterAll(caps, refusing)
  try {
    const counting = chargeCall(rules, who, refusing)
    if (counting) await counting
    return await next()
  } finally {
    // Once the handler is over, however: one that goes on after its client went still takes what the cap is there for.
    leaveAll(caps)
  }
}

/** What `host.around` takes; `now` gives the limits that hold. */
export const limitCalls =
  (now: () => Limits, refusing: Refusing) =>
  (call: Call, next: Next): Promise<object> => {
    const limits = now()
    // The request that created the task was counted.
    if (call.deferred) return next()
    if (limits.cap === undefined && limits.rules.length === 0) return next()
    const tool = toolOf(call)
    if (!tool) return next()
    const rules = limits.rules.length === 0 ? NO_RULES : limits.rulesOf(tool)
    return limits.cap === undefined && rules.length === 0 ? next() : runLimited(call, next, limits, rules, refusing)
  }
