// Grants without a user: client credentials, JWT assertion (RFC 7523) and enterprise-managed authorization (ID-JAG).

import { authenticateBy, chooseMethod } from './client-auth.ts'
import type { ClientContext } from './context.ts'
import { type Authority, discoverServer } from './discovery.ts'
import type { DPoPSigner } from './dpop.ts'
import { AuthError } from './errors.ts'
import type { Grant, IdentityProvider } from './options.ts'
import type { ClientIdentity, ServerInfo } from './parties.ts'
import { readText } from './text.ts'
import { requestGrant, requestToken, type TokenAnswer } from './token-endpoint.ts'

export interface GrantAbout {
  readonly server: ServerInfo
  readonly client: ClientIdentity
  readonly resource: string | undefined
  readonly scope: string | undefined
  readonly dpop?: DPoPSigner | undefined
}

export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

export async function askFor(name: string, ask: () => Promise<string>): Promise<string> {
  const fail = (what: string, cause?: unknown) =>
    new AuthError(`${name} ${what}`, { code: 'assertion_failed', fix: `check the function ${name}`, cause })
  let given: string
  try {
    given = await ask()
  } catch (cause) {
    throw AuthError.is(cause) ? cause : fail('threw', cause)
  }
  if (typeof given !== 'string' || given === '') throw fail('gave nothing')
  return given
}

/** No retries, except once with a new assertion if the server requires a DPoP nonce. */
export async function requestByJwtBearer(
  ctx: ClientContext,
  { server, client, resource, scope, dpop }: GrantAbout,
  signal: AbortSignal,
): Promise<TokenAnswer> {
  const { grant } = ctx.options
  if (grant.type !== 'jwt_bearer') throw new TypeError(`the grant is ${grant.type}`)
  const { issuer, tokenEndpoint = issuer } = server
  const ask = () => grant.assertion({ issuer, tokenEndpoint, resource, signal })
  const parameters = async () => ({ assertion: await askFor('grant.assertion', ask), scope, resource })
  return requestToken(ctx, { server, client, grantType: JWT_BEARER, parameters, dpop, sendOnce: true }, signal)
}

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token'
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag'

async function findProvider(ctx: ClientContext, idp: IdentityProvider, signal: AbortSignal): Promise<ServerInfo> {
  const { issuer, tokenEndpoint } = idp
  if (tokenEndpoint === undefined && issuer !== undefined) return discoverServer(ctx, issuer, false, signal)
  if (tokenEndpoint === undefined) {
    throw new AuthError('grant.idp has neither issuer nor tokenEndpoint', {
      code: 'invalid_options',
      fix: 'give the issuer of the identity provider, or its token endpoint',
    })
  }
  const listed = issuer ?? tokenEndpoint
  return {
    listed,
    issuer: listed,
    tokenEndpoint,
    issParameterSupported: false,
    clientIdMetadataDocumentSupported: false,
    pkceS256: false,
    oidc: false,
    legacy: false,
    metadataUrl: undefined,
  }
}

function contextAt(ctx: ClientContext, idp: IdentityProvider, provider: ServerInfo): ClientContext {
  const { clientSecret: secret } = idp
  ctx.secrets.add(secret)
  const listed = provider.tokenEndpointAuthMethodsSupported
  const facts = { registered: undefined, explicit: undefined, hasKey: false, hasSecret: secret !== undefined, listed }
  const method = chooseMethod(facts) ?? 'client_secret_basic'
  const clientAuthentication = authenticateBy(method, { secret, key: undefined }, ctx.secrets)
  if (!clientAuthentication) throw new TypeError(`no way to authenticate by ${method}`)
  return { ...ctx, options: { ...ctx.options, clientAuthentication } }
}

async function exchange(ctx: ClientContext, about: GrantAbout, signal: AbortSignal): Promise<string> {
  const { grant } = ctx.options
  if (grant.type !== 'enterprise') throw new TypeError(`the grant is ${grant.type}`)
  const { idp } = grant
  const provider = await findProvider(ctx, idp, signal)
  const client: ClientIdentity = { source: 'configured', issuer: provider.issuer, clientId: idp.clientId }
  const parameters = {
    requested_token_type: ID_JAG,
    audience: about.server.issuer,
    resource: about.resource,
    scope: about.scope,
    subject_token: await askFor('grant.idToken', grant.idToken),
    subject_token_type: ID_TOKEN,
  }
  const request = { server: provider, client, grantType: TOKEN_EXCHANGE, parameters }
  const json = await requestGrant(contextAt(ctx, idp, provider), request, signal)
  const assertion = readText(json['access_token'])
  // An ID-JAG is no access token; RFC 8693 §2.2.1 requires token_type `N_A`.
  if (assertion === undefined || json['issued_token_type'] !== ID_JAG) {
    throw new AuthError(`the identity provider ${provider.issuer} did not give an ID-JAG for the ID token`, {
      code: 'malformed_response',
      fix: 'have enterprise-managed authorization turned on for this client there',
    })
  }
  ctx.secrets.add(assertion)
  return assertion
}

export async function requestByEnterprise(
  ctx: ClientContext,
  about: GrantAbout,
  signal: AbortSignal,
): Promise<TokenAnswer> {
  const { server, client, resource, scope, dpop } = about
  const assertion = await exchange(ctx, about, signal)
  const parameters = { assertion, scope, resource }
  return requestToken(ctx, { server, client, grantType: JWT_BEARER, parameters, dpop }, signal)
}

export function requestByClientCredentials(
  ctx: ClientContext,
  { server, client, resource, scope, dpop }: GrantAbout,
  signal: AbortSignal,
): Promise<TokenAnswer> {
  const grantType = 'client_credentials'
  return requestToken(ctx, { server, client, grantType, parameters: { scope, resource }, dpop }, signal)
}

export const isUnattended = ({ type }: Grant): boolean => type !== 'authorization_code' && type !== 'device'

export function requestByGrant(
  ctx: ClientContext,
  { server, resource }: Authority,
  about: { client: ClientIdentity; scope: string | undefined; dpop: DPoPSigner | undefined },
  signal: AbortSignal,
): Promise<TokenAnswer> {
  const { grant } = ctx.options
  const request = { server, resource, ...about }
  if (grant.type === 'client_credentials') return requestByClientCredentials(ctx, request, signal)
  if (grant.type === 'jwt_bearer') return requestByJwtBearer(ctx, request, signal)
  if (grant.type === 'enterprise') return requestByEnterprise(ctx, request, signal)
  throw new TypeError(`the grant ${grant.type} asks a person`)
}
