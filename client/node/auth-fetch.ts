// `createAuthFetch` on Node: where nobody says how to show a login, and the redirect comes back to this machine, it
// opens the person's browser and listens for the answer; and it can see which address it connects to.
import { type AuthFetch, createAuthFetch as createPortable } from '../auth-fetch.ts'
import type { AuthorizationRedirectDelegate, ClientOAuthOptions } from '../options.ts'
import { createGuardedFetch } from './guarded-fetch.ts'
import { createLoopbackRedirect } from './loopback.ts'
import type { LoopbackHost } from './loopback-listener.ts'

const HOSTS: Readonly<Record<string, LoopbackHost>> = {
  localhost: 'localhost',
  '127.0.0.1': '127.0.0.1',
  '[::1]': '::1',
}

/** Undefined where the redirect leads elsewhere, or somebody shows logins already. */
function loopbackDelegate(options: ClientOAuthOptions): AuthorizationRedirectDelegate | undefined {
  const { redirectUri, authorizationRedirectDelegate, authorizationCallbackHandler } = options
  if (redirectUri === undefined || authorizationRedirectDelegate || authorizationCallbackHandler) return undefined
  if (!URL.canParse(String(redirectUri))) return undefined
  const { protocol, hostname, port, pathname: path } = new URL(redirectUri)
  const host = HOSTS[hostname]
  if (protocol !== 'http:' || host === undefined) return undefined
  return async (authorizationUrl, _, context) => {
    const redirect = await createLoopbackRedirect({ host, port: Number(port || 80), path })
    try {
      return await redirect.delegate(authorizationUrl, redirect.redirectUri, context)
    } finally {
      await redirect.close()
    }
  }
}

/** Undefined where connections are not to be judged, or the caller makes them. */
function guardedFetch({ networkPolicy, fetch }: ClientOAuthOptions): typeof globalThis.fetch | undefined {
  if (!networkPolicy?.blockPrivateNetworks || fetch) return undefined
  return createGuardedFetch({ ...(networkPolicy.allowHosts && { allowHosts: networkPolicy.allowHosts }) })
}

/**
 * As in `mcp-host/client`; by default logins open a browser and are received at a loopback `redirectUri`, and with
 * `blockPrivateNetworks` the addresses that are connected to are judged, not the names alone.
 */
export function createAuthFetch(options: ClientOAuthOptions): AuthFetch {
  const authorizationRedirectDelegate = loopbackDelegate(options)
  const fetch = guardedFetch(options)
  return createPortable({
    ...options,
    ...(authorizationRedirectDelegate && { authorizationRedirectDelegate }),
    ...(fetch && { fetch }),
  })
}
