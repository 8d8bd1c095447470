// The limits of HTTP requests: per address before anybody asks who calls, per user and OAuth client once that is known.
import type { HostContext, HostMiddleware } from '../../core/index.ts'
import { addField } from '../../core/transport.ts'
import { addressKey } from '../families/address/index.ts'
import { callerKey, clientKey } from './caller.ts'
import type { Limit, Limits } from './limits.ts'
import { overLimit, type Refusing, standing } from './refusal.ts'
import type { Tally } from './tally.ts'

/** Throws where it is one too many, else says what is left: these fields go out with every answer, streams as well. */
function judge(ctx: HostContext, limit: Limit, tally: Tally | undefined, refusing: Refusing): void {
  if (!tally) return
  if (tally.used > limit.rate.most) throw overLimit(limit, tally, refusing)
  addField(ctx.res, 'RateLimit-Policy', limit.policy)
  addField(ctx.res, 'RateLimit', standing(limit, tally, refusing.now()))
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
