// Executes every required command on test keys, because a failing script does not name the forbidden command.
import { errorText } from '../../../core/index.ts'
import { explainRefusal, lackingRights, type Refusal } from './refusals.ts'

/** In an order in which each command finds its key. */
const REHEARSED = {
  hset: ['$h', 'field', 'value'],
  hsetnx: ['$h', 'other', 'value'],
  hget: ['$h', 'field'],
  hmget: ['$h', 'field'],
  hexists: ['$h', 'field'],
  hgetall: ['$h'],
  hincrby: ['$h', 'count', '1'],
  hdel: ['$h', 'field'],
  sadd: ['$s', 'member'],
  smembers: ['$s'],
  srem: ['$s', 'member'],
  zadd: ['$z', '1', 'member'],
  zcard: ['$z'],
  zscore: ['$z', 'member'],
  zincrby: ['$z', '1', 'member'],
  zrange: ['$z', '0', '0'],
  zrangebyscore: ['$z', '-inf', '0'],
  zrevrange: ['$z', '0', '0'],
  zremrangebyscore: ['$z', '-inf', '0'],
  zrem: ['$z', 'member'],
  xadd: ['$x', '*', 'field', 'value'],
  xlen: ['$x'],
  xrange: ['$x', '-', '+', 'COUNT', '1'],
  xrevrange: ['$x', '+', '-', 'COUNT', '1'],
  xread: ['COUNT', '1', 'STREAMS', '$x', '0'],
  xtrim: ['$x', 'MAXLEN', '0'],
  set: ['$t', '1', 'PX', '1000'],
  get: ['$t'],
  incr: ['$t'],
  incrby: ['$t', '1'],
  expire: ['$t', '1'],
  exists: ['$t'],
  pttl: ['$t'],
  // Removes the key without DEL.
  pexpire: ['$h', '0'],
  del: ['$h', '$s', '$z', '$x'],
  unlink: ['$t'],
  time: [],
} as const satisfies Readonly<Record<string, readonly string[]>>

/** Commands besides EVAL and EVALSHA. */
export type RedisCommandName = keyof typeof REHEARSED

const ORDER = Object.keys(REHEARSED) as RedisCommandName[]
const KINDS = ['h', 's', 'z', 'x', 't'] as const

/** KEYS: test keys. ARGV: commands as JSON. Returns the error of each, or ''. */
export const REHEARSE = `
local replies = {}
for index, command in ipairs(ARGV) do
  local reply = redis.pcall(unpack(cjson.decode(command)))
  replies[index] = type(reply) == 'table' and reply['err'] or ''
end
return replies
`

interface Rehearsal {
  readonly names: readonly RedisCommandName[]
  readonly keys: readonly string[]
  readonly args: readonly string[]
}

/** All keys are in one slot. */
export function planRehearsal(needs: ReadonlySet<RedisCommandName>, key: (part: string) => string): Rehearsal {
  const keys = Object.fromEntries(KINDS.map(kind => [`$${kind}`, key(kind)]))
  const names = ORDER.filter(name => needs.has(name))
  const args = names.map(name => JSON.stringify([name, ...REHEARSED[name].map(word => keys[word] ?? word)]))
  return { names, keys: Object.values(keys), args }
}

const FORBIDS_KEY = /access (?:at least )?one of the keys|permissions to access a key/

export function judgeRehearsal(
  { names }: Rehearsal,
  replies: readonly string[],
  keyPrefix: string,
): Refusal | undefined {
  const refused = replies.flatMap((text, index) => {
    const refusal = text === '' ? undefined : explainRefusal(new Error(text))
    return refusal ? [{ refusal, name: names[index] ?? '', text }] : []
  })
  const other = refused.find(({ refusal }) => refusal.code !== 'NOPERM' && refusal.code !== 'UNKNOWN')
  if (other) return other.refusal
  const unknown = refused.filter(({ refusal }) => refusal.code === 'UNKNOWN')
  const [first] = unknown
  if (first) return { ...first.refusal, commands: listed(unknown), text: `Redis has no command ${listed(unknown)}` }
  const onKeys = refused.filter(({ text }) => FORBIDS_KEY.test(text))
  const commands = refused.filter(({ text }) => !FORBIDS_KEY.test(text))
  if (commands.length > 0) {
    const names = listed(commands)
    return { ...lackingRights(`NOPERM: our user may not run ${names}`, undefined), commands: names }
  }
  return onKeys.length > 0 ? forbiddenKeys(keyPrefix) : undefined
}

const listed = (refused: ReadonlyArray<{ readonly name: string }>) => refused.map(({ name }) => name).join(', ')

const forbiddenKeys = (keyPrefix: string) =>
  lackingRights(`NOPERM: our user may not use keys that begin with ${keyPrefix}`, keyPrefix)

/** Redis checks the keys of a script before it runs. */
export function explainThrown(thrown: unknown, keyPrefix: string): Refusal | undefined {
  return FORBIDS_KEY.test(errorText(thrown)) ? forbiddenKeys(keyPrefix) : explainRefusal(thrown)
}
