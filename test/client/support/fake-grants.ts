// The token endpoint of a fake authorization server, with the checks of each grant.
import { createHash, randomBytes } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { checkProof } from './dpop-checks.ts'
import type { FakeClient } from './fake-clients.ts'
import type { AuthorizationServerSettings } from './fake-settings.ts'
import type { Family, Grant, TokenBook } from './fake-tokens.ts'
import type { RecordedRequest, Reply } from './recording-server.ts'

/** What an authorization code stands for. */
export interface IssuedCode {
  readonly clientId: string
  readonly redirectUri: string
  readonly challenge: string
  readonly scope: string | undefined
  readonly resource: string | undefined
  family?: Family
}

export interface DeviceLogin {
  readonly clientId: string
  readonly userCode: string
  readonly scope: string | undefined
  readonly resource: string | undefined
  status: 'pending' | 'approved' | 'denied' | 'expired'
}

/** What the endpoint shares with the rest of its server. */
export interface TokenDesk {
  readonly settings: AuthorizationServerSettings
  readonly tokenEndpoint: string
  readonly book: TokenBook
  readonly codes: Map<string, IssuedCode>
  readonly devices: Map<string, DeviceLogin>
  /** ID tokens that the identity provider issued. */
  readonly idTokens: ReadonlySet<string>
  readonly assertionKey: string
  readonly usedProofs: Set<string>
  readonly nonce: string
  keep(secret: string): string
}

class Refusal extends Error {}
const refuse = (error: string): never => {
  throw new Refusal(error)
}

const text = (form: URLSearchParams, name: string): string | undefined => form.get(name) ?? undefined

interface Asked {
  readonly form: URLSearchParams
  readonly client: FakeClient
  readonly jkt: string | undefined
}

function answer(desk: TokenDesk, family: Family, more: { scope?: string | undefined; refresh?: boolean } = {}): Reply {
  const { settings, book } = desk
  const { scope = family.grant.scope, refresh = true } = more
  const { token } = book.access(family, scope)
  const renew = refresh && (family.current === undefined || settings.refreshTokens === 'rotating')
  const body = {
    access_token: token,
    token_type: family.grant.jkt === undefined ? 'Bearer' : 'DPoP',
    expires_in: settings.tokenLifetime,
    scope,
    ...(renew && settings.refreshTokens !== 'none' && { refresh_token: book.refresh(family) }),
    ...settings.tokenAnswer,
  }
  return { status: settings.tokenStatus, headers: { 'Cache-Control': 'no-store' }, body }
}

function open({ settings, book }: TokenDesk, { client, jkt }: Asked, grant: Partial<Grant>): Family {
  const { resources } = settings
  if (resources && grant.resource !== undefined && !resources.includes(grant.resource)) refuse('invalid_target')
  const scope = settings.grantScope(grant.scope)
  return book.open({ subject: 'ann', resource: undefined, ...grant, clientId: client.client_id, scope, jkt })
}

function redeemCode(desk: TokenDesk, asked: Asked): Reply {
  const { form, client } = asked
  const code = desk.codes.get(form.get('code') ?? '') ?? refuse('invalid_grant')
  if (code.family) {
    // RFC 6749 §4.1.2: a code that is used twice takes its tokens with it.
    desk.book.end(code.family)
    refuse('invalid_grant')
  }
  const challenge = createHash('sha256')
    .update(desk.keep(form.get('code_verifier') ?? ''))
    .digest('base64url')
  if (challenge !== code.challenge) refuse('invalid_grant')
  if (form.get('redirect_uri') !== code.redirectUri || client.client_id !== code.clientId) refuse('invalid_grant')
  if (form.has('resource') && form.get('resource') !== code.resource) refuse('invalid_target')
  code.family = open(desk, asked, code)
  return answer(desk, code.family)
}

function refresh(desk: TokenDesk, { form, client, jkt }: Asked): Reply {
  const family = desk.book.redeem(form.get('refresh_token') ?? '') ?? refuse('invalid_grant')
  const { grant } = family
  if (grant.clientId !== client.client_id || grant.jkt !== jkt) refuse('invalid_grant')
  if (form.has('resource') && form.get('resource') !== grant.resource) refuse('invalid_target')
  return answer(desk, family, { scope: text(form, 'scope') })
}

function clientCredentials(desk: TokenDesk, asked: Asked): Reply {
  const { form, client } = asked
  if (client.client_secret === undefined && client.publicKey === undefined) refuse('unauthorized_client')
  const grant = { subject: client.client_id, scope: text(form, 'scope'), resource: text(form, 'resource') }
  return answer(desk, open(desk, asked, grant), { refresh: false })
}

