// The client identity: configured, metadata document, or dynamic registration (RFC 7591).

import type { ClientContext } from './context.ts'
import { AuthError, callOption, RegistrationRejectedError } from './errors.ts'
import { DEVICE_CODE, isUnattended } from './grants.ts'
import { describeResponse, type HttpResult } from './http.ts'
import { isLoopback } from './resolve-options.ts'
import type { ClientIdentity, Registration, ServerInfo } from './stores.ts'
import { defined, isObject, isVisible, readErrorText, readSeconds, readText, redactSecrets, showText } from './text.ts'

const CLIENT_NAME = 'MCP client (mcp-host)'

function isNative(redirectUri: string | undefined): boolean {
  if (redirectUri === undefined) return true
  const { protocol, hostname } = new URL(redirectUri)
  return (protocol !== 'https:' && protocol !== 'http:') || isLoopback(hostname)
}

function selectAuthMethod({ options }: ClientContext, server: ServerInfo, native: boolean): string {
  if (options.tokenEndpointAuthMethod !== undefined) return options.tokenEndpointAuthMethod
  const listed = server.tokenEndpointAuthMethodsSupported
  // The default method is client_secret_basic (RFC 8414 §2).
  if (listed === undefined) return native ? 'none' : 'client_secret_basic'
  const supported = ['none', 'client_secret_basic', 'client_secret_post']
  if (options.privateKey !== undefined) supported.push('private_key_jwt')
  const method = supported.find(method => listed.includes(method))
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
    token_endpoint_auth_method: selectAuthMethod(ctx, server, native),
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

function rejectionError(
  ctx: ClientContext,
  server: ServerInfo,
  submitted: Record<string, unknown>,
  response: HttpResult,
): RegistrationRejectedError {
  const { status, json } = response
  const error = isObject(json) ? readText(json['error']) : undefined
  const description = isObject(json) ? readText(json['error_description']) : undefined
  const text = readErrorText(response)
  const redact = (text: string | undefined) => (text === undefined ? undefined : showText(ctx.secrets, text))
  const kind = String(submitted['application_type'])
  const redirect = ctx.options.redirectUri ?? 'no redirect URI'
  const what = `${server.issuer} did not register this client (${kind}, ${redirect}): ${describeResponse(response)}`
  const isDenied = status === 401 || status === 403
  return new RegistrationRejectedError(text === undefined ? what : `${what}, ${redact(text)}`, {
    status,
    error: redact(error),
    errorDescription: redact(description),
    submitted: redactSecrets(submitted) as Record<string, unknown>,
    fix:
      FIXES[error ?? (isDenied ? 'access_denied' : '')] ??
      (status >= 500 ? 'try again later' : 'register a client by hand and set clientId'),
  })
}

const issuerChangedError = (issuer: string, what: string, names: string): AuthError =>
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
  const secret = clientSecret === undefined ? {} : defined({ clientSecret, clientSecretExpiresAt })
  const { issuer } = server
  return { issuer, clientId, ...secret, ...defined({ tokenEndpointAuthMethod, redirectUri }), dynamic: true }
}

async function reportRegistration(
  ctx: ClientContext,
  registration: Registration,
  json: unknown,
  signal: AbortSignal,
): Promise<void> {
  const { responseDelegate } = ctx.options.dynamicClientRegistration
  if (!responseDelegate) return
  const clientIdIssuedAt = isObject(json) ? readSeconds(json['client_id_issued_at']) : undefined
  const { redirectUri: _, dynamic: __, ...response } = registration
  const details = {
    code: 'registration_callback_failed',
    fix: 'see `cause`; the registration was discarded, and the next attempt registers again',
  }
  const what = 'dynamicClientRegistration.responseDelegate threw, so the login ended'
  await callOption(what, details, () => responseDelegate({ ...response, clientIdIssuedAt }, { signal }))
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
    throw issuerChangedError(
      server.issuer,
      `the initial access token is of ${clientIssuer}`,
      'its initialAccessToken and clientIssuer',
    )
  }
  const body = clientMetadata(ctx, server, scope)
  const response = await ctx.http.post(server.registrationEndpoint, {
    label: 'The registration endpoint',
    body,
    ...(initialAccessToken !== undefined && { headers: { authorization: `Bearer ${initialAccessToken}` } }),
    signal,
  })
  const accepted = response.status === 200 || response.status === 201
  const registration = accepted ? readRegistration(ctx, server, response.json) : undefined
  if (!registration) throw rejectionError(ctx, server, body, response)
  await reportRegistration(ctx, registration, response.json, signal)
  ctx.emit('registered', { issuer: registration.issuer, clientId: registration.clientId })
  return registration
}

