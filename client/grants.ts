// Grants other than the authorization code: client credentials, JWT assertion (RFC 7523), ID-JAG and device code (RFC 8628).
import { chooseMethod, createClientAuth } from './client-auth.ts'
import type { ClientContext } from './context.ts'
import { discoverServer, serverFromTokenEndpoint } from './discovery.ts'
import type { DPoPSigner } from './dpop.ts'
import { AuthError, callOption } from './errors.ts'
import { sleep } from './http.ts'
import type { Grant, IdentityProvider, UserCodeInfo } from './options.ts'
import type { ClientIdentity, ServerInfo } from './stores.ts'
import { readSeconds, readText } from './text.ts'
import {
  mayHaveGranted,
  readSuccess,
  requestGrant,
  requestToken,
  sendForm,
  type TokenResult,
} from './token-endpoint.ts'

interface GrantSpec {
  readonly server: ServerInfo
  readonly client: ClientIdentity
  readonly resource: string | undefined
  readonly scope: string | undefined
  readonly dpop?: DPoPSigner | undefined
}

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

async function callProvider(name: string, provide: () => Promise<string>): Promise<string> {
  const spec = { code: 'assertion_failed', fix: `check the function ${name}` }
  const value = await callOption(`${name} threw`, spec, provide)
  if (typeof value !== 'string' || value === '') throw new AuthError(`${name} returned no text`, spec)
  return value
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
      fix: 'set the issuer of the identity provider, or its token endpoint',
    })
  }
  return serverFromTokenEndpoint(issuer ?? tokenEndpoint, tokenEndpoint)
}

function createProviderContext(ctx: ClientContext, idp: IdentityProvider, provider: ServerInfo): ClientContext {
  const { clientSecret: secret } = idp
  ctx.secrets.add(secret)
  const listed = provider.tokenEndpointAuthMethodsSupported
  const input = { registered: undefined, explicit: undefined, hasKey: false, hasSecret: secret !== undefined, listed }
  const method = chooseMethod(input) ?? 'client_secret_basic'
  const clientAuthentication = createClientAuth(method, { secret, key: undefined }, ctx.secrets)
  if (!clientAuthentication) throw new TypeError(`cannot authenticate by ${method}`)
  return { ...ctx, options: { ...ctx.options, clientAuthentication } }
}

async function exchangeIdToken(
  ctx: ClientContext,
  { idp, idToken }: Extract<Grant, { readonly type: 'enterprise' }>,
  spec: GrantSpec,
  signal: AbortSignal,
) {
  const provider = await findProvider(ctx, idp, signal)
  const client: ClientIdentity = { source: 'configured', issuer: provider.issuer, clientId: idp.clientId }
  const parameters = {
    requested_token_type: ID_JAG,
    audience: spec.server.issuer,
    resource: spec.resource,
    scope: spec.scope,
    subject_token: await callProvider('grant.idToken', idToken),
    subject_token_type: ID_TOKEN,
  }
  const request = { server: provider, client, grantType: TOKEN_EXCHANGE, parameters }
  const json = await requestGrant(createProviderContext(ctx, idp, provider), request, signal)
  const assertion = readText(json['access_token'])
  // An ID-JAG is no access token; RFC 8693 §2.2.1 requires token_type `N_A`.
  if (assertion === undefined || json['issued_token_type'] !== ID_JAG) {
    throw new AuthError(`the identity provider ${provider.issuer} issued no ID-JAG for the ID token`, {
      code: 'malformed_response',
      fix: 'have enterprise-managed authorization turned on for this client there',
    })
  }
  ctx.secrets.add(assertion)
  return assertion
}

export const isUnattended = ({ type }: Grant): boolean => type !== 'authorization_code' && type !== 'device'

/** Requests a token without a user. An assertion is sent once, or again with a new one for a DPoP nonce. */
export async function requestByGrant(ctx: ClientContext, spec: GrantSpec, signal: AbortSignal): Promise<TokenResult> {
  const { grant } = ctx.options
  const { server, client, resource, scope, dpop } = spec
  const request = { server, client, dpop }
  if (grant.type === 'client_credentials') {
    const parameters = { scope, resource }
    return requestToken(ctx, { ...request, grantType: 'client_credentials', parameters }, signal)
  }
  if (grant.type === 'jwt_bearer') {
    const { issuer, tokenEndpoint = issuer } = server
    const provide = () => grant.assertion({ issuer, tokenEndpoint, resource, signal })
    const parameters = async () => ({ assertion: await callProvider('grant.assertion', provide), scope, resource })
    return requestToken(ctx, { ...request, grantType: JWT_BEARER, parameters, sendOnce: true }, signal)
  }
  if (grant.type !== 'enterprise') throw new TypeError(`the grant ${grant.type} requires a login by a user`)
  const parameters = { assertion: await exchangeIdToken(ctx, grant, spec, signal), scope, resource }
  return requestToken(ctx, { ...request, grantType: JWT_BEARER, parameters }, signal)
}

