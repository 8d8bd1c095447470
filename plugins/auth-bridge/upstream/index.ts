// Creates the identity provider client from the options.
import type { Logger } from '../../../core/plugin.ts'
import type { FilledProvider } from '../options.ts'
import {
  type Connection,
  checking,
  checkSignature,
  createConnector,
  exchange,
  refresh,
  settleAnswer,
  through,
  tokensOf,
} from './connection.ts'
import { readPerson, revoke } from './person.ts'
import { settle } from './settings.ts'
import {
  type LoginRequest,
  type LoginUnderWay,
  refusalError,
  type SignedIn,
  type Upstream,
  UpstreamError,
} from './upstream.ts'

const MAX_HINT = 256

export function scopesOf({ settings, server }: Connection): readonly string[] {
  const { scopes, kind } = settings
  if (scopes) return scopes
  const listed: readonly unknown[] = Array.isArray(server.scopes_supported) ? server.scopes_supported : []
  const offline = kind.offline === true || (kind.offline === 'listed' && listed.includes('offline_access'))
  return [
    ...kind.scopes,
    ...kind.listedScopes.filter(scope => listed.includes(scope)),
    ...(offline ? ['offline_access'] : []),
  ]
}

function promptOf({ settings: { kind, type } }: Connection, scopes: readonly string[], prompt: LoginRequest['prompt']) {
  const consent = kind.consents === 'always' || (kind.consents === 'offline' && scopes.includes('offline_access'))
  // Google does not support `login`; account selection is the closest prompt.
  const wanted = type === 'google' && prompt === 'login' ? 'select_account' : prompt
  return [wanted, consent ? 'consent' : undefined].filter(value => value !== undefined).join(' ')
}

export async function startLogin(connection: Connection, request: LoginRequest) {
  const { oauth, settings, server } = connection
  const { redirectUri, state, loginHint, prompt } = request
  const codeVerifier = oauth.generateRandomCodeVerifier()
  const underWay: LoginUnderWay = settings.kind.openid
    ? { codeVerifier, nonce: oauth.generateRandomNonce() }
    : { codeVerifier }
  const scopes = scopesOf(connection)
  const prompts = promptOf(connection, scopes, prompt)
  const hint = loginHint !== undefined && loginHint !== '' && loginHint.length <= MAX_HINT ? loginHint : undefined
  const url = new URL(server.authorization_endpoint)
  const parameters = {
    ...(prompts !== '' && { prompt: prompts }),
    ...settings.parameters,
    ...(prompt !== undefined && { prompt: prompts }),
    ...(hint !== undefined && { [settings.type === 'github' ? 'login' : 'login_hint']: hint }),
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    response_type: 'code',
    client_id: settings.clientId,
    redirect_uri: redirectUri,
    state,
    ...(underWay.nonce !== undefined && { nonce: underWay.nonce }),
    code_challenge: await oauth.calculatePKCECodeChallenge(codeVerifier),
    code_challenge_method: 'S256',
  }
  // An empty parameter removes a default, such as `prompt`.
  for (const [name, value] of Object.entries(parameters)) if (value !== '') url.searchParams.set(name, value)
  return { url: url.href, underWay }
}

/** Checks the state, the issuer (RFC 9207) and repeated parameters of a callback. */
function readCallback({ oauth, settings, server, client }: Connection, callback: URL, state: string): URLSearchParams {
  const parameters = new URLSearchParams(callback.searchParams)
  // Plain OAuth has no issuer, and there is one provider, so no mix-up is possible.
  if (!settings.kind.openid) parameters.delete('iss')
  try {
    return oauth.validateAuthResponse(server, client, parameters, state)
  } catch (thrown) {
    if (!(thrown instanceof oauth.AuthorizationResponseError)) throw thrown
    const { error: code, error_description: description } = thrown
    const otherwise = ownError.test(code) ? 'misconfigured' : 'refused'
    throw refusalError(
      { code, description },
      { type: settings.type, what: 'the provider', secrets: [state], otherwise },
    )
  }
}

