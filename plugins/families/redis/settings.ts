// Resolves and checks Redis settings before connecting. Messages contain no password.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { InternalHost } from '../../../core/internal.ts'
import { errorText, parseDuration, type SectionReader, StartError } from '../../../core/plugin.ts'
import { REDIS_DEFAULTS, type RedisSections, type RedisSettings } from './schema.ts'

const MIN_TIMEOUT = 100
const DEFAULT_PORT = 6379

export interface RedisAddress {
  readonly host: string
  readonly port: number
}

export interface ResolvedSentinel {
  readonly name: string
  readonly username: string | undefined
  readonly password: string | undefined
}

export interface ResolvedRedis {
  readonly addresses: readonly RedisAddress[]
  readonly isCluster: boolean
  readonly sentinel: ResolvedSentinel | undefined
  readonly username: string | undefined
  readonly password: RedisSettings['password']
  readonly database: number
  readonly tls: RedisTls | undefined
  readonly keyPrefix: string
  readonly commandTimeout: number
  readonly name: string
}

type Host = Pick<InternalHost, 'name'> & {
  readonly config: Pick<InternalHost['config'], 'at' | 'directory'>
} & SectionReader<RedisSections>

const KEYS = ['url', 'username', 'password', 'tls', 'keyPrefix', 'commandTimeout', 'cluster', 'sentinel'] as const

/** A plugin with its own Redis ignores the config's `redis`. */
function merge(host: Host, options: RedisSettings): RedisSettings {
  const own = Object.fromEntries(KEYS.flatMap(key => (options[key] === undefined ? [] : [[key, options[key]]])))
  return 'url' in own || 'cluster' in own || 'sentinel' in own ? own : { ...host.config.section('redis'), ...own }
}

type CreateError = (why: string) => StartError

interface Endpoint extends RedisAddress {
  readonly secure: boolean
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
}

const OTHER_SCHEMES: ReadonlyArray<readonly [RegExp, string]> = [
  [/sentinel/, "write redis: { sentinel: { name: 'mymaster', addresses: ['redis://...:26379'] } } for Sentinels"],
  [/unix|file/, 'Redis is not reached by a Unix socket: let it listen on a port'],
  [/cluster/, "write redis: { cluster: ['redis://...'] } for a Redis Cluster"],
]

function checkScheme(text: string, stop: CreateError) {
  const [, scheme = ''] = /^([a-z][a-z0-9+.-]*):/i.exec(text.trim()) ?? []
  if (/^rediss?$/i.test(scheme)) return
  const [, hint] = OTHER_SCHEMES.find(([pattern]) => pattern.test(scheme.toLowerCase())) ?? []
  if (hint !== undefined) throw stop(`the URL of Redis begins with ${scheme}: ${hint}`)
  if (URL.canParse(text)) throw stop('the URL of Redis must begin with redis://, or rediss:// for TLS')
  throw stop(`the URL of Redis is invalid; write redis://host:6379, or rediss:// for TLS; ${PASSWORD_HINT}`)
}

/** Messages contain nothing of the URL, which can contain a password. */
const PASSWORD_HINT = 'percent-encode special characters of its password, or use redis.password'

function readCredential(encoded: string, stop: CreateError): string | undefined {
  try {
    return decodeURIComponent(encoded) || undefined
  } catch {
    throw stop(`the URL of Redis contains an invalid % sequence; ${PASSWORD_HINT}`)
  }
}

function readUrl(text: string, stop: CreateError): Endpoint {
  checkScheme(text, stop)
  if (!URL.canParse(text)) {
    throw stop(`the URL of Redis is invalid; write redis://host:6379, or rediss:// for TLS; ${PASSWORD_HINT}`)
  }
  const url = new URL(text)
  const database = url.pathname.slice(1)
  if (!/^\d{0,9}$/.test(database)) {
    throw stop(`the path in the URL of Redis is not a database number; ${PASSWORD_HINT}`)
  }
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? DEFAULT_PORT : Number(url.port),
    secure: url.protocol === 'rediss:',
    username: readCredential(url.username, stop),
    password: readCredential(url.password, stop),
    database: Number(database),
  }
}

/** Makes paths absolute and checks the files, which are read again for each connection. */
function resolveTls({ tls = {} }: RedisSettings, { config: { directory } }: Host, stop: CreateError): RedisTls {
  const { servername, ...files } = tls
  if ((files.cert === undefined) !== (files.key === undefined))
    throw stop('redis.tls.cert and redis.tls.key go together')
  const sources = Object.entries(files).flatMap(([key, text]) =>
    text === undefined ? [] : [[key, isPem(text) ? text : resolve(directory, text)]],
  )
  const found: RedisTls = { ...Object.fromEntries(sources), ...(servername !== undefined && { servername }) }
  try {
    readTls(found)
  } catch (error) {
    throw stop(errorText(error))
  }
  return found
}

