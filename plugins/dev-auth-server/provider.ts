// The authorization server itself: oidc-provider with PKCE, DCR, client metadata documents, and JWT access tokens for
// the configured resources.
import Provider, { errors } from 'oidc-provider'
import { isLoopback } from '../../core/auth.ts'
import { type Resources, withQueryOnly } from '../families/oidc-provider/index.ts'
import { createAdapter } from './adapter.ts'
import { redirectFault, settleMetadata } from './client-rules.ts'
import { type KeptState, SIGNING } from './kept-state.ts'
import type { DevUser } from './users.ts'

export interface ProviderSettings {
  readonly issuer: string
  readonly users: readonly DevUser[]
  readonly scopes: readonly string[]
  /** Keys, clients, grants and logins. */
  readonly state: KeptState
  readonly resources: Pick<Resources, 'find' | 'only'>
  readonly guardedFetch: typeof fetch
}

const HOUR = 3_600

/** In development a metadata document can be on this machine. The dispatcher of oidc-provider would refuse it. */
const fetchDocument =
  (guardedFetch: typeof fetch) =>
  (url: string, { dispatcher: _, ...options }: RequestInit & { dispatcher?: unknown }) =>
    isLoopback(new URL(url).hostname) ? fetch(url, options) : guardedFetch(url, options)

function features({ resources, scopes }: ProviderSettings) {
  const info = (resource: string) => {
    const audience = resources.find(resource)
    if (audience === undefined) throw new errors.InvalidTarget(`${resource} is no resource of this server`)
    return {
      scope: scopes.join(' '),
      audience,
      accessTokenFormat: 'jwt',
      accessTokenTTL: HOUR,
      jwt: { sign: { alg: SIGNING } },
    }
  }
  return {
    devInteractions: { enabled: false },
    rpInitiatedLogout: { enabled: false },
    userinfo: { enabled: false },
    revocation: { enabled: true },
    registration: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02', cacheDuration: { min: 1, max: HOUR } },
    resourceIndicators: {
      enabled: true,
      /** A client that requested several resources must name one of them for the token. */
      defaultResource(_ctx: unknown, _client: unknown, oneOf?: readonly string[]) {
        const resource = oneOf ?? resources.only
        if (resource === undefined) throw new errors.InvalidTarget('resource is required: this server has several')
        return resource
      },
      getResourceServerInfo: (_ctx: unknown, resource: string) => info(resource),
      // A client that names its resource on the way in need not name it again for the token.
      useGrantedResource: () => true,
    },
  }
}

const ALWAYS_CHECKED = 'x_dev_auth_server'

/** Throws where oidc-provider does. */
export function createProvider(settings: ProviderSettings): Provider {
  const { issuer, users, scopes, state } = settings
  const userOf = (id: unknown) => users.find(user => user.id === id)
  const provider = new (withQueryOnly(Provider))(issuer, {
    adapter: createAdapter(state),
    jwks: state.jwks,
    cookies: { keys: state.cookieKeys },
    features: features(settings),
    pkce: { required: () => true },
    responseTypes: ['code'],
    scopes: ['openid', 'offline_access', ...scopes],
    clientDefaults: { id_token_signed_response_alg: SIGNING, application_type: 'native' },
    enabledJWA: { idTokenSigningAlgValues: [SIGNING] },
    clientBasedCORS: () => true,
    fetch: fetchDocument(settings.guardedFetch),
    renderError(ctx: { type: string; body: unknown }, out: Record<string, string | undefined>) {
      ctx.type = 'text/plain'
      ctx.body = `${out['error']}: ${out['error_description'] ?? ''}\n`
    },
    interactions: { url: (_ctx: unknown, { uid }: { uid: string }) => `${issuer}/interaction/${uid}` },
    // Called for this property of every client, though none has it: the one place before a client is checked.
    extraClientMetadata: {
      properties: [ALWAYS_CHECKED],
      validator(_ctx: unknown, _key: string, _value: unknown, metadata: Record<string, unknown>) {
        const fault = redirectFault(metadata['redirect_uris'])
        if (fault !== undefined) throw new errors.InvalidClientMetadata(fault)
        settleMetadata(metadata)
      },
    },
    findAccount: (_ctx: unknown, accountId: string) =>
      userOf(accountId) && { accountId, claims: () => ({ sub: accountId }) },
    extraTokenClaims(_ctx: unknown, token: { accountId?: string }) {
      const user = userOf(token.accountId)
      return user && { ...(user.roles && { roles: user.roles }), ...user.claims }
    },
    issueRefreshToken: (_ctx: unknown, client: { grantTypeAllowed(type: string): boolean }) =>
      client.grantTypeAllowed('refresh_token'),
    ttl: {
      AccessToken: HOUR,
      AuthorizationCode: 60,
      Grant: 24 * HOUR,
      IdToken: HOUR,
      Interaction: HOUR,
      RefreshToken: 24 * HOUR,
      Session: 24 * HOUR,
    },
  })
  // Its addresses are the issuer's, whatever Host a request names: `mount` says so in X-Forwarded-*.
  provider.proxy = true
  return provider
}
