// A `fetch` that connects only to allowed addresses, with redirects under the same rules.
import { AuthError } from '../errors.ts'
import { fetchThrough } from './fetch-through.ts'
import { createGuardedAgents, type GuardOptions } from './guarded-agents.ts'

/**
 * Creates a `fetch` that connects only to public addresses; others reject with `blocked_address`. Request bodies are
 * buffered, cookies ignored. Use it as `fetch` with `networkPolicy: { blockPrivateNetworks: true }`.
 */
export function createGuardedFetch(options: GuardOptions = {}): typeof fetch {
  const guarded = fetchThrough(undici => {
    const { agentFor } = createGuardedAgents(undici, options)
    return new undici.Agent().compose(
      () => (request, handler) => agentFor(new URL(String(request.origin))).dispatch(request, handler),
    )
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