function readEndpoints({ url, cluster, sentinel }: RedisSettings, stop: CreateError) {
  const given = Object.entries({ url, cluster, sentinel }).flatMap(([key, value]) => (value === undefined ? [] : [key]))
  if (given.length > 1) throw stop(`redis has a ${given.join(' and a ')}; set one of them`)
  const urls = cluster ?? sentinel?.addresses ?? (url === undefined ? [] : [url])
  const places = urls.map(text => readUrl(text, stop))
  const [first, ...rest] = places
  if (!first) throw stop("no Redis is configured; add redis: { url: 'redis://127.0.0.1:6379' } to the config")
  const isUniform = rest.every(({ secure, username, password }) => {
    return secure === first.secure && username === first.username && password === first.password
  })
  const which = sentinel ? 'addresses of redis.sentinel' : 'nodes of redis.cluster'
  if (!isUniform) throw stop(`the ${which} need one scheme, user and password`)
  const isNumbered = places.some(({ database }) => database !== 0)
  if (cluster && isNumbered) throw stop('a Redis Cluster has no numbered databases')
  if (sentinel && isNumbered) throw stop('a Sentinel has no numbered databases: write redis.sentinel.database')
  const scheme = first.secure ? 'rediss' : 'redis'
  const names = places.map(({ host: at, port }) => `${scheme}://${at.includes(':') ? `[${at}]` : at}:${port}`)
  return { places: [first, ...rest] as const, name: `${sentinel ? `${sentinel.name} of ` : ''}${names.join(', ')}` }
}

export function resolveRedis(host: Host, options: RedisSettings): ResolvedRedis {
  // Most settings are in the config section.
  const isOwn = KEYS.some(key => options[key] !== undefined)
  const at = isOwn || !host.config.section('redis') ? host.config.at : ['redis']
  const stop = (why: string) => new StartError('MH2302', why, { exitCode: 2, at })
  const given = merge(host, options)
  const { sentinel, keyPrefix = REDIS_DEFAULTS.keyPrefix } = given
  const { places, name } = readEndpoints(given, stop)
  const [first] = places
  if (given.tls && !first.secure) throw stop('redis.tls requires a rediss:// URL')
  const commandTimeout = parseDuration(given.commandTimeout ?? REDIS_DEFAULTS.commandTimeout)
  if (commandTimeout < MIN_TIMEOUT) throw stop(`redis.commandTimeout is less than ${MIN_TIMEOUT} ms`)
  // Credentials in the URL of a Sentinel apply only to the Sentinel.
  const { username, password } = sentinel ? {} : (first as Partial<Endpoint>)
  const database = sentinel?.database ?? first.database
  return {
    addresses: places.map(({ host: at, port }) => ({ host: at, port })),
    isCluster: given.cluster !== undefined,
    sentinel: sentinel && {
      name: sentinel.name,
      username: sentinel.username ?? first.username,
      password: sentinel.password ?? first.password,
    },
    username: given.username ?? username,
    password: given.password ?? password,
    database,
    tls: first.secure ? resolveTls(given, host, stop) : undefined,
    keyPrefix,
    commandTimeout,
    name: database === 0 ? name : `${name}/${database}`,
  }
}

type RedisTls = Readonly<NonNullable<RedisSettings['tls']>>

const PEM = '-----BEGIN'

const isPem = (text: string): boolean => text.includes(PEM)

export function readTls({ servername, ...given }: RedisTls): RedisTls {
  const read = Object.entries(given).flatMap(([key, text]) => (text === undefined ? [] : [[key, readPem(key, text)]]))
  return { ...Object.fromEntries(read), ...(servername !== undefined && { servername }) }
}

function readPem(key: string, text: string): string {
  if (isPem(text)) return text
  let found: string
  try {
    found = readFileSync(text, 'utf8')
  } catch (cause) {
    // The text is possibly a key in another encoding.
    const { code } = cause as NodeJS.ErrnoException
    throw problem(`redis.tls.${key} is neither a PEM nor a readable file (${code})`)
  }
  if (isPem(found)) return found
  throw problem(`the file of redis.tls.${key} contains no PEM: convert it with openssl x509, or openssl pkey`)
}

/** Creates an error that counts as a network error. */
const problem = (text: string) => Object.assign(new Error(text), { code: 'ERR_REDIS_TLS' })

const CA = 'set redis.tls.ca to its certificate authority, including intermediate certificates'

const FIXES: ReadonlyArray<readonly [RegExp, string]> = [
  [/\bCERT_HAS_EXPIRED\b/, 'the certificate of Redis or of its authority has expired: renew it'],
  [/\bCERT_NOT_YET_VALID\b/, 'the certificate of Redis is not valid yet: set the clocks'],
  [/\bERR_TLS_CERT_ALTNAME_INVALID\b/, 'the certificate of Redis is for another host name: set redis.tls.servername'],
  [/SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|CERT_SIGNATURE_FAILURE/, `it is not trusted: ${CA}`],
  [/KEY_VALUES_MISMATCH|key values mismatch/i, 'redis.tls.cert and redis.tls.key do not match'],
  [
    /alert certificate required|alert handshake failure/i,
    'Redis requires a client certificate: set redis.tls.cert and redis.tls.key',
  ],
  [/alert certificate expired/i, 'the client certificate has expired: renew the file of redis.tls.cert'],
  [
    /alert (?:unknown ca|(?:bad|unsupported|revoked|unknown) certificate|certificate)/i,
    'Redis does not accept redis.tls.cert',
  ],
  [/WRONG_VERSION_NUMBER|wrong version number/i, 'this port does not use TLS: use redis://'],
  [/\bERR_OSSL|\bERR_SSL/, 'check redis.tls and the certificates of Redis'],
]

export function explainTls(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined
  const { code = '' } = thrown as NodeJS.ErrnoException
  return FIXES.find(([pattern]) => pattern.test(`${code} ${thrown.message}`))?.[1]
}
