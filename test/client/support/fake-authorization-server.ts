// An authorization server in the process of the test, configured by fake-settings.ts. It enforces PKCE, redirect URI,
// single use, client authentication, `resource`, DPoP and rotation.
import { randomBytes } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { createFakeClients, type FakeClient, type FakeClients } from './fake-clients.ts'
import {
  answerTokenRequest,
  type DeviceLogin,
  type IssuedCode,
  openDeviceLogin,
  type TokenDesk,
} from './fake-grants.ts'
import { type AuthorizationServerSettings, defaultSettings } from './fake-settings.ts'
import { createTokenBook, type TokenBook } from './fake-tokens.ts'
import { type RecordedRequest, type RecordingServer, type Reply, startRecordingServer } from './recording-server.ts'

type Claims = Readonly<Record<string, unknown>>

/** Its endpoints are `/authorize`, `/token`, `/register`, `/revoke`, `/device_authorization`, under the origin. */
export interface FakeAuthorizationServer extends RecordingServer {
  /** The issuer's address as a client must name it, unless `settings.issuer` says another. */
  readonly issuer: string
  readonly settings: AuthorizationServerSettings
  readonly tokens: TokenBook
  /** Every secret that it gave or got: tokens, codes, verifiers, client secrets, assertions. */
  readonly secrets: ReadonlySet<string>
  readonly idTokens: Set<string>
  readonly clients: FakeClients
  /** Knows a client beforehand. */
  addClient(client: FakeClient): void
  /** Forgets every client, registered ones too. */
  forgetClients(): void
  /** Asks for another DPoP nonce from now on. */
  newNonce(): void
  decideDevice(userCode: string, decision: 'approved' | 'denied' | 'expired'): void
  /** As an identity provider: an assertion with these claims (`sub`, `aud`). */
  issueAssertion(claims: Claims): string
  /** The claims of a good assertion of its own. */
  readAssertion(assertion: string): Claims | undefined
}

const FORMS: Readonly<Record<string, (path: string) => string>> = {
  oauth: path => `/.well-known/oauth-authorization-server${path}`,
  oidc: path => `/.well-known/openid-configuration${path}`,
  'oidc-append': path => `${path}/.well-known/openid-configuration`,
}

function metadataOf(url: string, settings: AuthorizationServerSettings): Claims {
  const { registration } = settings
  return {
    issuer: settings.issuer,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    ...(registration !== 'off' && { registration_endpoint: `${url}/register` }),
    ...(settings.revocation && { revocation_endpoint: `${url}/revoke` }),
    ...(settings.device && { device_authorization_endpoint: `${url}/device_authorization` }),
    response_types_supported: ['code'],
    code_challenge_methods_supported: settings.codeChallengeMethods,
    scopes_supported: settings.scopesSupported,
    token_endpoint_auth_methods_supported: settings.tokenEndpointAuthMethods,
    authorization_response_iss_parameter_supported: settings.issAdvertised,
    ...(settings.clientMetadataDocuments && { client_id_metadata_document_supported: true }),
    ...(settings.dpop !== 'off' && { dpop_signing_alg_values_supported: ['ES256'] }),
    ...settings.metadata,
  }
}

/** The authorization response (RFC 6749 §4.1.2, RFC 9207), bent as the settings say. */
function redirect(settings: AuthorizationServerSettings, query: URLSearchParams, outcome: [string, string]): Reply {
  const given = (setting: string | null | undefined, usual: string | null | undefined) =>
    setting === undefined ? usual : setting
  const parameters = [
    outcome,
    ['state', given(settings.state, query.get('state'))],
    ['iss', given(settings.iss, settings.issAdvertised ? settings.issuer : undefined)],
    ['error_description', outcome[0] === 'error' ? 'the login was refused' : undefined],
  ].filter((pair): pair is [string, string] => typeof pair[1] === 'string')
  const target = new URL(query.get('redirect_uri') ?? '')
  for (const [name, value] of parameters) {
    target.searchParams.append(name, value)
    if (settings.duplicated.includes(name)) target.searchParams.append(name, value)
  }
  return { status: 302, headers: { Location: target.href } }
}

