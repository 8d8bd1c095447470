// Tries on keys of its own what the plugins will do: whether Redis accepts writes, and whether our user may use these
// commands and keys. A script that fails in the middle names neither. For examination.ts.
import { errorText } from '../../../core/index.ts'
import { explainRefusal, lackingRights, type Refusal } from './refusals.ts'

/** Harmless uses of commands, in an order in which each finds what it works on. `$h` and so on are the keys. */
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
  // Takes it away: so nothing stays where DEL is not allowed.
  pexpire: ['$h', '0'],
  del: ['$h', '$s', '$z', '$x'],
  unlink: ['$t'],
  time: [],
} as const satisfies Readonly<Record<string, readonly string[]>>

/** Besides EVAL and EVALSHA, which everybody needs. */
export type RedisCommandName = keyof typeof REHEARSED

const ORDER = Object.keys(REHEARSED) as RedisCommandName[]
const KINDS = ['h', 's', 'z', 'x', 't'] as const

/** KEYS: those of the rehearsal. ARGV: commands with their arguments, as JSON. Gives what each failed with ('': nothing). */
export const REHEARSE = `
local replies = {}
for index, command in ipairs(ARGV) do
  local reply = redis.pcall(unpack(cjson.decode(command)))
  replies[index] = type(reply) == 'table' and reply['err'] or ''
end
return replies
`

export interface Rehearsal {
  readonly names: readonly RedisCommandName[]
  readonly keys: readonly string[]
  readonly args: readonly string[]
}

/** `key` makes the name of a key; all of them are in one slot. */
export function planRehearsal(needs: ReadonlySet<RedisCommandName>, key: (part: string) => string): Rehearsal {
  const keys = Object.fromEntries(KINDS.map(kind => [`$${kind}`, key(kind)]))
  const names = ORDER.filter(name => needs.has(name))
  const args = names.map(name => JSON.stringify([name, ...REHEARSED[name].map(word => keys[word] ?? word)]))
  return { names, keys: Object.values(keys), args }
}

const FORBIDS_KEY = /access (?:at least )?one of the keys|permissions to access a key/

/** What the replies of `REHEARSE` say; undefined where all went well. */
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

/** What was thrown for the script as a whole: a key that is forbidden is noticed before it runs. */
export function explainThrown(thrown: unknown, keyPrefix: string): Refusal | undefined {
  return FORBIDS_KEY.test(errorText(thrown)) ? forbiddenKeys(keyPrefix) : explainRefusal(thrown)
}
