// `createAuthFetch` for Node.js: opens a browser, receives the redirect on loopback, and checks resolved addresses.
import { type AuthFetch, createAuthFetchOn } from '../auth-fetch.ts'
import type { OpenRedirect } from '../context.ts'
import { AuthError } from '../errors.ts'
import type { AuthorizationRedirectDelegate, ClientOAuthOptions } from '../options.ts'
import { checkOptions } from '../resolve-options.ts'
import { createGuardedFetch, isProxyFetch } from './fetch.ts'
import { createLoopbackRedirect, type LoopbackHost, previousPort } from './loopback.ts'

const HOSTS: Readonly<Record<string, LoopbackHost>> = {
  localhost: 'localhost',
  '127.0.0.1': '127.0.0.1',
  '[::1]': '::1',
}

type LoopbackUrl = NonNullable<ReturnType<typeof readLoopbackUrl>>

function readLoopbackUrl(options: ClientOAuthOptions) {
  const { redirectUri, authorizationRedirectDelegate, authorizationCallbackHandler } = options
  if (redirectUri === undefined || authorizationRedirectDelegate || authorizationCallbackHandler) return undefined
  if (!URL.canParse(String(redirectUri))) return undefined
  const { protocol, hostname, port, pathname: path } = new URL(redirectUri)
  const host = HOSTS[hostname]
  return protocol !== 'http:' || host === undefined ? undefined : { host, port: Number(port || 80), path }
}

const delegateTo =
  (loopback: LoopbackUrl): AuthorizationRedirectDelegate =>
  async (authorizationUrl, _, context) => {
    const redirect = await createLoopbackRedirect(loopback)
    try {
      return await redirect.delegate(authorizationUrl, redirect.redirectUri, context)
    } finally {
      await redirect.close()
    }
  }

const createOpenRedirect =
  ({ host, path }: LoopbackUrl): OpenRedirect =>
  async previous =>
    createLoopbackRedirect({ host, path, preferredPort: previousPort(previous, host) })

function guardedFetch({ networkPolicy, fetch }: ClientOAuthOptions): typeof globalThis.fetch | undefined {
  if (networkPolicy?.blockPrivateNetworks && isProxyFetch(fetch)) {
    throw new AuthError('networkPolicy.blockPrivateNetworks is set, but a proxy makes the connections', {
      code: 'invalid_options',
      fix: 'remove one of them: let the proxy refuse private networks, or connect without the proxy',
    })
  }
  if (!networkPolicy?.blockPrivateNetworks || fetch) return undefined
  return createGuardedFetch({ ...(networkPolicy.allowHosts && { allowHosts: networkPolicy.allowHosts }) })
}

/**
 * `createAuthFetch` of `mcp-host/client` for Node.js. Logins open a browser and use a loopback `redirectUri` by default
 * (port 0: any free port).
 */
export function createAuthFetch(options: ClientOAuthOptions): AuthFetch {
  checkOptions(options)
  const loopback = readLoopbackUrl(options)
  const fetch = guardedFetch(options)
  const base = { ...options, ...(fetch && { fetch }) }
  const isOpen =
    loopback?.port === 0 && options.interactive !== 'defer' && new URL(String(options.redirectUri)).search === ''
  if (loopback && isOpen) return createAuthFetchOn({ openRedirect: createOpenRedirect(loopback) }, base)
  return createAuthFetchOn({}, { ...base, ...(loopback && { authorizationRedirectDelegate: delegateTo(loopback) }) })
}