/** Starts one. `path` makes its issuer have one, such as `/tenant1`. */
export async function startFakeAuthorizationServer({ path = '' } = {}): Promise<FakeAuthorizationServer> {
  const secrets = new Set<string>()
  const keep = (secret: string) => {
    if (secret !== '') secrets.add(secret)
    return secret
  }
  const codes = new Map<string, IssuedCode>()
  const devices = new Map<string, DeviceLogin>()
  const idTokens = new Set<string>()
  const assertionKey = randomBytes(32).toString('hex')
  const server = await startRecordingServer(answer)
  const settings = defaultSettings(server.url + path)
  const clients = createFakeClients(settings, keep)
  const desk: TokenDesk & { nonce: string } = {
    ...{ settings, codes, devices, idTokens, assertionKey, keep, nonce: 'nonce-1' },
    tokenEndpoint: `${server.url}/token`,
    book: createTokenBook(keep),
    usedProofs: new Set(),
  }

  function authorize({ query }: RecordedRequest): Reply {
    const client = clients.find(query.get('client_id'))
    const redirectUri = query.get('redirect_uri')
    if (!client) return { status: 400, body: 'unknown client' }
    const known = client.redirect_uris
    if (redirectUri === null || (known && !known.includes(redirectUri)))
      return { status: 400, body: 'unknown redirect_uri' }
    if (settings.authorizationError !== undefined)
      return redirect(settings, query, ['error', settings.authorizationError])
    const challenge = query.get('code_challenge')
    if (challenge === null || query.get('code_challenge_method') !== 'S256' || query.get('response_type') !== 'code') {
      return redirect(settings, query, ['error', 'invalid_request'])
    }
    const code = keep(`code-${randomBytes(16).toString('base64url')}`)
    const [scope, resource] = [query.get('scope') ?? undefined, query.get('resource') ?? undefined]
    codes.set(code, { clientId: client.client_id, redirectUri, challenge, scope, resource })
    return redirect(settings, query, ['code', code])
  }

  function withClient(request: RecordedRequest, then: (client: FakeClient) => Reply): Reply {
    const client = clients.authenticate(request, settings.issuer)
    if (client) return then(client)
    const { clientErrorStatus: status } = settings
    const headers = status === 401 ? { 'WWW-Authenticate': 'Basic realm="fake"' } : {}
    return { status, headers, body: { error: 'invalid_client' } }
  }

  const posts: Readonly<Record<string, (request: RecordedRequest) => Reply>> = {
    '/token': request => withClient(request, client => answerTokenRequest(desk, request, client)),
    '/register': request => clients.register(request),
    '/revoke': request =>
      withClient(request, () => {
        desk.book.revoke(request.form.get('token') ?? '')
        return { status: 200 }
      }),
    '/device_authorization': request =>
      withClient(request, ({ client_id }) => openDeviceLogin(desk, request, client_id, server.url)),
  }

  function answer(request: RecordedRequest): Reply {
    if (request.method === 'POST') return posts[request.path]?.(request) ?? { status: 404 }
    if (request.path === '/authorize') return authorize(request)
    const published = settings.wellKnown.some(form => FORMS[form]?.(path) === request.path)
    return published ? { status: 200, body: metadataOf(server.url, settings) } : { status: 404, body: 'not found' }
  }

  return Object.assign(server, {
    issuer: server.url + path,
    settings,
    tokens: desk.book,
    secrets,
    idTokens,
    clients,
    addClient: clients.add,
    forgetClients: () => clients.forget(),
    newNonce() {
      desk.nonce = `nonce-${Number(desk.nonce.slice(6)) + 1}`
    },
    decideDevice(userCode: string, decision: 'approved' | 'denied' | 'expired') {
      for (const login of devices.values()) if (login.userCode === userCode) login.status = decision
    },
    issueAssertion: (claims: Claims) =>
      keep(jwt.sign({ iss: settings.issuer, ...claims }, assertionKey, { expiresIn: 300 })),
    readAssertion(assertion: string) {
      try {
        const claims = jwt.verify(assertion, assertionKey)
        return typeof claims === 'string' ? undefined : claims
      } catch {
        return undefined
      }
    },
  })
}
