// A real authorization server (oidc-provider over loopback HTTP). Issues JWT and opaque access tokens by the client credentials
// grant for the requested resource. Rotates its keys by restarting at the same URL.
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import type { TestKey } from './test-issuer.ts'

export const CLIENT = { id: 'a-client', secret: 'the secret of a client, and +long/enough%' }
/** Credentials with which a protected server introspects opaque tokens. */
export const SERVER = { id: 'a server', secret: 'the secret of a server: long + enough' }
/** The same credentials, sent in the request body. */
export const POSTING_SERVER = { id: 'a-posting-server', secret: 'the secret of the other server' }

interface TokenRequest {
  readonly resource: string
  readonly scope?: string
}

export interface AuthorizationServer {
  readonly url: string
  readonly introspection: string
  /** Number of requests for a path. */
  asked(path: string): number
  /** Signs with the first of these keys from now on, and publishes all of them. */
  useKeys(keys: readonly TestKey[]): void
  /** Resources whose tokens are opaque. */
  readonly opaque: Set<string>
  issue(request: TokenRequest): Promise<string>
  revoke(token: string): Promise<void>
  /** Answers each request with this status, until undefined. */
  failWith: number | undefined
}

const running: Array<() => Promise<unknown>> = []

const encoded = (text: string) => encodeURIComponent(text).replaceAll('%20', '+')
const basic = ({ id, secret }: typeof CLIENT) =>
  `Basic ${Buffer.from(`${encoded(id)}:${encoded(secret)}`).toString('base64')}`

const client = ({ id, secret }: typeof CLIENT, method = 'client_secret_basic') => ({
  client_id: id,
  client_secret: secret,
  grant_types: ['client_credentials'],
  response_types: [],
  redirect_uris: [],
  token_endpoint_auth_method: method,
})

function createListener(url: string, keys: readonly TestKey[], opaque: ReadonlySet<string>): RequestListener {
  const jwks = {
    keys: keys.map(({ privateKey, kid, alg }) => ({ ...privateKey.export({ format: 'jwk' }), kid, alg, use: 'sig' })),
  }
  const alg = keys[0]?.alg ?? 'ES256'
  const configuration: object = {
    jwks,
    clients: [client(CLIENT), client(SERVER), client(POSTING_SERVER, 'client_secret_post')],
    cookies: { keys: ['of a test'] },
    clientDefaults: { id_token_signed_response_alg: alg },
    enabledJWA: { idTokenSigningAlgValues: [alg] },
    scopes: ['read', 'write'],
    ttl: { ClientCredentials: 600 },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_ctx: unknown, resource: string) => ({
          scope: 'read write',
          audience: resource,
          accessTokenFormat: opaque.has(resource) ? 'opaque' : 'jwt',
          jwt: { sign: { alg } },
        }),
      },
    },
  }
  return new Provider(url, configuration).callback()
}

export async function startAuthorizationServer(keys: readonly TestKey[]): Promise<AuthorizationServer> {
  const paths: string[] = []
  let listener: RequestListener = (_, response) => void response.end()
  const server = createServer((request, response) => {
    paths.push(request.url ?? '')
    if (authority.failWith === undefined) return listener(request, response)
    response.writeHead(authority.failWith).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  running.push(() => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  })
  const post = (path: string, form: Record<string, string>) =>
    fetch(url + path, { method: 'POST', body: new URLSearchParams(form), headers: { Authorization: basic(CLIENT) } })
  const authority: AuthorizationServer = {
    url,
    introspection: `${url}/token/introspection`,
    asked: path => paths.filter(one => one === path).length,
    useKeys(next) {
      listener = createListener(url, next, authority.opaque)
    },
    opaque: new Set(),
    async issue({ resource, scope = 'read' }) {
      const response = await post('/token', { grant_type: 'client_credentials', resource, scope })
      const body = (await response.json()) as { access_token?: string }
      if (body.access_token === undefined) throw new Error(JSON.stringify(body))
      return body.access_token
    },
    async revoke(token) {
      const response = await post('/token/revocation', { token })
      if (!response.ok) throw new Error(await response.text())
    },
    failWith: undefined,
  }
  authority.useKeys(keys)
  return authority
}

/** Stops every server that this file started: call it in `after`. */
export async function stopAuthorizationServers(): Promise<void> {
  await Promise.all(running.splice(0).map(stop => stop()))
}
