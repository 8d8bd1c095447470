// The client identity: configured, metadata document, or dynamic registration (RFC 7591).

import type { ClientContext } from './context.ts'
import { AuthError, callOption, RegistrationRejectedError } from './errors.ts'
import { DEVICE_CODE, isUnattended } from './grants.ts'
import { describeAnswer, type HttpAnswer } from './http.ts'
import { isLoopback } from './resolve-options.ts'
import type { ClientIdentity, Registration, ServerInfo } from './stores.ts'
import { errorTextOf, given, isObject, isVisible, readSeconds, readText, showText, withoutSecrets } from './text.ts'

const CLIENT_NAME = 'MCP client (mcp-host)'

function isNative(redirectUri: string | undefined): boolean {
  if (redirectUri === undefined) return true
  const { protocol, hostname } = new URL(redirectUri)
  return (protocol !== 'https:' && protocol !== 'http:') || isLoopback(hostname)
}

function chooseMethod({ options }: ClientContext, server: ServerInfo, native: boolean): string {
  if (options.tokenEndpointAuthMethod !== undefined) return options.tokenEndpointAuthMethod
  const listed = server.tokenEndpointAuthMethodsSupported
  // The default method is client_secret_basic (RFC 8414 §2).
  if (listed === undefined) return native ? 'none' : 'client_secret_basic'
  const able = ['none', 'client_secret_basic', 'client_secret_post']
  if (options.privateKey !== undefined) able.push('private_key_jwt')
  const method = able.find(one => listed.includes(one))
  if (method !== undefined) return method
  throw new AuthError(`${server.issuer} accepts only the authentication methods ${listed.join(', ')}`, {
    code: 'client_information_required',
    fix: 'register a client with it by hand and set clientId, with privateKey for private_key_jwt',
  })
}

function clientMetadata(ctx: ClientContext, server: ServerInfo, scope: string | undefined): Record<string, unknown> {
  const { redirectUri, dynamicClientRegistration, grant } = ctx.options
  const { clientName = CLIENT_NAME, clientUri, applicationType, metadata } = dynamicClientRegistration
  const native = isNative(redirectUri)
  const withBrowser = grant.type !== 'device'
  return {
    ...(withBrowser && { redirect_uris: [redirectUri], response_types: ['code'] }),
    grant_types: [withBrowser ? 'authorization_code' : DEVICE_CODE, 'refresh_token'],
    token_endpoint_auth_method: chooseMethod(ctx, server, native),
    application_type: applicationType ?? (native ? 'native' : 'web'),
    ...(clientName !== '' && { client_name: clientName }),
    ...(clientUri !== undefined && { client_uri: clientUri }),
    ...(scope !== undefined && { scope }),
    ...metadata,
  }
}

const FIXES: Readonly<Record<string, string>> = {
  invalid_redirect_uri: 'use another redirectUri, or another dynamicClientRegistration.applicationType',
  invalid_client_metadata: 'correct dynamicClientRegistration (its metadata overrides the defaults)',
  invalid_token: 'set dynamicClientRegistration.initialAccessToken to a valid one',
  access_denied: 'set dynamicClientRegistration.initialAccessToken, or register a client by hand and set clientId',
}

function rejection(
  ctx: ClientContext,
  server: ServerInfo,
  submitted: Record<string, unknown>,
  answer: HttpAnswer,
): RegistrationRejectedError {
  const { status, json } = answer
  const error = isObject(json) ? readText(json['error']) : undefined
  const description = isObject(json) ? readText(json['error_description']) : undefined
  const said = errorTextOf(answer)
  const shown = (text: string | undefined) => (text === undefined ? undefined : showText(ctx.secrets, text))
  const kind = String(submitted['application_type'])
  const redirect = ctx.options.redirectUri ?? 'no redirect URI'
  const what = `${server.issuer} did not register this client (${kind}, ${redirect}): ${describeAnswer(answer)}`
  const denied = status === 401 || status === 403
  return new RegistrationRejectedError(said === undefined ? what : `${what}, ${shown(said)}`, {
    status,
    error: shown(error),
    errorDescription: shown(description),
    submitted: withoutSecrets(submitted) as Record<string, unknown>,
    fix:
      FIXES[error ?? (denied ? 'access_denied' : '')] ??
      (status >= 500 ? 'try again later' : 'register a client by hand and set clientId'),
  })
}

