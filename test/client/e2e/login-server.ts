// oidc-provider with registration, authorization code with PKCE, refresh token rotation with reuse detection, and
// revocation; access tokens are opaque. Its user agrees to everything.
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import { SERVER } from '../../support/authorization-server.ts'
import { Browser } from '../../support/form-browser.ts'
import { makeKey } from '../../support/test-issuer.ts'

interface SeenRequest {
  readonly path: string
  /** Query and form together. */
  readonly parameters: URLSearchParams
}

export interface LoginServer {
  readonly url: string
  readonly introspection: string
  readonly requests: SeenRequest[]
  count(path: string): number
  /** Ends one access token; what else came of its login stays good. */
  withdraw(accessToken: string): Promise<void>
  /** Sends a form, as whoever has it could. */
  post(path: string, form: Readonly<Record<string, string>>): Promise<{ status: number; body: Record<string, unknown> }>
  /** The browser of the user: it goes where the authorization URL leads, in the end to the client. */
  readonly delegate: (authorizationUrl: URL) => Promise<URL>
  /** The scopes of each login, sorted. */
  readonly logins: string[][]
}

const running: Array<() => Promise<unknown>> = []
const SCOPES = ['read', 'write']
const ALG = 'ES256'

function createProvider(url: string): Provider {
  const { privateKey, kid } = makeKey('a-key')
  return new Provider(url, {
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid, alg: ALG, use: 'sig' }] },
    clients: [
      {
        ...{ client_id: SERVER.id, client_secret: SERVER.secret, token_endpoint_auth_method: 'client_secret_basic' },
        ...{ grant_types: ['client_credentials'], response_types: [], redirect_uris: [] },
      },
    ],
    clientDefaults: { id_token_signed_response_alg: ALG },
    enabledJWA: { idTokenSigningAlgValues: [ALG] },
    cookies: { keys: ['of a test'] },
    pkce: { required: () => true },
    responseTypes: ['code'],
    scopes: ['openid', 'offline_access', ...SCOPES],
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
    findAccount: (_ctx: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    interactions: { url: (_ctx: unknown, { uid }: { uid: string }) => `${url}/interaction/${uid}` },
    ttl: { AccessToken: 3600, AuthorizationCode: 60, Grant: 3600, Interaction: 600, RefreshToken: 3600, Session: 3600 },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_ctx: unknown, resource: string) => ({
          ...{ scope: SCOPES.join(' '), audience: resource, accessTokenFormat: 'opaque', accessTokenTTL: 3600 },
        }),
      },
    },
  })
}

/** The user who agrees: grants what is asked for. */
async function agree(provider: Provider, request: IncomingMessage, response: ServerResponse) {
  const { params } = await provider.interactionDetails(request, response)
  const { client_id, scope, resource } = params
  const grant = new provider.Grant({ accountId: 'ann', clientId: String(client_id) })
  grant.addOIDCScope(String(scope ?? ''))
  if (typeof resource === 'string') grant.addResourceScope(resource, String(scope ?? ''))
  const result = { login: { accountId: 'ann' }, consent: { grantId: await grant.save() } }
  await provider.interactionFinished(request, response, result)
}

export async function startLoginServer(): Promise<LoginServer> {
  let listener: RequestListener = (_, response) => void response.end()
  const server = createServer((request, response) => listener(request, response))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  running.push(() => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  })
  const provider = createProvider(url)
  const serve = provider.callback()
  const requests: SeenRequest[] = []
  listener = (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', url)
    const parameters = new URLSearchParams(searchParams)
    requests.push({ path: pathname, parameters })
    // Beside oidc-provider, which reads the body too.
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      for (const [name, value] of new URLSearchParams(Buffer.concat(chunks).toString())) parameters.append(name, value)
    })
    if (pathname.startsWith('/interaction/')) void agree(provider, request, response)
    else void serve(request, response)
  }
  const logins: string[][] = []
  const browser = new Browser(url)
  return {
    url,
    introspection: `${url}/token/introspection`,
    requests,
    logins,
    count: path => requests.filter(request => request.path === path).length,
    async withdraw(accessToken) {
      const { AccessToken } = provider as unknown as {
        AccessToken: { find(value: string): Promise<{ destroy(): Promise<void> } | undefined> }
      }
      const found = await AccessToken.find(accessToken)
      if (!found) throw new Error('there is no such token')
      await found.destroy()
    },
    async post(path, form) {
      const response = await fetch(url + path, { method: 'POST', body: new URLSearchParams(form) })
      const text = await response.text()
      return { status: response.status, body: text === '' ? {} : JSON.parse(text) }
    },
    async delegate(authorizationUrl) {
      logins.push((authorizationUrl.searchParams.get('scope') ?? '').split(' ').sort())
      const end = await browser.open(authorizationUrl)
      if ('redirect' in end) return end.redirect
      throw new Error(`the authorization server shows a page: ${end.status} ${end.html}`)
    },
  }
}

/** Stops every server that this file started: call it in `after`. */
export async function stopLoginServers(): Promise<void> {
  await Promise.all(running.splice(0).map(stop => stop()))
}
