// Errors of Redis commands, time-outs, and the 503 that clients receive.

import { isUnavailable, withTimeout } from '../../../core/transport.ts'

export interface Refusal {
  /** A public code, usually the first word of the reply. */
  readonly code: string
  readonly commands?: string
  /** Text for the log only. */
  readonly text: string
  readonly fix: string
  /** True if startup fails, because the error is permanent. */
  readonly isPermanent: boolean
}

interface Rule extends Omit<Refusal, 'text' | 'commands'> {
  readonly pattern: RegExp
}

const CREDENTIALS = 'set redis.username and redis.password to the current credentials of Redis'
const RIGHTS = 'grant the Redis user the permissions in docs/plugins/cluster-redis.md, for the keys of redis.keyPrefix'
const CLUSTERED = "this is a node of a Redis Cluster: write redis: { cluster: ['redis://...'] } in place of redis.url"
const SENTINEL_RIGHTS =
  'set redis.sentinel.username and redis.sentinel.password; the user needs +sentinel|get-master-addr-by-name'
const PASSES = 'this usually ends without action; otherwise see the log of Redis'

const fatal = (code: string, pattern: RegExp, fix: string): Rule => ({ code, pattern, fix, isPermanent: true })
const temporary = (code: string, pattern: RegExp, fix: string): Rule => ({ code, pattern, fix, isPermanent: false })

