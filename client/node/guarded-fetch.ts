// A `fetch` that connects only to allowed addresses, with redirects under the same rules.
import { lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { AuthError } from '../errors.ts'
import { allowedHosts, kindOfAddress } from '../net-policy.ts'
import { fetchThrough } from './fetch-through.ts'

interface GuardedFetchOptions {
  /** Hosts with no address restrictions, as in `networkPolicy.allowHosts`. */
  readonly allowHosts?: readonly string[]
  /** Resolves names. Default: `dns.lookup`. The checked result is used to connect. */
  readonly lookup?: LookupFunction
}

const isBlocked = (address: string): boolean => isIP(address) === 0 || kindOfAddress(address) !== 'public'

const refusal = (host: string, address: string): AuthError =>
  new AuthError(`${host} is at ${address}, inside a network where this client may not be sent`, {
    code: 'blocked_address',
    fix: `if that is meant, list "${host}" in allowHosts of createGuardedFetch`,
  })

const notFound = (host: string) => Object.assign(new Error(`${host} has no address`), { code: 'ENOTFOUND' })

/** Rejects if any resolved address is blocked. */
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

/**
 * Creates a `fetch` that connects only to public addresses; others reject with `blocked_address`. Request bodies are
 * buffered, cookies ignored. Use it as `fetch` with `networkPolicy: { blockPrivateNetworks: true }`.
 */
export function createGuardedFetch({ allowHosts = [], lookup }: GuardedFetchOptions = {}): typeof fetch {
  const isAllowed = allowedHosts(allowHosts)
  const resolveName = lookup ?? (systemLookup as LookupFunction)
  const guarded = fetchThrough(({ Agent }) => {
    const agent = (isRefused: (address: string) => boolean) =>
      new Agent({ connect: { lookup: guardLookup(resolveName, isRefused) } })
    const open = agent(() => false)
    return agent(isBlocked).compose(dispatch => (request, handler) => {
      const url = new URL(String(request.origin))
      if (isAllowed(url)) return open.dispatch(request, handler)
      const literal = url.hostname.replace(/^\[|\]$/g, '')
      if (isIP(literal) !== 0 && isBlocked(literal)) throw refusal(url.host, literal)
      return dispatch(request, handler)
    })
  })
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input)
    if (!/^https?:$/.test(url.protocol)) throw new TypeError(`${url.protocol} is not http or https`)
    try {
      return await guarded(input, init)
    } catch (thrown) {
      const { cause } = thrown as Error
      throw AuthError.is(cause) ? cause : thrown
    }
  }
}