const issuerChanged = (issuer: string, what: string, names: string): AuthError =>
  new AuthError(`the server's authorization server is ${issuer}, but ${what}`, {
    code: 'issuer_changed',
    fix: `if that is right, register a client there and set ${names}`,
  })

function readRegistration(ctx: ClientContext, server: ServerInfo, json: unknown): Registration | undefined {
  if (!isObject(json)) return undefined
  const clientId = readText(json['client_id'])
  if (clientId === undefined) return undefined
  const clientSecret = readText(json['client_secret'])
  if (!isVisible(clientId) || !isVisible(clientSecret ?? '')) {
    throw new AuthError(`${server.issuer} gave a client id or secret with characters that are not visible ASCII`, {
      code: 'malformed_response',
      fix: 'its operator must send others (RFC 6749, appendix A), or register a client by hand and set clientId',
    })
  }
  const clientSecretExpiresAt = readSeconds(json['client_secret_expires_at'])
  const tokenEndpointAuthMethod = readText(json['token_endpoint_auth_method'])
  const { redirectUri } = ctx.options
  const secret = clientSecret === undefined ? {} : given({ clientSecret, clientSecretExpiresAt })
  const { issuer } = server
  return { issuer, clientId, ...secret, ...given({ tokenEndpointAuthMethod, redirectUri }), dynamic: true }
}

async function reportRegistration(
  ctx: ClientContext,
  made: Registration,
  json: unknown,
  signal: AbortSignal,
): Promise<void> {
  const { responseDelegate } = ctx.options.dynamicClientRegistration
  if (!responseDelegate) return
  const clientIdIssuedAt = isObject(json) ? readSeconds(json['client_id_issued_at']) : undefined
  const { redirectUri: _, dynamic: __, ...response } = made
  const about = {
    code: 'registration_callback_failed',
    fix: 'see `cause`; the registration was discarded, and the next attempt registers again',
  }
  const what = 'dynamicClientRegistration.responseDelegate threw, so the login ended'
  await callOption(what, about, () => responseDelegate({ ...response, clientIdIssuedAt }, { signal }))
}

/** Registers the client. Throws a RegistrationRejectedError if the server rejects it; nothing is stored then. */
export async function registerClient(
  ctx: ClientContext,
  server: ServerInfo,
  scope: string | undefined,
  signal: AbortSignal,
): Promise<Registration> {
  const { clientIssuer, dynamicClientRegistration } = ctx.options
  const { initialAccessToken } = dynamicClientRegistration
  if (server.registrationEndpoint === undefined) {
    throw new AuthError(`${server.issuer} has no registration endpoint`, {
      code: 'client_information_required',
      fix: 'register a client by hand and set clientId',
    })
  }
  ctx.secrets.add(initialAccessToken)
  if (initialAccessToken !== undefined && clientIssuer !== server.issuer) {
    throw issuerChanged(
      server.issuer,
      `the initial access token is of ${clientIssuer}`,
      'its initialAccessToken and clientIssuer',
    )
  }
  const body = clientMetadata(ctx, server, scope)
  const answer = await ctx.http.post(server.registrationEndpoint, {
    what: 'The registration endpoint',
    body,
    ...(initialAccessToken !== undefined && { headers: { authorization: `Bearer ${initialAccessToken}` } }),
    signal,
  })
  const accepted = answer.status === 200 || answer.status === 201
  const made = accepted ? readRegistration(ctx, server, answer.json) : undefined
  if (!made) throw rejection(ctx, server, body, answer)
  await reportRegistration(ctx, made, answer.json, signal)
  ctx.emit('registered', { issuer: made.issuer, clientId: made.clientId })
  return made
}

