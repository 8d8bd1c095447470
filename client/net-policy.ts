// Restricts server-provided URLs, and classifies addresses: the only address table of the package.
import { AuthError } from './errors.ts'
import { printableUrl } from './text.ts'

/** `unroutable`: link-local (including cloud metadata services), unspecified, multicast and reserved addresses. */
type AddressKind = 'public' | 'private' | 'loopback' | 'unroutable'

/** Ranges that are not the public internet (IANA special-purpose address registries), IPv4 in IPv6 form. */
export const SPECIAL_RANGES: readonly (readonly [network: string, prefix: number, kind: AddressKind])[] = [
  ['0.0.0.0', 8, 'unroutable'],
  ['10.0.0.0', 8, 'private'],
  ['100.64.0.0', 10, 'private'],
  ['127.0.0.0', 8, 'loopback'],
  ['169.254.0.0', 16, 'unroutable'],
  // Azure virtual machine agent: a public address that reaches the host machine.
  ['168.63.129.16', 32, 'unroutable'],
  ['172.16.0.0', 12, 'private'],
  ['192.0.0.0', 24, 'unroutable'],
  ['192.0.2.0', 24, 'unroutable'],
  ['192.88.99.0', 24, 'unroutable'],
  ['192.168.0.0', 16, 'private'],
  ['198.18.0.0', 15, 'private'],
  ['198.51.100.0', 24, 'unroutable'],
  ['203.0.113.0', 24, 'unroutable'],
  ['224.0.0.0', 4, 'unroutable'],
  ['240.0.0.0', 4, 'unroutable'],
  ['::', 128, 'unroutable'],
  ['::1', 128, 'loopback'],
  ['64:ff9b:1::', 48, 'private'],
  ['100::', 64, 'unroutable'],
  // Protocol assignments: Teredo, which carries IPv4 addresses, ORCHID, benchmarks.
  ['2001::', 23, 'unroutable'],
  ['2001:db8::', 32, 'unroutable'],
  ['3fff::', 20, 'unroutable'],
  ['fc00::', 7, 'private'],
  ['fe80::', 10, 'unroutable'],
  ['fec0::', 10, 'private'],
  ['ff00::', 8, 'unroutable'],
]

/** IPv6 ranges with an embedded IPv4 address at this bit offset: mapped, compatible, NAT64, 6to4. */
const EMBEDDED_IPV4: readonly (readonly [network: string, prefix: number, at: number])[] = [
  ['::ffff:0:0', 96, 96],
  ['::ffff:0:0:0', 96, 96],
  ['::', 96, 96],
  ['64:ff9b::', 96, 96],
  ['2002::', 16, 16],
]

function parseV4(text: string): bigint | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every(part => /^\d{1,3}$/.test(part) && Number(part) < 256)) return undefined
  return parts.reduce((bits, part) => (bits << 8n) | BigInt(part), 0n)
}

function parseV6(text: string): bigint | undefined {
  const [bare = ''] = text.split('%', 1)
  if (!/^[\da-f:.]+$/i.test(bare) || !URL.canParse(`http://[${bare}]`)) return undefined
  const halves = new URL(`http://[${bare}]`).hostname.slice(1, -1).split('::')
  const [head = [], tail = []] = halves.map(half => (half === '' ? [] : half.split(':')))
  const groups = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail]
  return groups.reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n)
}

type Range<Value> = ReturnType<typeof toRange<Value>>

function toRange<Value>([network, prefix, value]: readonly [string, number, Value]) {
  const v6 = network.includes(':')
  const shift = BigInt((v6 ? 128 : 32) - prefix)
  return { v6, shift, bits: ((v6 ? parseV6(network) : parseV4(network)) ?? 0n) >> shift, value }
}

const SPECIAL_BITS = SPECIAL_RANGES.map(toRange)
const EMBEDDED = EMBEDDED_IPV4.map(toRange)

/** ISATAP interface identifiers (RFC 5214, 6.1). The last 32 bits are the IPv4 address. */
const ISATAP = new Set([0x0000_5efen, 0x0200_5efen])
const GLOBAL_UNICAST = 1n
const STRICTEST_FIRST = ['unroutable', 'private', 'loopback'] as const

const findRange = <Value>(ranges: readonly Range<Value>[], bits: bigint, v6: boolean): Value | undefined =>
  ranges.find(range => range.v6 === v6 && bits >> range.shift === range.bits)?.value

/** Classifies a literal IPv4 or IPv6 address (brackets allowed). Returns undefined for other text. */
export function classifyAddress(text: string): AddressKind | undefined {
  const bare = text.replace(/^\[|\]$/g, '')
  const v4 = parseV4(bare)
  if (v4 !== undefined) return findRange(SPECIAL_BITS, v4, false) ?? 'public'
  const v6 = bare.includes(':') ? parseV6(bare) : undefined
  if (v6 === undefined) return undefined
  const special = findRange(SPECIAL_BITS, v6, true)
  if (special !== undefined) return special
  const embedded = findRange(EMBEDDED, v6, true)
  if (embedded === undefined && v6 >> 125n !== GLOBAL_UNICAST) return 'unroutable'
  const isatap = ISATAP.has((v6 >> 32n) & 0xffff_ffffn) ? 96 : undefined
  const kinds = [embedded, isatap].map(
    at => at !== undefined && findRange(SPECIAL_BITS, (v6 >> BigInt(96 - at)) & 0xffff_ffffn, false),
  )
  return STRICTEST_FIRST.find(kind => kinds.includes(kind)) ?? 'public'
}

