// Dynamic client registration (RFC 7591): one POST that makes this client known to one authorization server.
//
// oauth4webapi is not used here: it takes 201 alone, and refuses a secret without `client_secret_expires_at`, which
// real servers leave out.

import type { Registration } from './cache/types.ts'
import type { ClientContext } from './context.ts'
import { describeAnswer } from './describe-answer.ts'
import { AuthError, RegistrationRejectedError } from './errors.ts'
import type { HttpAnswer } from './http.ts'
import { isObject, isVisible, readSeconds, readText, saidIn, showText } from './json.ts'
import type { RegistrationResponse } from './options.ts'
import type { ServerInfo } from './parties.ts'
import { isLoopback } from './resolve-options.ts'
import { withoutSecrets } from './secrets.ts'

/** What a person reads who is asked to agree, unless the program says its own name. */
const CLIENT_NAME = 'MCP client (mcp-host)'

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

/** A client on a person's machine: a loopback redirect, one of a private-use scheme, or none at all. */
function isNative(redirectUri: string | undefined): boolean {
  if (redirectUri === undefined) return true
  const { protocol, hostname } = new URL(redirectUri)
  return (protocol !== 'https:' && protocol !== 'http:') || isLoopback(hostname)
}

/** How the client will authenticate: without a secret where that is possible, else by the first method listed we can. */
function chooseMethod({ options }: ClientContext, server: ServerInfo, native: boolean): string {
  if (options.tokenEndpointAuthMethod !== undefined) return options.tokenEndpointAuthMethod
  const listed = server.tokenEndpointAuthMethodsSupported
  // RFC 8414 §2: a server that lists nothing takes client_secret_basic.
  if (listed === undefined) return native ? 'none' : 'client_secret_basic'
  const able = ['none', 'client_secret_basic', 'client_secret_post']
  if (options.privateKey !== undefined) able.push('private_key_jwt')
  const method = able.find(one => listed.includes(one))
  if (method !== undefined) return method
  throw new AuthError(`${server.issuer} takes none of this client's authentication methods, but ${listed.join(', ')}`, {
    code: 'client_information_required',
    fix: 'register a client with it by hand and set clientId, with privateKey for private_key_jwt',
  })
}

/** What is sent: ours, then what the caller adds or replaces. */
function clientMetadata(ctx: ClientContext, server: ServerInfo, scope: string | undefined): Record<string, unknown> {
  const { redirectUri, dynamicClientRegistration, grant } = ctx.options
  const { clientName = CLIENT_NAME, clientUri, applicationType, metadata } = dynamicClientRegistration
  const native = isNative(redirectUri)
  const withBrowser = grant.type !== 'device'
  return {
    ...(withBrowser && { redirect_uris: [redirectUri], response_types: ['code'] }),
    grant_types: [withBrowser ? 'authorization_code' : DEVICE_GRANT, 'refresh_token'],
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
  invalid_client_metadata: 'correct dynamicClientRegistration (its metadata wins over what is sent by default)',
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
  const said = saidIn(answer)
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

/** The server names another authorization server than the one that a credential is from. */
export const issuerChanged = (issuer: string, what: string, names: string): AuthError =>
  new AuthError(`the server's authorization server is ${issuer}, but ${what}`, {
    code: 'issuer_changed',
    fix: `if that is right, register a client there and set ${names}`,
  })

/** The answer as a registration; undefined where it is none. */
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
  const method = readText(json['token_endpoint_auth_method'])
  const { redirectUri } = ctx.options
  return {
    issuer: server.issuer,
    clientId,
    ...(clientSecret !== undefined && { clientSecret }),
    ...(clientSecret !== undefined && clientSecretExpiresAt !== undefined && { clientSecretExpiresAt }),
    ...(method !== undefined && { tokenEndpointAuthMethod: method }),
    ...(redirectUri !== undefined && { redirectUri }),
    dynamic: true,
  }
}

/** Tells the caller, and waits: they may have to keep it before anybody logs in with it. */
async function tell(ctx: ClientContext, made: Registration, json: unknown, signal: AbortSignal): Promise<void> {
  const { responseDelegate } = ctx.options.dynamicClientRegistration
  if (!responseDelegate) return
  const issuedAt = isObject(json) ? readSeconds(json['client_id_issued_at']) : undefined
  const response: RegistrationResponse = {
    issuer: made.issuer,
    clientId: made.clientId,
    clientSecret: made.clientSecret,
    tokenEndpointAuthMethod: made.tokenEndpointAuthMethod,
    clientIdIssuedAt: issuedAt,
    clientSecretExpiresAt: made.clientSecretExpiresAt,
  }
  try {
    await responseDelegate(response, { signal })
  } catch (cause) {
    throw new AuthError('dynamicClientRegistration.responseDelegate threw, so the login ended', {
      code: 'registration_callback_failed',
      fix: 'see the cause; the registration was not kept, and the next attempt makes another',
      cause,
    })
  }
}

/**
 * Registers the client. Throws a RegistrationRejectedError where the server refuses; nothing is kept then, so that the
 * caller can try again with another redirect URI or application type.
 */
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
  await tell(ctx, made, answer.json, signal)
  ctx.emit('registered', { issuer: made.issuer, clientId: made.clientId })
  return made
}
