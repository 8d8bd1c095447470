// Restricts server-provided URLs: https, http on loopback, and private networks for private servers only.
import { type AddressKind, kindOfHost } from './addresses.ts'
import { AuthError } from './errors.ts'
import { printableUrl } from './text.ts'

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
  const allowed = new Set(hosts.map(readHost))
  return url => {
    const host = withoutDot(url.hostname)
    return allowed.has(host) || allowed.has(`${host}:${url.port || DEFAULT_PORTS[url.protocol]}`)
  }
}

/** Accepts IPv6 addresses without brackets. */
function readHost(entry: string): string {
  const host = /^[\da-f]*:[\da-f:.]*:[\da-f:.]*$/i.test(entry) ? `[${entry}]` : entry
  try {
    const { hostname, pathname, search, username } = new URL(`ws://${host}`)
    const port = /:(\d+)$/.exec(host.replace(/^\[.*\]/, ''))?.[1]
    if (!/[/?#@]/.test(host) && pathname === '/' && !search && !username) {
      return port === undefined ? withoutDot(hostname) : `${withoutDot(hostname)}:${Number(port)}`
    }
  } catch {
    // Reported below.
  }
  throw new AuthError(`networkPolicy.allowHosts has ${JSON.stringify(entry)}`, {
    code: 'invalid_options',
    fix: 'each entry is a host or host:port, such as auth.internal or 10.0.0.7:8443',
  })
}

function parse(url: string | URL, what: string): URL {
  try {
    return new URL(url)
  } catch {
    // No cause, because it contains the complete URL.
    throw new AuthError(`${what} is not an absolute URL: "${printableUrl(url)}"`, {
      code: 'insecure_endpoint',
      fix: 'its publisher must give the whole https address',
    })
  }
}

function checkScheme(url: URL, what: string): void {
  const insecure = (why: string, fix: string) =>
    new AuthError(`${what} (${printableUrl(url)}) ${why}`, { code: 'insecure_endpoint', fix })
  if (url.username || url.password) {
    throw new AuthError(`${what} at ${url.host} carries a user or password`, {
      code: 'insecure_endpoint',
      fix: 'its publisher must leave them out',
    })
  }
  if (url.protocol === 'https:') return
  if (url.protocol !== 'http:') throw insecure('is no web address', 'its publisher must give an https address')
  if (kindOfHost(url.hostname) === 'loopback') return
  throw insecure('is plain http', 'use https; http is for loopback addresses in development')
}

const isReachable = (kind: AddressKind, serverKind: AddressKind, blockPrivateNetworks: boolean): boolean => {
  if (kind === 'public') return true
  return kind !== 'unroutable' && !blockPrivateNetworks && (serverKind === 'private' || serverKind === 'loopback')
}

const PLACES: Readonly<Record<Exclude<AddressKind, 'public'>, string>> = {
  private: 'in a private network',
  loopback: 'this machine',
  unroutable: 'a link-local or reserved address',
}

/** `named`: a URL that is always allowed. Throws an AuthError `invalid_options` or `blocked_address`. */
export function createNetPolicy(serverUrl: string, policy: NetworkPolicy = {}, named?: string) {
  const { blockPrivateNetworks = false, allowHosts = [] } = policy
  const isAllowed = allowedHosts(allowHosts)
  const server = new URL(serverUrl)
  const exempt = named === undefined ? undefined : new URL(named).href
  const serverKind = kindOfHost(server.hostname)

  function checkPlace(url: URL, what: string): void {
    const kind = kindOfHost(url.hostname)
    if (kind === 'public' || isReachable(kind, serverKind, blockPrivateNetworks) || isAllowed(url)) return
    throw new AuthError(`${what} (${printableUrl(url)}) is ${PLACES[kind]}, where this client may not be sent`, {
      code: 'blocked_address',
      fix: `if that is meant, list "${url.host}" in networkPolicy.allowHosts`,
    })
  }

  if (blockPrivateNetworks) checkPlace(server, 'serverUrl')
  return {
    /** `what`: URL name for messages. Throws an AuthError `insecure_endpoint` or `blocked_address`. */
    check(address: string | URL, what: string): URL {
      const url = parse(address, what)
      checkScheme(url, what)
      if (url.href !== exempt) checkPlace(url, what)
      return url
    },
  }
}
