// From the config's `redis`, or a plugin's own options, to where Redis is and as whom: checked before anything connects.
// For connection.ts. What goes into a log line or an error has no password.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { type PluginHost, parseDuration, type SectionReader, StartError } from '../../../core/index.ts'
import { REDIS_DEFAULTS, type RedisSections, type RedisSettings } from './section.ts'

const MIN_TIMEOUT = 100
const DEFAULT_PORT = 6379

/** One server. */
export interface RedisAddress {
  readonly host: string
  readonly port: number
}

export interface RedisTls {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
}

export interface ResolvedRedis {
  /** One, or some of a cluster's. */
  readonly addresses: readonly RedisAddress[]
  readonly isCluster: boolean
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
  readonly tls: RedisTls | undefined
  readonly keyPrefix: string
  /** Milliseconds. */
  readonly commandTimeout: number
  /** Where Redis is, for people: no password in it. */
  readonly name: string
}

type Host = Pick<PluginHost, 'at' | 'name' | 'directory'> & SectionReader<RedisSections>

const KEYS = ['url', 'username', 'password', 'tls', 'keyPrefix', 'commandTimeout', 'cluster'] as const

/** What a plugin says itself; where it names a Redis of its own, nothing of the config's `redis` holds for it. */
function merge(host: Host, options: RedisSettings): RedisSettings {
  const own = Object.fromEntries(KEYS.flatMap(key => (options[key] === undefined ? [] : [[key, options[key]]])))
  return 'url' in own || 'cluster' in own ? own : { ...host.section('redis'), ...own }
}

type Stop = (why: string) => StartError

interface Place extends RedisAddress {
  readonly secure: boolean
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
}

/** What browsers and other clients of Redis call places that this one cannot reach. */
const OTHER_SCHEMES: ReadonlyArray<readonly [RegExp, string]> = [
  [/sentinel/, 'Sentinels are not asked: give the address of the primary, or one that follows it'],
  [/unix|file/, 'Redis is not reached by a Unix socket: let it listen on a port'],
  [/cluster/, "write redis: { cluster: ['redis://...'] } for a Redis Cluster"],
]

function checkScheme(text: string, stop: Stop) {
  const [, scheme = ''] = /^([a-z][a-z0-9+.-]*):/i.exec(text.trim()) ?? []
  if (/^rediss?$/i.test(scheme)) return
  const [, hint] = OTHER_SCHEMES.find(([pattern]) => pattern.test(scheme.toLowerCase())) ?? []
  if (hint !== undefined) throw stop(`the URL of Redis begins with ${scheme}: ${hint}`)
  if (URL.canParse(text)) throw stop('the URL of Redis must begin with redis://, or rediss:// for TLS')
  throw stop(`the URL of Redis is none; write redis://host:6379, or rediss:// for TLS; ${HOW_PASSWORD}`)
}

/** Nothing of the URL is told: what is wrong with it may be its password. */
const HOW_PASSWORD = 'percent-encode what is special in its password, or use redis.password'

function readCredential(encoded: string, stop: Stop): string | undefined {
  try {
    return decodeURIComponent(encoded) || undefined
  } catch {
    throw stop(`the URL of Redis holds a % that stands for nothing; ${HOW_PASSWORD}`)
  }
}

function readUrl(text: string, stop: Stop): Place {
  checkScheme(text, stop)
  if (!URL.canParse(text)) {
    throw stop(`the URL of Redis is none; write redis://host:6379, or rediss:// for TLS; ${HOW_PASSWORD}`)
  }
  const url = new URL(text)
  const database = url.pathname.slice(1)
  if (!/^\d{0,9}$/.test(database)) {
    throw stop(`what follows the host in the URL of Redis is no number of a database; ${HOW_PASSWORD}`)
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

/** PEM as it is, or from the file of this name. */
function readPem(key: string, text: string, directory: string, stop: Stop): string {
  if (text.includes('-----BEGIN')) return text
  try {
    return readFileSync(resolve(directory, text), 'utf8')
  } catch (cause) {
    // What is here may be no name of a file, but the key itself in another encoding.
    const { code } = cause as NodeJS.ErrnoException
    throw stop(`redis.tls.${key} is no PEM, and as the name of a file cannot be read (${code})`)
  }
}

function readTls({ tls = {} }: RedisSettings, { directory }: Host, stop: Stop): RedisTls {
  const { servername, ...files } = tls
  const read = Object.entries(files).flatMap(([key, text]) =>
    text === undefined ? [] : [[key, readPem(key, text, directory, stop)]],
  )
  return { ...Object.fromEntries(read), ...(servername !== undefined && { servername }) }
}

/** Throws a StartError that says what is missing or does not go together. */
export function resolveRedis(host: Host, options: RedisSettings): ResolvedRedis {
  // Most of it stands in the section; what a plugin says itself, among its options.
  const isOwn = KEYS.some(key => options[key] !== undefined)
  const stop = (why: string) =>
    new StartError(`plugins.${host.name}: ${why}`, { exitCode: 2 }).orAt(
      isOwn || !host.section('redis') ? host.at : ['redis'],
    )
  const given = merge(host, options)
  const { url, cluster, keyPrefix = REDIS_DEFAULTS.keyPrefix } = given
  if (url !== undefined && cluster !== undefined) throw stop('redis has a url and a cluster; give one of them')
  const urls = cluster ?? (url === undefined ? [] : [url])
  if (urls.length === 0) {
    throw stop("no Redis is named; write redis: { url: 'redis://127.0.0.1:6379' } at the top of the config")
  }
  const places = urls.map(text => readUrl(text, stop))
  const [first] = places as [Place, ...Place[]]
  const alike = places.every(({ secure, username, password }) => {
    return secure === first.secure && username === first.username && password === first.password
  })
  if (!alike) throw stop('the nodes of redis.cluster need one scheme, user and password')
  if (cluster && places.some(({ database }) => database !== 0)) throw stop('a Redis Cluster has no numbered databases')
  if (given.tls && !first.secure) throw stop('redis.tls is given, but the URL is not rediss://')
  const commandTimeout = parseDuration(given.commandTimeout ?? REDIS_DEFAULTS.commandTimeout)
  if (commandTimeout < MIN_TIMEOUT) throw stop(`redis.commandTimeout is less than ${MIN_TIMEOUT} ms`)
  const scheme = first.secure ? 'rediss' : 'redis'
  const name = places.map(({ host: at, port }) => `${scheme}://${at.includes(':') ? `[${at}]` : at}:${port}`).join(', ')
  return {
    addresses: places.map(({ host: at, port }) => ({ host: at, port })),
    isCluster: cluster !== undefined,
    username: given.username ?? first.username,
    password: given.password ?? first.password,
    database: first.database,
    tls: first.secure ? readTls(given, host, stop) : undefined,
    keyPrefix,
    commandTimeout,
    name: first.database === 0 ? name : `${name}/${first.database}`,
  }
}
