// Which addresses the client may be sent to by what a server says: https, http on loopback alone, and nothing inside the
// caller's own network unless the server is there itself or the caller listed it.
import { type AddressKind, kindOfHost } from './addresses.ts'
import { AuthError } from './errors.ts'
import { printableUrl } from './text.ts'

/**
 * It can judge names and literal addresses. What a name resolves to is judged by `createGuardedFetch` of
 * `mcp-host/client/node`; with any other `fetch`, a public name for a private address is not noticed.
 */
export interface NetworkPolicy {
  /** True: private and loopback addresses are refused even for a server that is at one itself. Default false. */
  readonly blockPrivateNetworks?: boolean
  /** Hosts that are allowed wherever they are, as `host` or `host:port`; https stays needed except on loopback. */
  readonly allowHosts?: readonly string[]
}

export type NetPolicy = ReturnType<typeof createNetPolicy>

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'https:': '443', 'http:': '80' }

const withoutDot = (hostname: string): string => hostname.replace(/\.$/, '')

/** A predicate over URLs for `allowHosts`; throws an AuthError `invalid_options` for an entry that is no host. */
export function allowedHosts(hosts: readonly string[]): (url: URL) => boolean {
  const allowed = new Set(hosts.map(readHost))
  return url => {
    const host = withoutDot(url.hostname)
    return allowed.has(host) || allowed.has(`${host}:${url.port || DEFAULT_PORTS[url.protocol]}`)
  }
}

/** `host` or `host:port` as URLs spell it; an IPv6 address may come without brackets. */
function readHost(entry: string): string {
  const host = /^[\da-f]*:[\da-f:.]*:[\da-f:.]*$/i.test(entry) ? `[${entry}]` : entry
  try {
    const { hostname, pathname, search, username } = new URL(`ws://${host}`)
    // The port from the text: the URL leaves out the one that its scheme implies.
    const port = /:(\d+)$/.exec(host.replace(/^\[.*\]/, ''))?.[1]
    if (!/[/?#@]/.test(host) && pathname === '/' && !search && !username) {
      return port === undefined ? withoutDot(hostname) : `${withoutDot(hostname)}:${Number(port)}`
    }
  } catch {
    // Told below.
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
    // The cause is left out: it quotes the whole text, query and all.
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

/** Private and loopback places are for servers that are at such a place themselves. */
const isReachable = (kind: AddressKind, serverKind: AddressKind, blockPrivateNetworks: boolean): boolean => {
  if (kind === 'public') return true
  return kind !== 'unroutable' && !blockPrivateNetworks && (serverKind === 'private' || serverKind === 'loopback')
}

const PLACES: Readonly<Record<Exclude<AddressKind, 'public'>, string>> = {
  private: 'in a private network',
  loopback: 'this machine',
  unroutable: 'a link-local or reserved address',
}

/**
 * What `serverUrl` and what it says may lead to. Throws an AuthError `invalid_options` for an entry of `allowHosts` that
 * is no host, and `blocked_address` for a private server under `blockPrivateNetworks`. `named` is a whole address that the
 * caller gave, which may be anywhere.
 */
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
    /** `what` names the URL, such as "The token endpoint". Throws an AuthError `insecure_endpoint` or `blocked_address`. */
    check(address: string | URL, what: string): URL {
      const url = parse(address, what)
      checkScheme(url, what)
      if (url.href !== exempt) checkPlace(url, what)
      return url
    },
  }
}
