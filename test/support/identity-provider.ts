// A company's identity provider for tests: oidc-provider (identity-provider-core.ts) behind a front that imitates a vendor,
// records requests, and can be down, slow or wrong.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { createStored, type IdpUser, startCore } from './identity-provider-core.ts'
import type { ErrorAnswer, IdentityProvider, IdpEndpoint, IdpSettings } from './identity-provider-settings.ts'
import { CLAIM_NAMES, findVendor } from './identity-provider-vendors.ts'
import { type Received, send } from './rpc.ts'
import { encode, makeKey, signToken } from './test-issuer.ts'

export type { IdpUser } from './identity-provider-core.ts'
export type {
  ErrorAnswer,
  IdentityProvider,
  IdpEndpoint,
  IdpRequest,
  IdpSettings,
} from './identity-provider-settings.ts'

const running: Array<() => Promise<unknown>> = []

const ANN: IdpUser = { sub: 'ann', name: 'Ann Example', email: 'ann@acme.example', groups: ['staff', 'engineering'] }

const ENDPOINTS: ReadonlyArray<readonly [start: string, endpoint: IdpEndpoint]> = [
  ['/.well-known/', 'discovery'],
  ['/jwks', 'jwks'],
  ['/auth', 'authorization'],
  ['/interaction/', 'interaction'],
  ['/token/revocation', 'revocation'],
  ['/token', 'token'],
  ['/me', 'userinfo'],
  ['/v1.0/', 'graph'],
]

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

const json = (response: ServerResponse, status: number, body: unknown) => {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
  response.end(JSON.stringify(body))
}

/** Follows a browser through the provider: keeps cookies, and follows redirects until one leads elsewhere. */
async function follow(address: string, origin: string): Promise<URL> {
  const cookies = new Map<string, string>()
  let url = new URL(address)
  for (let steps = 0; url.origin === origin; steps += 1) {
    if (steps > 10) throw new Error(`redirects in a circle: ${url}`)
    const Cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { Cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';')
      const [name = '', ...value] = pair.split('=')
      cookies.set(name, value.join('='))
    }
    const location = response.headers.get('location')
    if (location === null) throw new Error(`${response.status} at ${url.pathname}: ${await response.text()}`)
    url = new URL(location, url)
  }
  return url
}

