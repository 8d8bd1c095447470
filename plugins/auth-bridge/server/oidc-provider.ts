// The boundary to oidc-provider: cookies, request hand-over, CORS and metadata paths.
import type Provider from 'oidc-provider'
import type { KoaContextWithOIDC } from 'oidc-provider'
import type { HostContext, HostMiddleware } from '../../../core/index.ts'

export const ROUTES = {
  authorization: '/authorize',
  jwks: '/jwks',
  registration: '/register',
  revocation: '/revoke',
  token: '/token',
} as const

export const SIGN_IN_TTL = 900

export const RETRY_AFTER = '5'

/**
 * No page of another host of the domain can set one that begins with `__Host-`; what the others would let in there is stopped
 * by the cookie of the browser.
 */
export const cookieNames = (issuer: string) =>
  issuer.startsWith('https:')
    ? { session: '__Host-mcp_session', interaction: '__Secure-mcp_login', resume: '__Secure-mcp_resume' }
    : { session: 'mcp_session', interaction: 'mcp_login', resume: 'mcp_resume' }

export const shortCookie = (issuer: string) => ({
  ...{ signed: true, httpOnly: true, overwrite: true, sameSite: 'lax' as const },
  secure: issuer.startsWith('https:'),
})

export const longCookie = (issuer: string) => ({ ...shortCookie(issuer), path: '/' })

type OidcContext = KoaContextWithOIDC['oidc']
type Known = 'client' | 'grant' | 'params' | 'session' | 'resourceServers'

export type ProviderContext = KoaContextWithOIDC & {
  readonly oidc: { readonly [Name in Known]-?: NonNullable<OidcContext[Name]> }
}

type Serve = (ctx: HostContext) => Promise<void>

/**
 * Has oidc-provider take a request for one to its issuer, whatever it calls this host: it believes its proxy, which we are, and
 * not what a client says of itself.
 */
export function nameIssuer({ issuer }: Provider, { req, ip }: Pick<HostContext, 'req' | 'ip'>): void {
  const { host, protocol } = new URL(issuer)
  req.headers['x-forwarded-host'] = host
  req.headers['x-forwarded-proto'] = protocol.slice(0, -1)
  req.headers['x-forwarded-for'] = ip
}

export function handOver(getProvider: () => Promise<Provider>): Serve {
  return async ctx => {
    const provider = await getProvider()
    const { req, res } = ctx
    nameIssuer(provider, ctx)
    Object.assign(req, { originalUrl: `${new URL(provider.issuer).pathname}${req.url}` })
    ctx.respond = false
    await provider.callback()(req, res)
  }
}

/**
 * The provider with the response mode `query` only, because the page of `form_post` has an inline script. `fragment` remains for errors
 * of unsupported response types, so set `response_modes: ['query']` for each client.
 */
export const withQueryOnly = (Base: typeof Provider): typeof Provider =>
  class extends Base {
    constructor(issuer: string, configuration: object) {
      super(issuer, configuration)
      this.use(async (ctx, next) => {
        await next()
        if (ctx.oidc?.route === 'discovery') Object.assign(Object(ctx.body), { response_modes_supported: ['query'] })
      })
    }

    override registerResponseMode(...[name, handler]: Parameters<Provider['registerResponseMode']>): void {
      if (name !== 'form_post') super.registerResponseMode(name, handler)
    }
  }

/** Removes client metadata that is null: the client does not have it (RFC 7591 section 2 has no null). */
export function dropNulls(metadata: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(metadata)) if (value === null) delete metadata[name]
}

/** Outside of the host's guard, for clients in pages of any origin; nothing there may depend on a cookie. */
export const openToPages: HostMiddleware = (ctx, next) => {
  ctx.set('Access-Control-Allow-Origin', '*')
  if (ctx.method !== 'OPTIONS') {
    // oidc-provider would answer in its own way, and for some clients not at all.
    delete ctx.req.headers.origin
    return next()
  }
  ctx.set('Access-Control-Allow-Methods', 'GET, POST')
  ctx.set(
    'Access-Control-Allow-Headers',
    'Authorization, Content-Type, MCP-Protocol-Version, traceparent, tracestate, baggage',
  )
  ctx.status = 204
}

/**
 * The paths of an issuer's metadata. RFC 8414 inserts the well-known part before the whole path of the issuer, which begins with
 * the path of `publicUrl`. A proxy keeps or removes that prefix, so both paths are served. OpenID Connect Discovery appends it.
 */
export function discoveryPaths(base: string, publicUrl: string | undefined): string[] {
  const prefix = publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '')
  const paths = ['oauth-authorization-server', 'openid-configuration'].flatMap(name => [
    `/.well-known/${name}${prefix}${base}`,
    `/.well-known/${name}${base}`,
    `${base}/.well-known/${name}`,
  ])
  return [...new Set(paths)]
}