const ownError = /^(?:invalid_|unauthorized_client$|unsupported_|redirect_uri|request_|admin_|application_)/

export async function finish(
  connection: Connection,
  callback: URL,
  underWay: LoginUnderWay,
  { redirectUri, state }: Pick<LoginRequest, 'redirectUri' | 'state'>,
): Promise<SignedIn> {
  const { oauth, server, client, authenticate, settings } = connection
  const parameters = await checking('the callback', () => readCallback(connection, callback, state))
  const { codeVerifier, nonce } = underWay
  if (settings.kind.openid && nonce === undefined)
    throw new UpstreamError('untrusted', 'the callback belongs to a login of another kind')
  const options = through(connection)
  const start = Date.now()
  const sent = await checking('the code', () =>
    oauth.authorizationCodeGrantRequest(server, client, authenticate, parameters, redirectUri, codeVerifier, options),
  )
  const secrets = [parameters.get('code') ?? undefined, codeVerifier, state]
  const response = await settleAnswer(connection, sent, { grant: 'authorization_code', secrets })
  const { tokens, idToken } = await checking('the tokens of the provider', async () => {
    const expected = settings.kind.openid && nonce !== undefined ? { expectedNonce: nonce, requireIdToken: true } : {}
    const answer = await oauth.processAuthorizationCodeResponse(server, client, response, expected)
    if (settings.kind.openid) await checkSignature(connection, response)
    const wanted = scopesOf(connection)
    return { tokens: tokensOf(connection, answer, { start, wanted }), idToken: oauth.getValidatedIdTokenClaims(answer) }
  })
  return readPerson(connection, tokens, { idToken })
}

const another = () => new UpstreamError('refused', 'the provider returned another user than the one who signed in')

async function read(connection: Connection, last: SignedIn): Promise<SignedIn> {
  if (last.tokens.refreshToken === undefined) {
    return readPerson(connection, last.tokens, { last, mustAnswer: true })
  }
  const { tokens, idToken } = await refresh(connection, last.tokens)
  const { claims } = last.person
  if (idToken && (idToken['sub'] !== claims['sub'] || idToken['iss'] !== claims['iss'])) throw another()
  try {
    return await readPerson(connection, tokens, { last, idToken })
  } catch (error) {
    if (!(error instanceof UpstreamError) || error.fault !== 'unavailable') throw error
    // The login continues with the new token, because the old one no longer works.
    connection.log.warn(
      { code: 'MH2144', err: error },
      'The provider renewed a login but did not return the user: the previous user data is kept',
    )
    return { person: last.person, tokens }
  }
}

/** Merges a renewal. An ID token replaces groups and roles; userinfo keeps missing data unchanged. */
async function renew(connection: Connection, last: SignedIn): Promise<SignedIn> {
  const now = await read(connection, last)
  if (now.person.subject !== last.person.subject) throw another()
  const { name } = { ...last.person, ...now.person }
  return { ...now, person: { ...now.person, ...(name !== undefined && { name }) } }
}

interface UpstreamSettings {
  readonly at: readonly (string | number)[]
  readonly log: Logger
  readonly timeout?: number
}

const NO_REFRESH =
  'without offline_access the provider issues no refresh token: users sign in again when its token expires'

export function createUpstream(provider: FilledProvider, { at, log, timeout }: UpstreamSettings): Upstream {
  const settings = settle(provider, at)
  const { scopes, kind, label } = settings
  if (kind.offline === true && scopes && !scopes.includes('offline_access'))
    log.warn({ code: 'MH2145', scopes }, NO_REFRESH)
  const connect = createConnector(settings, log, timeout)
  const connected =
    <Given extends unknown[], Value>(act: (connection: Connection, ...given: Given) => Promise<Value>) =>
    async (...given: Given): Promise<Value> =>
      act(await connect(), ...given)
  return {
    label,
    startLogin: connected(startLogin),
    finish: connected(finish),
    renew: connected(renew),
    exchange: connected(exchange),
    revoke: connected(revoke),
  }
}