export const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'

/** Default polling interval and `slow_down` increment, seconds (RFC 8628 §3.2, §3.5). */
const INTERVAL = 5
const SLOW_DOWN = 5

const MIN_INTERVAL = 0.1

const MAX_FAILURES = 8

/** Code lifetime if the server omits it, seconds. */
const LIFETIME = 600

export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>

async function requestCode(ctx: ClientContext, spec: GrantSpec, signal: AbortSignal) {
  const { server, client, resource, scope } = spec
  const { issuer, deviceAuthorizationEndpoint } = server
  if (deviceAuthorizationEndpoint === undefined) {
    throw new AuthError(`${issuer} does not support login by device code`, {
      code: 'invalid_server_metadata',
      fix: 'use another grant, such as authorization_code with a redirectUri',
    })
  }
  const parameters = { scope, resource }
  const form = { server, client, parameters, endpoint: deviceAuthorizationEndpoint }
  const response = await sendForm(ctx, { ...form, label: 'The device authorization endpoint' }, signal)
  return readCode(ctx, spec, readSuccess(ctx, { server, client, grantType: DEVICE_CODE }, response))
}

function readCode(ctx: ClientContext, { server }: GrantSpec, json: Record<string, unknown>) {
  const deviceCode = readText(json['device_code'])
  const userCode = readText(json['user_code'])
  const verificationUri = readText(json['verification_uri']) ?? readText(json['verification_url'])
  ctx.secrets.add(deviceCode)
  if (deviceCode === undefined || userCode === undefined || verificationUri === undefined) {
    throw new AuthError(`the device response of ${server.issuer} has no device_code, user_code or verification_uri`, {
      code: 'malformed_response',
      fix: 'its operator must send them (RFC 8628 §3.2)',
    })
  }
  const verificationUriComplete = readText(json['verification_uri_complete'])
  const expiresIn = readSeconds(json['expires_in']) ?? LIFETIME
  const interval = Math.max(readSeconds(json['interval']) ?? INTERVAL, MIN_INTERVAL)
  return { deviceCode, info: { userCode, verificationUri, verificationUriComplete, expiresIn }, interval }
}

async function showUserCode(ctx: ClientContext, info: UserCodeInfo): Promise<void> {
  const { grant } = ctx.options
  if (grant.type !== 'device') throw new TypeError(`the grant is ${grant.type}`)
  const { userCode, verificationUri, expiresIn } = info
  ctx.emit('user-code', { userCode, verificationUri, expiresIn })
  const spec = { code: 'login_failed', fix: 'see `cause`: grant.onUserCode failed' }
  await callOption('cannot show the user code', spec, () => grant.onUserCode(info))
}

function nextInterval(thrown: unknown, interval: number): number | undefined {
  if (!AuthError.is(thrown)) return undefined
  if (thrown.code === 'authorization_pending') return interval
  if (thrown.code === 'slow_down') return interval + SLOW_DOWN
  // Backs off (RFC 8628 §3.5). A success response has used up the code, even if its tokens were lost.
  return thrown.retryable && !mayHaveGranted(thrown) ? interval * 2 : undefined
}

const isProgress = (thrown: unknown): boolean =>
  AuthError.is(thrown) && (thrown.code === 'authorization_pending' || thrown.code === 'slow_down')

export async function requestByDevice(
  ctx: ClientContext,
  spec: GrantSpec,
  signal: AbortSignal,
  sleepFor: Sleep = sleep,
): Promise<TokenResult> {
  const { server, client, resource, dpop } = spec
  const code = await requestCode(ctx, spec, signal)
  const end = ctx.now() + code.info.expiresIn * 1000
  await showUserCode(ctx, code.info)
  const parameters = { device_code: code.deviceCode, resource }
  const request = { server, client, grantType: DEVICE_CODE, parameters, dpop, sendOnce: true }
  let interval = code.interval
  let failures = 0
  for (;;) {
    await sleepFor(Math.min(interval * 1000, Math.max(0, end - ctx.now())), signal)
    if (ctx.now() >= end) {
      throw new AuthError(`the code was not entered within ${code.info.expiresIn} s`, {
        code: 'expired_token',
        fix: 'start the login again',
      })
    }
    try {
      return await requestToken(ctx, request, signal)
    } catch (thrown) {
      const next = nextInterval(thrown, interval)
      failures = isProgress(thrown) ? 0 : failures + 1
      if (next === undefined || failures >= MAX_FAILURES) throw thrown
      interval = next
    }
  }
}