export interface IdentityQuery {
  readonly scope: string | undefined
  readonly registration: Registration | undefined
  /** Issuer of cached tokens; a configured client rejects a changed issuer. */
  readonly previousIssuer: string | undefined
  readonly refusedClientId?: string | undefined
  /** True for requests without a redirect (refresh, revocation). */
  readonly withoutRedirect?: boolean | undefined
}

const CLIENT_ID_FIX = 'set clientId (and clientSecret) as the server issued them, or clientMetadataDocumentUri'

function configuredClient(ctx: ClientContext, clientId: string, issuer: string, query: IdentityQuery): ClientIdentity {
  const { clientSecret, clientIssuer } = ctx.options
  const registeredAt = clientIssuer ?? query.previousIssuer
  if (registeredAt !== undefined && registeredAt !== issuer) {
    const fix = 'its clientId, clientSecret and clientIssuer'
    throw issuerChangedError(issuer, `the configured client is of ${registeredAt}`, fix)
  }
  return { source: 'configured', issuer, clientId, ...(clientSecret !== undefined && { clientSecret }) }
}

function toIdentity(registration: Registration): ClientIdentity {
  const { redirectUri: _, dynamic: __, ...client } = registration
  return { source: 'registered', ...client, registration }
}

function mismatch(ctx: ClientContext, stored: Registration, issuer: string, query: IdentityQuery): string | undefined {
  if (stored.issuer !== issuer) return 'it is for another authorization server'
  if (stored.clientId === query.refusedClientId) return 'the authorization server no longer accepts it'
  if (!query.withoutRedirect && stored.redirectUri !== ctx.options.redirectUri) return 'it is for another redirect URI'
  const expiresAt = stored.clientSecretExpiresAt ?? 0
  if (expiresAt > 0 && expiresAt * 1000 <= ctx.now()) return 'its secret expired'
  return undefined
}

function findReusable(ctx: ClientContext, issuer: string, query: IdentityQuery): Registration | undefined {
  for (const registration of [query.registration, ctx.options.dynamicClientRegistration.registration]) {
    if (!registration) continue
    const why = mismatch(ctx, registration, issuer, query)
    if (why === undefined) return registration
    ctx.emit('registration-dropped', { issuer: registration.issuer, clientId: registration.clientId, why })
  }
  return undefined
}

function noClientError(ctx: ClientContext, server: ServerInfo): AuthError {
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
    fix: CLIENT_ID_FIX,
  })
}

/** Returns undefined if a new registration is required. Throws `issuer_changed`. */
export function knownClient(ctx: ClientContext, server: ServerInfo, query: IdentityQuery): ClientIdentity | undefined {
  const { clientId, clientMetadataDocumentUri, grant } = ctx.options
  const { issuer } = server
  ctx.secrets.add(ctx.options.clientSecret, query.registration?.clientSecret)
  if (clientId) return configuredClient(ctx, clientId, issuer, query)
  if (clientMetadataDocumentUri !== undefined && server.clientIdMetadataDocumentSupported) {
    return { source: 'metadata-document', issuer, clientId: clientMetadataDocumentUri }
  }
  const registration = isUnattended(grant) ? undefined : findReusable(ctx, issuer, query)
  if (!registration) return undefined
  ctx.secrets.add(registration.clientSecret)
  return toIdentity(registration)
}

export async function identifyClient(
  ctx: ClientContext,
  server: ServerInfo,
  query: IdentityQuery,
  signal: AbortSignal,
): Promise<ClientIdentity> {
  const known = knownClient(ctx, server, query)
  if (known) return known
  const { dynamicClientRegistration, grant } = ctx.options
  const canRegister = dynamicClientRegistration.enabled && !isUnattended(grant)
  if (!canRegister || server.registrationEndpoint === undefined) throw noClientError(ctx, server)
  return toIdentity(await registerClient(ctx, server, query.scope, signal))
}

export const isClientRefused = (thrown: unknown): thrown is AuthError =>
  AuthError.is(thrown) && (thrown.code === 'invalid_client' || thrown.code === 'unauthorized_client')