/** The first match counts. Errors in scripts are in the middle of a reply. */
const RULES: readonly Rule[] = [
  fatal('SENTINEL', /^the Sentinel .*(?:NOAUTH|WRONGPASS|NOPERM)/, SENTINEL_RIGHTS),
  fatal(
    'SENTINEL',
    /^the Sentinel .*it watches no primary/,
    'set redis.sentinel.name to the name in `sentinel monitor`',
  ),
  fatal(
    'SENTINEL',
    /^the Sentinel .*unknown command/i,
    'set redis.sentinel.addresses to the addresses of Sentinels, usually port 26379',
  ),
  fatal('WRONGPASS', /\bWRONGPASS\b/, CREDENTIALS),
  fatal('NOAUTH', /\bNOAUTH\b/, CREDENTIALS),
  fatal('AUTH', /without any password configured/, `Redis has no password: remove it from redis, or ${CREDENTIALS}`),
  fatal('NOPERM', /\bNOPERM\b|ACL failure in script|The user executing the script can't/, RIGHTS),
  fatal('MOVED', /\bMOVED\b|\bASK \d|is not allowed in cluster mode/, CLUSTERED),
  fatal('CROSSSLOT', /\bCROSSSLOT\b/, CLUSTERED),
  fatal(
    'DATABASE',
    /DB index is out of range|invalid DB index/,
    'Redis does not have the database of redis.url; use another number, or raise `databases` of Redis',
  ),
  fatal(
    'UNKNOWN',
    /unknown command|Unknown Redis command/i,
    'the server is not Redis 6.2 or later, or its commands are renamed. For a Sentinel write ' +
      "redis: { sentinel: { name: 'mymaster', addresses: ['redis://...'] } }",
  ),
  fatal('NOPROTO', /\bNOPROTO\b/, 'the server is not Redis 6.2 or later'),
  fatal(
    'DENIED',
    /\bDENIED\b/,
    'Redis is in protected mode: set a password in Redis, or bind it to the network of this host',
  ),
  temporary('OOM', /\bOOM\b/, 'Redis is full: raise maxmemory, or remove other data'),
  temporary(
    'READONLY',
    /\bREADONLY\b/,
    'this is a replica: use the address of the primary, or one that follows a failover',
  ),
  temporary(
    'NOREPLICAS',
    /\bNOREPLICAS\b/,
    'Redis has fewer replicas than min-replicas-to-write: restore replicas, or lower the setting',
  ),
  temporary('MISCONF', /\bMISCONF\b/, 'Redis cannot write to its disk: see the log of Redis'),
  temporary(
    'CLUSTERDOWN',
    /^CLUSTERDOWN: /,
    'wait while the cluster is created; otherwise use redis-cli --cluster check and redis-cli --cluster fix',
  ),
  ...['BUSY', 'CLUSTERDOWN', 'LOADING', 'MASTERDOWN', 'TRYAGAIN', 'UNKILLABLE'].map(code =>
    temporary(code, new RegExp(`\\b${code}\\b`), PASSES),
  ),
  temporary('CLIENTS', /max number of clients reached/, 'raise maxclients of Redis, or close other connections'),
]

export const slotsWithoutMaster = (which: string): Error =>
  new Error(`CLUSTERDOWN: ${which}, so no node of the Redis Cluster serves their keys`)

/** Matches the error of node-redis for a slot without a master. */
const isSlotless = (thrown: Error) =>
  thrown instanceof TypeError && /reading '(?:master|replicas)'/.test(thrown.message)

export function explainRefusal(thrown: unknown): Refusal | undefined {
  if (!(thrown instanceof Error)) return undefined
  const { message: text } = isSlotless(thrown) ? slotsWithoutMaster('some slots have no master') : thrown
  const rule = RULES.find(({ pattern }) => pattern.test(text))
  if (!rule) return undefined
  const [, commands] = (rule.code === 'NOPERM' && /run the '([a-z|]{1,64})' command/.exec(text)) || []
  const refusal = { code: rule.code, text, fix: rule.fix, isPermanent: rule.isPermanent }
  return commands === undefined ? refusal : { ...refusal, commands }
}

export const nameRefusal = ({ code, commands }: Refusal): string =>
  commands === undefined ? code : `${code} (${commands})`

export function lackingRights(text: string, keyPrefix: string | undefined): Refusal {
  const fix =
    keyPrefix === undefined ? RIGHTS : `let the user of Redis use the keys ~${keyPrefix}*, or set redis.keyPrefix`
  return { code: 'NOPERM', text, fix, isPermanent: true }
}

/** Removes passwords from an error. A server without HELLO quotes its arguments. */
export function withoutPassword(thrown: unknown, password: string | undefined): unknown {
  if (!(thrown instanceof Error)) return thrown
  const unquoted = thrown.message.replace(/,? with args beginning with:.*$/s, '')
  const message = password === undefined || password === '' ? unquoted : unquoted.replaceAll(password, '***')
  if (message === thrown.message) return thrown
  const { code } = thrown as NodeJS.ErrnoException
  return Object.assign(new Error(message), code !== undefined && { code })
}

const CLIENT_MESSAGE = /client is (?:closed|offline)|Disconnects client|[Ss]ocket|Connection timeout|root nodes/

/** Redis did not respond in time: the command may have been executed. */
export class RedisTimeout extends Error {
  constructor(timeout: number) {
    super(`Redis did not respond within ${timeout} ms`)
    this.name = 'RedisTimeout'
  }
}

const codeOf = (thrown: unknown): string | undefined => explainRefusal(thrown)?.code

/** True if the connection failed: the command was possibly executed. */
export function isDisconnection(thrown: unknown): boolean {
  if (thrown instanceof RedisTimeout) return true
  if (!(thrown instanceof Error)) return false
  return typeof (thrown as NodeJS.ErrnoException).code === 'string' || CLIENT_MESSAGE.test(thrown.message)
}

/** True if Redis returned an error: the command was not executed. */
export const isRefused = (thrown: unknown): boolean => thrown instanceof Error && codeOf(thrown.cause) !== undefined

const MOMENTARY: ReadonlySet<string> = new Set(['BUSY', 'CLUSTERDOWN', 'LOADING', 'MASTERDOWN', 'READONLY', 'TRYAGAIN'])

export function isMomentary(thrown: unknown): boolean {
  if (!isUnavailable(thrown)) return false
  const { cause } = thrown as Error
  const refusal = codeOf(cause)
  return refusal === undefined ? !(cause instanceof RedisTimeout) : MOMENTARY.has(refusal)
}

export function createDeferred<Value>() {
  let settle: (value: Value) => void = () => undefined
  const promise = new Promise<Value>(resolve => {
    settle = resolve
  })
  return { promise, resolve: (value: Value) => settle(value) }
}

/** Rejects with a RedisTimeout. After a blocked event loop, a response that has already arrived is still accepted. */
export const within = <Value>(promise: Promise<Value>, milliseconds: number): Promise<Value> =>
  withTimeout(promise, milliseconds, () => {
    throw new RedisTimeout(Math.round(milliseconds))
  })
