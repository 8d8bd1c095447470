// The boundary to oidc-provider: cookies, request hand-over, CORS and metadata paths.
import type Provider from 'oidc-provider'
import type { KoaContextWithOIDC } from 'oidc-provider'
import type { HostContext, HostMiddleware } from '../../../core/plugin.ts'

export const ROUTES = {
  authorization: '/authorize',
  jwks: '/jwks',
  registration: '/register',
  revocation: '/revoke',
  token: '/token',
} as const

export const SIGN_IN_TTL = 900

export const RETRY_AFTER = '5'

/** `__Host-` prevents cookies of sibling hosts. */
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

/** Sets the issuer's host for oidc-provider, which trusts forwarded headers. */
export function nameIssuer({ issuer }: Provider, { req, ip }: Pick<HostContext, 'req' | 'ip'>): void {
  const { host, protocol } = new URL(issuer)
  req.headers['x-forwarded-host'] = host
  req.headers['x-forwarded-proto'] = protocol.slice(0, -1)
  req.headers['x-forwarded-for'] = ip
}

export function handOver(getProvider: () => Promise<Provider>): (ctx: HostContext) => Promise<void> {
  return async ctx => {
    const provider = await getProvider()
    const { req, res } = ctx
    nameIssuer(provider, ctx)
    Object.assign(req, { originalUrl: `${new URL(provider.issuer).pathname}${req.url}` })
    ctx.respond = false
    await provider.callback()(req, res)
  }
}

/** Allows only `query`: the `form_post` page has an inline script. Unsupported response types still use `fragment`. */
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

/** Removes null members, which RFC 7591 section 2 does not define. */
export function dropNulls(metadata: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(metadata)) if (value === null) delete metadata[name]
}

/** Allows pages of any origin to send client requests, without cookies. */
export const openToPages: HostMiddleware = (ctx, next) => {
  ctx.set('Access-Control-Allow-Origin', '*')
  if (ctx.method !== 'OPTIONS') {
    // The header is removed, because oidc-provider has its own CORS rules.
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

/** RFC 8414 inserts the well-known path before the issuer's path. A proxy can remove the prefix of `publicUrl`. */
export function discoveryPaths(base: string, publicUrl: string | undefined): string[] {
  const prefix = publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '')
  const paths = ['oauth-authorization-server', 'openid-configuration'].flatMap(name => [
    `/.well-known/${name}${prefix}${base}`,
    `/.well-known/${name}${base}`,
    `${base}/.well-known/${name}`,
  ])
  return [...new Set(paths)]
}