export interface IdentityWish {
  readonly scope: string | undefined
  readonly registration: Registration | undefined
  /** Issuer of cached tokens; a configured client rejects a changed issuer. */
  readonly previousIssuer: string | undefined
  readonly refusedClientId?: string | undefined
  /** True for requests without a redirect (refresh, revocation). */
  readonly withoutRedirect?: boolean | undefined
}

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

function identityOf(registration: Registration): ClientIdentity {
  const { redirectUri: _, dynamic: __, ...client } = registration
  return { source: 'registered', ...client, registration }
}

function whyUnfit(ctx: ClientContext, kept: Registration, issuer: string, want: IdentityWish): string | undefined {
  if (kept.issuer !== issuer) return 'it is for another authorization server'
  if (kept.clientId === want.refusedClientId) return 'the authorization server no longer accepts it'
  if (!want.withoutRedirect && kept.redirectUri !== ctx.options.redirectUri) return 'it is for another redirect URI'
  const expiresAt = kept.clientSecretExpiresAt ?? 0
  if (expiresAt > 0 && expiresAt * 1000 <= ctx.now()) return 'its secret expired'
  return undefined
}

function reusable(ctx: ClientContext, issuer: string, want: IdentityWish): Registration | undefined {
  for (const kept of [want.registration, ctx.options.dynamicClientRegistration.registration]) {
    if (!kept) continue
    const why = whyUnfit(ctx, kept, issuer, want)
    if (why === undefined) return kept
    ctx.emit('registration-dropped', { issuer: kept.issuer, clientId: kept.clientId, why })
  }
  return undefined
}

function noClientIdentity(ctx: ClientContext, server: ServerInfo): AuthError {
  const { grant, dynamicClientRegistration, clientMetadataDocumentUri } = ctx.options
  const reasons = [
    clientMetadataDocumentUri !== undefined && 'it does not support client id metadata documents',
    isUnattended(grant)
      ? `the grant ${grant.type} does not register dynamically`
      : dynamicClientRegistration.enabled
        ? 'it does not support dynamic registration'
        : 'dynamic registration is turned off',
  ]
  return new AuthError(`no client for ${server.issuer}: ${reasons.filter(Boolean).join(', ')}`, {
    code: 'client_information_required',
    fix: WHAT_TO_GIVE,
  })
}

/** Returns undefined if a new registration is required. Throws `issuer_changed`. */
export function knownClient(ctx: ClientContext, server: ServerInfo, want: IdentityWish): ClientIdentity | undefined {
  const { clientId, clientMetadataDocumentUri, grant } = ctx.options
  const { issuer } = server
  ctx.secrets.add(ctx.options.clientSecret, want.registration?.clientSecret)
  if (clientId) return configuredClient(ctx, clientId, issuer, want)
  if (clientMetadataDocumentUri !== undefined && server.clientIdMetadataDocumentSupported) {
    return { source: 'metadata-document', issuer, clientId: clientMetadataDocumentUri }
  }
  const kept = isUnattended(grant) ? undefined : reusable(ctx, issuer, want)
  if (!kept) return undefined
  ctx.secrets.add(kept.clientSecret)
  return identityOf(kept)
}

export async function identifyClient(
  ctx: ClientContext,
  server: ServerInfo,
  want: IdentityWish,
  signal: AbortSignal,
): Promise<ClientIdentity> {
  const known = knownClient(ctx, server, want)
  if (known) return known
  const { dynamicClientRegistration, grant } = ctx.options
  const may = dynamicClientRegistration.enabled && !isUnattended(grant)
  if (!may || server.registrationEndpoint === undefined) throw noClientIdentity(ctx, server)
  return identityOf(await registerClient(ctx, server, want.scope, signal))
}

export const isClientRefused = (thrown: unknown): thrown is AuthError =>
  AuthError.is(thrown) && (thrown.code === 'invalid_client' || thrown.code === 'unauthorized_client')
