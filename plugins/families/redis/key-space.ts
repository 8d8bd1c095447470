// Announces the secrets of nodes in Redis. A node without a shared secret is refused, because it would end sessions.

import { type KeySpaceClaim, readFingerprints, SHARE_SECRET } from '../stores/index.ts'
import { type RedisScript, redisScript } from './commands.ts'
import type { Refusal } from './failures.ts'
import type { ResolvedRedis } from './settings.ts'

export const FOREIGN_KEYS = 'keys of another host'

/** KEYS: nodes by expiry, `<node> <fingerprint>,...`. ARGV: own entry, lifetime, fingerprints. Returns other nodes. */
export const CLAIM_KEYS = redisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local reply = {'ours'}
for _, other in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if other ~= ARGV[1] then
    local shared = false
    for index = 3, #ARGV do
      if string.find(other, ARGV[index], 1, true) then shared = true end
    end
    if not shared then
      redis.call('ZREM', KEYS[1], ARGV[1])
      return {'foreign', other}
    end
    reply[#reply + 1] = other
  end
end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return reply
`)

export const LEAVE_KEYS = redisScript(`return redis.call('ZREM', KEYS[1], ARGV[1])`)

/** Keys of versions before the store, which this version does not read. */
const OLD_KEYS = {
  '{sessions}:idle': 'sessions',
  '{sessions}:holders': 'sessions',
  'grants:{pending}:order': 'grants',
  '{tasks}:sums': 'tasks',
} as const
/** Prefix of the other keys of grants, which each have their own hash tag. */
const OLD_GRANTS = 'grants:{'

/** KEYS: an old key. Returns -2 if the key does not exist. */
const READ_TTL = redisScript(`return redis.call('PTTL', KEYS[1])`)

/** KEYS: a key of the node. ARGV: cursor, pattern, count. Returns the next cursor and a key. */
const SCAN_KEYS = redisScript(`
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
return {found[1], found[2][1]}
`)
const SCANNED_AT_ONCE = 5_000
/** Maximum scans: up to a million keys of a node. */
const MAX_SCANS = 200

type Run = (script: RedisScript, keys: readonly string[], args: readonly string[]) => Promise<unknown>
type Server = Pick<ResolvedRedis, 'name' | 'keyPrefix'>

/** Finds data of an older version, which would be lost silently. `run` evaluates a script. */
export async function findOldKeys({ name, keyPrefix }: Server, run: Run): Promise<Refusal | undefined> {
  const keys = Object.entries(OLD_KEYS).map(([key, what]) => [`${keyPrefix}${key}`, what] as const)
  const left = await Promise.all(keys.map(([key]) => run(READ_TTL, [key], [])))
  const found = keys.filter((_, index) => left[index] !== -2)
  if (found.length === 0) return undefined
  const kinds = [...new Set(found.map(([, what]) => what))]
  return oldKeys({ name, keyPrefix }, kinds.join(' and '), found.map(([key]) => key).join(', '))
}

/** Searches the node that has the key. */
export async function findOldGrants({ name, keyPrefix }: Server, run: Run, key: string): Promise<Refusal | undefined> {
  const pattern = `${keyPrefix.replace(/[\\*?[\]]/g, '\\$&')}${OLD_GRANTS}*`
  let cursor = '0'
  for (let scans = 0; scans < MAX_SCANS; scans++) {
    const reply = await run(SCAN_KEYS, [key], [cursor, pattern, String(SCANNED_AT_ONCE)])
    const [next = '0', found] = reply as readonly string[]
    if (found) return oldKeys({ name, keyPrefix }, 'grants', `${keyPrefix}grants:*`)
    if (next === '0') return undefined
    cursor = next
  }
  return undefined
}

const oldKeys = ({ name, keyPrefix }: Server, kinds: string, keys: string): Refusal => ({
  code: 'keys of an older version',
  text: `${name} has ${kinds} of an older version (${keys}), which this version cannot read`,
  fix:
    'set another redis.keyPrefix, or stop all nodes and delete the keys: ' +
    `redis-cli --scan --pattern '${keyPrefix}*' | xargs redis-cli unlink. Clients then open new sessions, users log in ` +
    'again, and tasks are lost unless nodes of the older version complete them first',
  isPermanent: true,
})

export function foreignKeys({ name, keyPrefix }: Pick<ResolvedRedis, 'name' | 'keyPrefix'>): Refusal {
  return {
    code: FOREIGN_KEYS,
    text: `the keys ${keyPrefix}* of ${name} are in use by a host with other \`secrets\``,
    fix: `set a different redis.keyPrefix ${SHARE_SECRET}`,
    isPermanent: true,
  }
}

export function unevenSecrets({ fingerprints }: KeySpaceClaim, others: readonly string[]): string | undefined {
  const theirs = others.map(readFingerprints)
  if (theirs.some(list => !list.includes(fingerprints[0] ?? '')))
    return 'running nodes do not have the first of our `secrets`: they refuse sessions that this node opens'
  if (theirs.some(([first = '']) => !fingerprints.includes(first)))
    return 'running nodes sign with a secret that this node does not have: this node refuses their sessions'
  return undefined
}
