// Who the client is at one authorization server: configured, a metadata document, or registered there. Whatever it is
// belongs to that issuer; nothing of it is ever shown to another one.

import type { Registration } from './cache/types.ts'
import type { ClientContext } from './context.ts'
import { AuthError } from './errors.ts'
import type { ClientIdentity, ServerInfo } from './parties.ts'
import { issuerChanged, registerClient } from './registration.ts'

export interface IdentityWish {
  /** What a registration asks for. */
  readonly scope: string | undefined
  /** Of an earlier run; used where it still holds. */
  readonly registration: Registration | undefined
  /** The issuer of the tokens in the cache: a configured client does not follow a server that moved. */
  readonly previousIssuer: string | undefined
  /** A client id that the server refused: no registration with it is used again. */
  readonly refusedClientId?: string | undefined
  /** Nobody is sent anywhere (refresh, revocation): the redirect URI may be another one than was registered. */
  readonly withoutRedirect?: boolean | undefined
}

/** Grants whose clients are known beforehand: none of them registers dynamically. */
const PREPARED = new Set(['client_credentials', 'jwt_bearer', 'enterprise'])

const WHAT_TO_GIVE = 'set clientId (and clientSecret) as the server issued them, or clientMetadataDocumentUri'

function configuredClient(ctx: ClientContext, clientId: string, issuer: string, want: IdentityWish): ClientIdentity {
  const { clientSecret, clientIssuer } = ctx.options
  const registeredAt = clientIssuer ?? want.previousIssuer
  if (registeredAt !== undefined && registeredAt !== issuer) {
    const fix = 'its clientId, clientSecret and clientIssuer'
    throw issuerChanged(issuer, `the configured client is of ${registeredAt}`, fix)
  }
  return { source: 'configured', issuer, clientId, ...(clientSecret !== undefined && { clientSecret }) }
}

/** The identity of a registration. */
const identityOf = (registration: Registration): ClientIdentity => ({
  source: 'registered',
  issuer: registration.issuer,
  clientId: registration.clientId,
  ...(registration.clientSecret !== undefined && { clientSecret: registration.clientSecret }),
  ...(registration.clientSecretExpiresAt !== undefined && {
    clientSecretExpiresAt: registration.clientSecretExpiresAt,
  }),
  ...(registration.tokenEndpointAuthMethod !== undefined && { authMethod: registration.tokenEndpointAuthMethod }),
  registration,
})

/** Why a registration cannot be used here and now; undefined where it can. */
function whyUnfit(ctx: ClientContext, kept: Registration, issuer: string, want: IdentityWish): string | undefined {
  if (kept.issuer !== issuer) return 'the authorization server is another one'
  if (kept.clientId === want.refusedClientId) return 'the authorization server no longer accepts it'
  if (!want.withoutRedirect && kept.redirectUri !== ctx.options.redirectUri) return 'it is for another redirect URI'
  const expiresAt = kept.clientSecretExpiresAt ?? 0
  if (expiresAt > 0 && expiresAt * 1000 <= ctx.now()) return 'its secret expired'
  return undefined
}

/** The first registration that still holds: of the cache, then of the options. */
function reusable(ctx: ClientContext, issuer: string, want: IdentityWish): Registration | undefined {
  for (const kept of [want.registration, ctx.options.dynamicClientRegistration.registration]) {
    if (!kept) continue
    const why = whyUnfit(ctx, kept, issuer, want)
    if (why === undefined) return kept
    ctx.emit('registration-dropped', { issuer: kept.issuer, clientId: kept.clientId, why })
  }
  return undefined
}

/** Why there is no client, and what would make one. */
function nobody(ctx: ClientContext, server: ServerInfo): AuthError {
  const { grant, dynamicClientRegistration, clientMetadataDocumentUri } = ctx.options
  const reasons = [
    clientMetadataDocumentUri !== undefined && 'it does not support client id metadata documents',
    PREPARED.has(grant.type)
      ? `the grant ${grant.type} does not register dynamically`
      : dynamicClientRegistration.enabled
        ? 'it offers no dynamic registration'
        : 'dynamic registration is turned off',
  ]
  return new AuthError(`no client for ${server.issuer}: ${reasons.filter(Boolean).join(', ')}`, {
    code: 'client_information_required',
    fix: WHAT_TO_GIVE,
  })
}

/**
 * Who the client is at this server already: configured, else a metadata document where the server supports them, else an
 * earlier registration. Undefined where only a new registration would make one. Throws `issuer_changed`.
 */
export function knownClient(ctx: ClientContext, server: ServerInfo, want: IdentityWish): ClientIdentity | undefined {
  const { clientId, clientMetadataDocumentUri, grant } = ctx.options
  const { issuer } = server
  ctx.secrets.add(ctx.options.clientSecret, want.registration?.clientSecret)
  if (clientId) return configuredClient(ctx, clientId, issuer, want)
  if (clientMetadataDocumentUri !== undefined && server.clientIdMetadataDocumentSupported) {
    return { source: 'metadata-document', issuer, clientId: clientMetadataDocumentUri }
  }
  const kept = PREPARED.has(grant.type) ? undefined : reusable(ctx, issuer, want)
  if (!kept) return undefined
  ctx.secrets.add(kept.clientSecret)
  return identityOf(kept)
}

/** The known client, else a newly registered one (MCP authorization, "Client Registration Approaches"). */
export async function identifyClient(
  ctx: ClientContext,
  server: ServerInfo,
  want: IdentityWish,
  signal: AbortSignal,
): Promise<ClientIdentity> {
  const known = knownClient(ctx, server, want)
  if (known) return known
  const { dynamicClientRegistration, grant } = ctx.options
  const may = dynamicClientRegistration.enabled && !PREPARED.has(grant.type)
  if (!may || server.registrationEndpoint === undefined) throw nobody(ctx, server)
  return identityOf(await registerClient(ctx, server, want.scope, signal))
}

/** True where the server's answer says that it does not know the client (any more): a registered one is made anew. */
export const isClientRefused = (thrown: unknown): thrown is AuthError =>
  AuthError.is(thrown) && (thrown.code === 'invalid_client' || thrown.code === 'unauthorized_client')
