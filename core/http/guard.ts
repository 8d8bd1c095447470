// Resolves client address, Host and Origin of a request, and refuses foreign hosts and origins (DNS rebinding).

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP, isIPv4 } from 'node:net'
import proxyAddr from 'proxy-addr'
import { errorText, HostError, StartError } from './errors.ts'
import { parseHost, redactUrl } from './request-target.ts'

/** The `http` section of the config, with all defaults. Sizes are in bytes, durations in milliseconds. */
export interface ResolvedHttp {
  readonly host: string
  readonly port: number
  readonly backlog: number
  readonly publicUrl: string | undefined
  readonly tls: boolean
  readonly maxBodySize: number
  readonly keepAliveTimeout: number
  readonly requestTimeout: number
  readonly writeTimeout: number
  readonly allowedHosts: readonly string[]
  readonly allowedOrigins: readonly string[]
  /** Number of proxies, or their addresses. */
  readonly trustProxy: false | number | readonly string[]
}

export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host)

/** True for loopback names (RFC 6761 section 6.3). */
const isLoopbackName = (name: string) => name.endsWith('.localhost') || isLoopback(name)

const originOf = (url: string): URL | undefined =>
  /^https?:/i.test(url) && URL.canParse(url) ? new URL(url) : undefined

export interface GuardedRequest {
  readonly hosts: ReadonlyArray<string | undefined>
  readonly origin?: string | undefined
  readonly alsoAllowed?: ((origin: string) => boolean) | undefined
}

/** Host headers that are remembered as allowed; clients send few different ones. */
const MAX_REMEMBERED = 100

/**
 * Allows `publicUrl` and the configured lists, plus loopback names on a loopback address. On other addresses without them, every
 * Host and no Origin is allowed.
 */
export function createGuard(http: ResolvedHttp) {
  const loopback = isLoopback(http.host)
  const publicUrl = http.publicUrl === undefined ? undefined : new URL(http.publicUrl)
  const hosts = new Set(http.allowedHosts.map(host => host.toLowerCase()))
  if (publicUrl) hosts.add(publicUrl.host).add(publicUrl.hostname)
  const origins = new Set(http.allowedOrigins.map(origin => originOf(origin)?.origin ?? origin))
  if (publicUrl) origins.add(publicUrl.origin)

  function isHostAllowed(header: string | undefined): boolean {
    if (!loopback && hosts.size === 0) return true
    const host = header === undefined ? undefined : parseHost(header)
    if (!host) return false
    return hosts.has(host.name) || hosts.has(host.full) || (loopback && isLoopbackName(host.name))
  }

  function isOriginAllowed(origin: string): boolean {
    if (origins.has(origin)) return true
    const parsed = originOf(origin)
    return loopback && parsed !== undefined && parsed.origin === origin && isLoopbackName(parsed.hostname)
  }

  const remembered = new Set<string | undefined>()

  /** Throws `hostNotAllowed` or `originNotAllowed`. The cause names the config key to set. */
  return function guard({ hosts: requested, origin, alsoAllowed }: GuardedRequest): void {
    for (const name of requested) {
      if (remembered.has(name)) continue
      if (isHostAllowed(name)) {
        if (remembered.size < MAX_REMEMBERED && (name?.length ?? 0) < MAX_REMEMBERED) remembered.add(name)
        continue
      }
      const shown = name === undefined ? 'the request names no host' : redactUrl(name)
      const fix = `to serve it, add ${JSON.stringify(shown)} to http.allowedHosts, or set http.publicUrl`
      const cause = name === undefined ? 'the client must send a Host header' : fix
      throw new HostError('hostNotAllowed', { detail: shown, cause })
    }
    if (origin !== undefined && !isOriginAllowed(origin) && !alsoAllowed?.(origin)) {
      const shown = redactUrl(origin)
      const cause = `to allow requests from its pages, add ${JSON.stringify(shown)} to http.allowedOrigins`
      throw new HostError('originNotAllowed', { detail: shown, cause })
    }
  }
}

export interface Forwarded {
  readonly ip: string
  readonly hosts: ReadonlyArray<string | undefined>
}

type Trust = (address: string, hop: number) => boolean

/** Maximum length; longer than any address with port and zone. */
const MAX_ADDRESS = 64

