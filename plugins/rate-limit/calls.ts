// The limits of tool calls: how many run at once, and how often each tool is called. Around every call of a client.
import type { ToolItem } from '../../core/auth.ts'
import type { Call, Next } from '../../core/index.ts'
import { callerKey } from './caller.ts'
import type { Cap, Limit, Limits, ToolRule } from './limits.ts'
import { overCap, overLimit, type Refusing } from './refusal.ts'
import type { Tally } from './tally.ts'

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

function judge(limit: Limit, tally: Tally | undefined, refusing: Refusing) {
  if (tally && tally.used > limit.rate.most) throw overLimit(limit, tally, refusing)
}

/**
 * Counts the call for every rule, in one round trip where that takes any; throws, or rejects, for one that has enough. What is
 * counted here and now is judged at once: the same counter goes on counting for others.
 */
function charge(rules: readonly ToolRule[], who: string, refusing: Refusing): Promise<unknown> | undefined {
  let counting: Promise<void>[] | undefined
  for (const { limit, forAll } of rules) {
    if (!limit) continue
    const tally = limit.count(forAll ? EVERYBODY : who)
    if (tally instanceof Promise) {
      counting ??= []
      counting.push(tally.then(counted => judge(limit, counted, refusing)))
    } else judge(limit, tally, refusing)
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
    const counting = charge(rules, who, refusing)
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