export async function startIdentityProvider(given: IdpSettings = {}): Promise<IdentityProvider> {
  const { vendor: name = 'oidc', users = [ANN], page = 'none', authMethod = 'client_secret_basic' } = given
  const vendor = findVendor(name)
  const server = createServer((request, response) => {
    answer(request, response).catch(error => {
      if (!response.headersSent) response.writeHead(500)
      response.end(String(error))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const origin = `http://127.0.0.1:${port}`
  const path = given.path ?? vendor.path
  const prefix = path.replace(/\/$/, '')
  const client = { id: 'the-bridge', secret: 'the secret of the bridge: long + enough/%', authMethod }
  const stored = createStored()
  let keys = [makeKey('first')]
  /** Tokens that only the front knows: scopes of other APIs, by access token. */
  const elsewhere = new Map<string, string>()

  const idp: IdentityProvider = {
    vendor: name,
    origin,
    issuer: origin + path,
    clientId: client.id,
    clientSecret: client.secret,
    redirects: new Set(given.redirects),
    users: new Map(users.map(user => [user.sub, user])),
    requests: [],
    asked: endpoint => idp.requests.filter(one => one.endpoint === endpoint).length,
    nextUser: undefined,
    denies: false,
    mood: 'well',
    delay: 0,
    rotates: vendor.rotates,
    idTokenOnRefresh: true,
    troubled: undefined,
    failing: {},
    metadata: {},
    tamper: undefined,
    tamperCallback: undefined,
    rotateKeys({ keepOld = false } = {}) {
      keys = [makeKey(`key-${keys.length}-${Date.now()}`), ...(keepOld ? keys : [])]
      core.use(keys)
    },
    sign: (claims, key = keys[0]) => {
      if (!key) throw new Error('there is no key')
      return signToken(claims, key, { typ: 'JWT' })
    },
    read: token => JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString('utf8')),
    endLogins: () => stored.clear(),
    signIn: url => follow(url, origin),
    options: (changes = {}) => ({
      type: name,
      clientId: client.id,
      ...(authMethod !== 'none' && { clientSecret: client.secret }),
      issuer: idp.issuer,
      ...(authMethod === 'none' && { authMethod }),
      ...changes,
    }),
  }

  const claimsIn = given.claimsIn ?? vendor.claimsIn
  const core = await startCore(
    {
      issuer: idp.issuer,
      client,
      users: idp.users,
      redirects: idp.redirects,
      scopes: ['openid', 'offline_access', 'profile', 'email', 'groups', 'User.Read', ...(given.scopes ?? [])],
      claimNames: [...CLAIM_NAMES, ...(given.extraClaims ?? [])],
      page,
      accessTokenLife: given.accessTokenLife ?? 300,
      rotates: () => idp.rotates,
      givesRefreshToken: vendor.givesRefreshToken,
      claimsOf(user, use) {
        const claims = { ...vendor.claimsOf(user), ...user.claims }
        const left = claimsIn !== 'both' && claimsIn !== use ? ['email', 'email_verified', 'groups'] : []
        return Object.fromEntries(
          Object.entries(claims).filter(
            ([claim, value]) => value !== null && value !== undefined && !left.includes(claim),
          ),
        )
      },
      chooseUser(hint) {
        if (idp.denies) return undefined
        const all = [...idp.users.values()]
        return (
          all.find(({ sub, email }) => hint !== undefined && (sub === hint || email === hint)) ??
          all.find(({ sub }) => sub === idp.nextUser) ??
          all[0]
        )
      },
    },
    stored,
  )
  core.use(keys)

  /** Passes a request on to the real provider. */
  function pass({ method = 'GET', headers: given }: IncomingMessage, target: string, body: string): Promise<Received> {
    const { accept, authorization, 'content-type': type, cookie } = given
    const headers = {
      ...{ accept, authorization, 'content-type': type, cookie },
      ...{ 'X-Forwarded-Host': `127.0.0.1:${port}`, 'X-Forwarded-Proto': 'http' },
    }
    return send(core.url + target, { method, headers, ...(method === 'POST' && { body }) })
  }

  /** The provider's response, changed as the vendor would. */
  async function handOn(
    endpoint: IdpEndpoint,
    answered: Received,
    form: Record<string, string>,
    response: ServerResponse,
  ) {
    const headers: Record<string, string | string[]> = {}
    for (const [key, value] of answered.headers) {
      if (!/^(?:set-cookie|content-length|transfer-encoding|connection|keep-alive)$/.test(key)) headers[key] = value
    }
    const cookies = answered.headers.getSetCookie()
    if (cookies.length > 0) headers['set-cookie'] = cookies
    const location = answered.headers.get('location')
    if (location !== null && [...idp.redirects].some(uri => location.startsWith(uri))) {
      const callback = new URL(location)
      if (!vendor.sendsIssuer) callback.searchParams.delete('iss')
      idp.tamperCallback?.(callback)
      headers['location'] = callback.href
    }
    const { text } = answered
    if (answered.status !== 200 || (endpoint !== 'token' && endpoint !== 'discovery')) {
      response.writeHead(answered.status, headers).end(text)
      return
    }
    const body = JSON.parse(text) as Record<string, unknown>
    if (endpoint === 'discovery') return json(response, 200, { ...vendor.metadata({ body, origin }), ...idp.metadata })
    if (form['grant_type'] === 'refresh_token' && (!idp.idTokenOnRefresh || form['asked'] !== undefined)) {
      delete body['id_token']
    }
    if (form['asked'] !== undefined) {
      elsewhere.set(String(body['access_token']), form['asked'])
      body['scope'] = form['asked']
    }
    const said = vendor.answer(body)
    json(response, 200, idp.tamper?.(said) ?? said)
  }

  async function graph(request: IncomingMessage, response: ServerResponse) {
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? ''
    const user = idp.users.get((await core.ownerOf(token)) ?? '')
    const scope = elsewhere.get(token)
    if (!user || (scope !== undefined && !scope.startsWith(`${origin}/`))) {
      return json(response, 401, {
        error: { code: 'InvalidAuthenticationToken', message: 'Access token validation failure.' },
      })
    }
    json(response, 200, { value: user.groups ?? [] })
  }

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const body = await readBody(request)
    const url = new URL(request.url ?? '/', origin)
    const local = url.pathname.startsWith(prefix) ? url.pathname.slice(prefix.length) : url.pathname
    const endpoint = ENDPOINTS.find(([start]) => local.startsWith(start))?.[1]
    if (endpoint === undefined) return void response.writeHead(404).end()
    const query = Object.fromEntries(url.searchParams)
    const isForm = request.headers['content-type']?.startsWith('application/x-www-form-urlencoded') ?? false
    const form = isForm ? Object.fromEntries(new URLSearchParams(body)) : {}
    const { authorization } = request.headers
    idp.requests.push({ endpoint, method: request.method ?? '', query, form, authorization })
    if (idp.troubled?.includes(endpoint) ?? true) {
      if (idp.delay > 0) await pause(idp.delay)
      if (idp.mood === 'hangs') return
      if (idp.mood === 'gone') return void response.destroy()
      if (idp.mood === 'down') return void response.writeHead(503).end('unavailable')
    }
    const failure = idp.failing[endpoint] ?? vendor.refuses(endpoint, endpoint === 'authorization' ? query : form)
    if (failure) return fail(endpoint, failure, query, response)
    if (endpoint === 'graph') return graph(request, response)
    const changed = vendor.rewrite(endpoint, { query, form })
    const search = new URLSearchParams(changed.query).toString()
    const { asked: _, ...sent } = changed.form
    const answered = await pass(
      request,
      local + (search && `?${search}`),
      isForm ? new URLSearchParams(sent).toString() : body,
    )
    await handOn(endpoint, answered, changed.form, response)
  }

  function fail(endpoint: IdpEndpoint, failure: ErrorAnswer, query: Record<string, string>, response: ServerResponse) {
    const { status = 400, ...error } = failure
    if (endpoint !== 'authorization') return json(response, status, error)
    const callback = new URL(query['redirect_uri'] ?? origin)
    for (const [key, value] of Object.entries({ ...error, state: query['state'] ?? '' }))
      callback.searchParams.set(key, value)
    if (vendor.sendsIssuer) callback.searchParams.set('iss', idp.issuer)
    response.writeHead(303, { Location: callback.href }).end()
  }

  running.push(async () => {
    server.closeAllConnections()
    await Promise.all([core.stop(), new Promise(resolve => server.close(resolve))])
  })
  return idp
}

/** Stops every provider that this file started: call it in `after`. */
export async function stopIdentityProviders(): Promise<void> {
  await Promise.all(running.splice(0).map(stop => stop()))
}

/** An unsigned JWT with these claims. */
export const unsignedToken = (claims: Record<string, unknown>) => `${encode({ alg: 'none' })}.${encode(claims)}.`