function jwtBearer(desk: TokenDesk, asked: Asked): Reply {
  const { settings } = desk
  const assertion = desk.keep(asked.form.get('assertion') ?? '')
  const claims = settings.trusts.map(idp => idp.readAssertion(assertion)).find(found => found !== undefined)
  if (claims === undefined || claims['aud'] !== settings.issuer) return refuse('invalid_grant')
  if (claims['client_id'] !== undefined && claims['client_id'] !== asked.client.client_id) refuse('invalid_grant')
  const resource = typeof claims['resource'] === 'string' ? claims['resource'] : text(asked.form, 'resource')
  const grant = { subject: String(claims['sub']), scope: text(asked.form, 'scope'), resource }
  return answer(desk, open(desk, asked, grant), { refresh: false })
}

const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag'

/** RFC 8693 at an identity provider: an ID token for an ID-JAG. */
function exchange(desk: TokenDesk, { form, client }: Asked): Reply {
  if (form.get('requested_token_type') !== ID_JAG) refuse('invalid_request')
  if (form.get('subject_token_type') !== 'urn:ietf:params:oauth:token-type:id_token') refuse('invalid_request')
  if (!desk.idTokens.has(form.get('subject_token') ?? '')) refuse('invalid_grant')
  const [audience, resource] = [form.get('audience'), form.get('resource')]
  if (audience === null || resource === null) return refuse('invalid_target')
  const claims = { resource, client_id: client.client_id, scope: text(form, 'scope') }
  const options = { audience, subject: 'ann', issuer: desk.settings.issuer, expiresIn: 300 }
  const assertion = desk.keep(
    jwt.sign(claims, desk.assertionKey, { ...options, header: { alg: 'HS256', typ: 'oauth-id-jag+jwt' } }),
  )
  const body = { access_token: assertion, issued_token_type: ID_JAG, token_type: 'N_A', expires_in: 300 }
  return { status: 200, body: { ...body, ...desk.settings.tokenAnswer } }
}

function poll(desk: TokenDesk, asked: Asked): Reply {
  const login = desk.devices.get(asked.form.get('device_code') ?? '')
  if (login === undefined || login.clientId !== asked.client.client_id) return refuse('invalid_grant')
  if (desk.settings.deviceSlowDowns > 0) {
    desk.settings.deviceSlowDowns--
    return refuse('slow_down')
  }
  if (login.status === 'pending') return refuse('authorization_pending')
  if (login.status === 'denied') return refuse('access_denied')
  if (login.status === 'expired') return refuse('expired_token')
  desk.devices.delete(asked.form.get('device_code') ?? '')
  return answer(desk, open(desk, asked, { scope: login.scope, resource: login.resource }))
}

const GRANTS: Readonly<Record<string, (desk: TokenDesk, asked: Asked) => Reply>> = {
  authorization_code: redeemCode,
  refresh_token: refresh,
  client_credentials: clientCredentials,
  'urn:ietf:params:oauth:grant-type:jwt-bearer': jwtBearer,
  'urn:ietf:params:oauth:grant-type:token-exchange': exchange,
  'urn:ietf:params:oauth:grant-type:device_code': poll,
}

/** The thumbprint of the proof's key, undefined without DPoP, or the reply that refuses. */
function proofOf(desk: TokenDesk, request: RecordedRequest): string | undefined | Reply {
  const { dpop, dpopNonce } = desk.settings
  if (dpop === 'off' || (dpop === 'allowed' && request.headers['dpop'] === undefined)) return undefined
  const nonce = dpopNonce ? desk.nonce : undefined
  const verdict = checkProof(request, { target: desk.tokenEndpoint, nonce, used: desk.usedProofs })
  if ('jkt' in verdict) return verdict.jkt
  const headers = nonce === undefined ? {} : { 'DPoP-Nonce': nonce }
  return { status: 400, headers, body: { error: verdict.error, error_description: verdict.why } }
}

/** Answers a request to the token endpoint; `client` is who it proved to be. */
export function answerTokenRequest(desk: TokenDesk, request: RecordedRequest, client: FakeClient): Reply {
  const jkt = proofOf(desk, request)
  if (typeof jkt === 'object') return jkt
  const grant = GRANTS[request.form.get('grant_type') ?? '']
  try {
    return grant ? grant(desk, { form: request.form, client, jkt }) : refuse('unsupported_grant_type')
  } catch (thrown) {
    if (thrown instanceof Refusal) return { status: 400, body: { error: thrown.message } }
    throw thrown
  }
}

/** RFC 8628 §3.2. */
export function openDeviceLogin(desk: TokenDesk, { form }: RecordedRequest, clientId: string, url: string): Reply {
  const deviceCode = desk.keep(`dc-${randomBytes(24).toString('base64url')}`)
  const userCode = randomBytes(4).toString('hex').toUpperCase()
  const [scope, resource] = [text(form, 'scope'), text(form, 'resource')]
  desk.devices.set(deviceCode, { clientId, userCode, scope, resource, status: 'pending' })
  const page = `${url}/device`
  const interval = desk.settings.deviceInterval
  const codes = { device_code: deviceCode, user_code: userCode, expires_in: 600, interval }
  const body = { ...codes, verification_uri: page, verification_uri_complete: `${page}?user_code=${userCode}` }
  return { status: 200, body }
}