function compileTrust(trusted: number | readonly string[]): Trust {
  if (typeof trusted === 'number') return (_, hop) => hop < trusted
  try {
    return proxyAddr.compile([...trusted])
  } catch (cause) {
    const form = 'an address, a range such as 10.0.0.0/8, or one of loopback, linklocal and uniquelocal'
    throw new StartError('MH1302', `${errorText(cause)}; each entry is ${form}`, { cause, at: ['http', 'trustProxy'] })
  }
}

/** Parses an entry of `X-Forwarded-For`; some proxies add the port. */
function parseAddress(entry: string): string | undefined {
  if (entry.length > MAX_ADDRESS) return undefined
  if (isIP(entry) !== 0) return entry
  const [, bracketed, dotted] = /^(?:\[([0-9a-f:.]+)\]|([0-9.]+))(?::\d+)?$/i.exec(entry) ?? []
  const bare = bracketed ?? dotted
  return bare !== undefined && isIP(bare) !== 0 ? bare : undefined
}

function outermost(header: string | string[] | undefined, proxies: number): string | undefined {
  const values = [header ?? []]
    .flat()
    .join(',')
    .split(',')
    .map(value => value.trim())
    .filter(value => value !== '')
  return values.at(-proxies) ?? values[0]
}

/** HTTP/2 servers in front of `Host.callback` set `:authority`, with or without Host. */
function hostsIn({ ':authority': authority, host }: IncomingHttpHeaders): Forwarded['hosts'] {
  if (authority === undefined) return [host]
  return host === undefined ? [String(authority)] : [String(authority), host]
}

export function forwardedReader({ trustProxy }: Pick<ResolvedHttp, 'trustProxy'>): (req: IncomingMessage) => Forwarded {
  if (trustProxy === false) {
    return ({ socket, headers }) => ({ ip: socket.remoteAddress ?? '', hosts: hostsIn(headers) })
  }
  const trust = compileTrust(trustProxy)

  return req => {
    const peer = req.socket.remoteAddress
    if (peer === undefined || !trust(peer, 0)) return { ip: peer ?? '', hosts: hostsIn(req.headers) }
    // Ordered from the nearest address to the first untrusted one, which is the client.
    const addresses = proxyAddr.all(req, trust)
    const proxies = Math.max(1, addresses.length - 1)
    // Falls back to the nearest known address if a proxy added none.
    const ip = addresses.reduceRight<string | undefined>((found, entry) => found ?? parseAddress(entry), undefined)
    const forwardedHost = outermost(req.headers['x-forwarded-host'], proxies)
    return { ip: ip ?? peer, hosts: forwardedHost === undefined ? hostsIn(req.headers) : [forwardedHost] }
  }
}

const IPV4_MAPPED = '::ffff:'
const GROUPS = 8
const GROUP_BITS = 16

/** Returns the groups of an IPv6 address. URL writes every form of an address in the same way. */
function groupsOf(address: string): number[] {
  const { hostname } = new URL(`http://[${address}]`)
  const [head = '', tail = ''] = hostname.slice(1, -1).split('::')
  const [first = [], last = []] = [head, tail].map(side => (side === '' ? [] : side.split(':')))
  const zeros = new Array<string>(GROUPS - first.length - last.length).fill('0')
  return [...first, ...zeros, ...last].map(group => Number.parseInt(group, 16))
}

function maskGroup(group: number, index: number, prefix: number): number {
  const bits = Math.min(GROUP_BITS, Math.max(0, prefix - index * GROUP_BITS))
  return group & (0xffff << (GROUP_BITS - bits))
}

/** Returns the key for per-address limits: an IPv4 address (also if mapped), or the IPv6 network of `prefix` bits. */
export function addressKey(ip: string, prefix: number): string {
  if (!ip.includes(':')) return ip
  if (ip.startsWith(IPV4_MAPPED) && isIPv4(ip.slice(IPV4_MAPPED.length))) return ip.slice(IPV4_MAPPED.length)
  const [address = ''] = ip.split('%')
  const groups = groupsOf(address)
  const [, , , , , marker, high = 0, low = 0] = groups
  const isMapped = marker === 0xffff && groups.slice(0, 5).every(group => group === 0)
  if (isMapped) return [high >> 8, high & 255, low >> 8, low & 255].join('.')
  return `${groups.map((group, index) => maskGroup(group, index, prefix).toString(16)).join(':')}/${prefix}`
}