/** Private names: RFC 6761, RFC 6762, RFC 8375, ICANN's `internal`, and names without a dot. */
const PRIVATE_NAME = /(?:^[^.]+|\.(?:local|internal|home\.arpa|localdomain|lan))$/

export function classifyHost(hostname: string): AddressKind {
  const literal = classifyAddress(hostname)
  if (literal !== undefined) return literal
  const name = hostname.toLowerCase().replace(/\.$/, '')
  if (/(?:^|\.)localhost$/.test(name) || name === 'localhost.localdomain') return 'loopback'
  return PRIVATE_NAME.test(name) ? 'private' : 'public'
}

/** Checks names and literal addresses. `createGuardedFetch` also checks resolved addresses. */
export interface NetworkPolicy {
  /** Also blocks private and loopback addresses for servers on such an address. Default false. */
  readonly blockPrivateNetworks?: boolean
  /** Allowed `host` or `host:port`. https is still required except on loopback. */
  readonly allowHosts?: readonly string[]
}

export type NetPolicy = ReturnType<typeof createNetPolicy>

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'https:': '443', 'http:': '80' }

const withoutDot = (hostname: string): string => hostname.replace(/\.$/, '')

/** Returns a predicate over URLs. Throws an AuthError `invalid_options` for an invalid entry. */
export function allowedHosts(hosts: readonly string[]): (url: URL) => boolean {
  const allowed = new Set(hosts.map(parseHost))
  return url => {
    const host = withoutDot(url.hostname)
    return allowed.has(host) || allowed.has(`${host}:${url.port || DEFAULT_PORTS[url.protocol]}`)
  }
}

/** Accepts IPv6 addresses without brackets. */
function parseHost(entry: string): string {
  const host = /^[\da-f]*:[\da-f:.]*:[\da-f:.]*$/i.test(entry) ? `[${entry}]` : entry
  try {
    const { hostname, pathname, search, username } = new URL(`ws://${host}`)
    const port = /:(\d+)$/.exec(host.replace(/^\[.*\]/, ''))?.[1]
    if (!/[/?#@]/.test(host) && pathname === '/' && !search && !username) {
      return port === undefined ? withoutDot(hostname) : `${withoutDot(hostname)}:${Number(port)}`
    }
  } catch {
    // An invalid entry is reported below.
  }
  throw new AuthError(`allowHosts has ${JSON.stringify(entry)}`, {
    code: 'invalid_options',
    fix: 'each entry is a host or host:port, such as auth.internal or 10.0.0.7:8443',
  })
}

function parseUrl(url: string | URL, label: string): URL {
  try {
    return new URL(url)
  } catch {
    // The cause is omitted, because it contains the complete URL.
    throw new AuthError(`${label} is not an absolute URL: "${printableUrl(url)}"`, {
      code: 'insecure_endpoint',
      fix: 'its publisher must use the complete https URL',
    })
  }
}

function checkScheme(url: URL, label: string): void {
  const insecure = (why: string, fix: string) =>
    new AuthError(`${label} (${printableUrl(url)}) ${why}`, { code: 'insecure_endpoint', fix })
  if (url.username || url.password) {
    throw new AuthError(`${label} at ${url.host} carries a user or password`, {
      code: 'insecure_endpoint',
      fix: 'its publisher must leave them out',
    })
  }
  if (url.protocol === 'https:') return
  if (url.protocol !== 'http:') throw insecure('is not an http or https URL', 'its publisher must use an https URL')
  if (classifyHost(url.hostname) === 'loopback') return
  throw insecure('is plain http', 'use https; http is for loopback addresses in development')
}

const KINDS: Readonly<Record<Exclude<AddressKind, 'public'>, string>> = {
  private: 'in a private network',
  loopback: 'this machine',
  unroutable: 'a link-local or reserved address',
}

/** `named`: a URL that is always allowed. Throws an AuthError `invalid_options` or `blocked_address`. */
export function createNetPolicy(serverUrl: string, policy: NetworkPolicy = {}, exemptUrl?: string) {
  const { blockPrivateNetworks = false, allowHosts = [] } = policy
  const isAllowed = allowedHosts(allowHosts)
  const server = new URL(serverUrl)
  const exemptHref = exemptUrl === undefined ? undefined : new URL(exemptUrl).href
  const serverKind = classifyHost(server.hostname)

  function checkAddress(url: URL, label: string): void {
    const kind = classifyHost(url.hostname)
    const allowsPrivate = !blockPrivateNetworks && (serverKind === 'private' || serverKind === 'loopback')
    if (kind === 'public' || (kind !== 'unroutable' && allowsPrivate) || isAllowed(url)) return
    throw new AuthError(`${label} (${printableUrl(url)}) is ${KINDS[kind]}, which the network policy does not allow`, {
      code: 'blocked_address',
      fix: { text: 'if this is intended,', option: 'networkPolicy.allowHosts', value: [url.host] },
    })
  }

  if (blockPrivateNetworks) checkAddress(server, 'serverUrl')
  return {
    /** `label`: URL name for messages. Throws an AuthError `insecure_endpoint` or `blocked_address`. */
    check(address: string | URL, label: string): URL {
      const url = parseUrl(address, label)
      checkScheme(url, label)
      if (url.href !== exemptHref) checkAddress(url, label)
      return url
    },
  }
}
