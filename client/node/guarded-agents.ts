// undici agents that connect only to allowed addresses.
import { lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { LRUCache } from 'lru-cache'
import type { Agent, Dispatcher } from 'undici'
import { AuthError } from '../errors.ts'
import { allowedHosts, kindOfAddress } from '../net-policy.ts'
import type { Undici } from './fetch-through.ts'

export interface GuardOptions {
  /** Hosts with no address restrictions, as in `networkPolicy.allowHosts`. */
  readonly allowHosts?: readonly string[]
  /** Resolves names. Default: `dns.lookup`. The checked result is used to connect. */
  readonly lookup?: LookupFunction
}

const isBlocked = (address: string): boolean => isIP(address) === 0 || kindOfAddress(address) !== 'public'

const refusal = (host: string, address: string): AuthError =>
  new AuthError(`${host} is at ${address}, inside a network where this client may not be sent`, {
    code: 'blocked_address',
    fix: `if that is meant, list "${host}" in allowHosts`,
  })

const notFound = (host: string) => Object.assign(new Error(`${host} has no address`), { code: 'ENOTFOUND' })

/** Rejects if there is no address, or one that is refused. */
function guardLookup(lookup: LookupFunction, isRefused: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, options, (error, found, family) => {
      const addresses = Array.isArray(found) ? found.map(({ address }) => address) : [found]
      const refused = error ? undefined : addresses.find(isRefused)
      if (refused !== undefined) callback(refusal(hostname, refused), [], 0)
      // node:net throws an uncaught exception for an empty list.
      else if (!error && addresses.length === 0) callback(notFound(hostname), [], 0)
      else callback(error, found, family)
    })
  }
}

/** Returns the agent for a URL: unrestricted for an allowed host, otherwise guarded. Throws `blocked_address`. */
export function createGuardedAgents(
  undici: Pick<Undici, 'Agent'>,
  { allowHosts = [], lookup = systemLookup as LookupFunction }: GuardOptions,
  options: Agent.Options = {},
): { agentFor(url: URL): Dispatcher; isAllowed(url: URL): boolean; close(): Promise<void> } {
  const isAllowed = allowedHosts(allowHosts)
  const agent = (isRefused: (address: string) => boolean) =>
    new undici.Agent({ ...options, connect: { lookup: guardLookup(lookup, isRefused) } })
  const open = agent(() => false)
  const guarded = agent(isBlocked)
  return {
    isAllowed,
    agentFor(url) {
      if (isAllowed(url)) return open
      const literal = url.hostname.replace(/^\[|\]$/g, '')
      if (isIP(literal) !== 0 && isBlocked(literal)) throw refusal(url.host, literal)
      return guarded
    },
    close: async () => void (await Promise.all([open.destroy(), guarded.destroy()])),
  }
}

export interface GuardedConnections {
  /** Throws an AuthError `blocked_address` or `insecure_endpoint`. */
  agentFor(origin: string): Dispatcher
  /** Ends all requests. */
  close(): Promise<void>
}

const MAX_ORIGINS = 100

/** Connections for plugins: https to public addresses, and allowed hosts. `connections`: most per origin. */
export async function openConnections({
  allowHosts,
  connections,
}: {
  readonly allowHosts: readonly string[]
  readonly connections: number
}): Promise<GuardedConnections> {
  const { agentFor, isAllowed, close } = createGuardedAgents(await import('undici'), { allowHosts }, { connections })
  const known = new LRUCache<string, Dispatcher>({ max: MAX_ORIGINS })
  function find(url: URL): Dispatcher {
    if (url.protocol === 'https:' || (url.protocol === 'http:' && isAllowed(url))) return agentFor(url)
    throw new AuthError(`${url.host} would be reached over plain http`, {
      code: 'insecure_endpoint',
      fix: `use https; if plain http is meant, list "${url.host}" in allowHosts`,
    })
  }
  return {
    agentFor(origin) {
      const agent = known.get(origin) ?? find(new URL(origin))
      known.set(origin, agent)
      return agent
    },
    close,
  }
}
