// A plain OAuth server that imitates GitHub: codes with PKCE, form-encoded responses unless JSON is requested, errors with status
// 200, account, e-mail addresses, organizations and teams in pages, and grant revocation.
import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface PlainUser {
  readonly id: number
  readonly login: string
  readonly name?: string
  /** Of the public profile. */
  readonly email?: string
  readonly emails?: ReadonlyArray<{ email: string; primary: boolean; verified: boolean }>
  readonly orgs?: readonly string[]
  /** `org/team`. */
  readonly teams?: readonly string[]
}

export interface PlainRequest {
  readonly path: string
  readonly method: string
  readonly query: Readonly<Record<string, string>>
  readonly form: Readonly<Record<string, string>>
  readonly authorization: string | undefined
}

export interface PlainOauth {
  readonly origin: string
  readonly clientId: string
  readonly clientSecret: string
  /** The only redirect URI. */
  readonly redirects: Set<string>
  /** By login. Delete a user to invalidate their tokens. */
  readonly users: Map<string, PlainUser>
  /** The user to sign in if no `login` names one. Default: the first. */
  nextUser: string | undefined
  denies: boolean
  mood: 'well' | 'down' | 'limited'
  /** Granted scopes, whatever was requested; undefined: the requested ones. */
  grants: readonly string[] | undefined
  /** Whether tokens expire and come with a refresh token, as for GitHub Apps. */
  expiring: boolean
  /** Page size, whatever was requested. */
  pageSize: number
  readonly requests: PlainRequest[]
  asked(path: string): number
  /** Valid tokens. */
  readonly tokens: ReadonlyMap<string, { login: string; scopes: readonly string[] }>
  /** Returns the URL of the redirect to the client. */
  signIn(url: string): Promise<URL>
  /** The auth-bridge `provider` options: type github, or oauth with `changes`. */
  options(changes?: Record<string, unknown>): Record<string, unknown>
}

interface Code {
  readonly login: string
  readonly scopes: readonly string[]
  readonly challenge: string
  readonly redirectUri: string
}

const ANN: PlainUser = {
  id: 4711,
  login: 'ann',
  name: 'Ann Example',
  email: 'public@elsewhere.example',
  emails: [
    { email: 'old@acme.example', primary: false, verified: true },
    { email: 'Ann@Acme.example', primary: true, verified: true },
  ],
  orgs: ['acme'],
  teams: ['acme/engineering'],
}

const running: Array<() => Promise<unknown>> = []

const random = () => randomBytes(20).toString('hex')

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

const json = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) => {
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8', ...headers })
  response.end(body === undefined ? undefined : JSON.stringify(body))
}

export async function startPlainOauth({
  users = [ANN],
  redirects = [] as readonly string[],
} = {}): Promise<PlainOauth> {
  const codes = new Map<string, Code>()
  const tokens = new Map<string, { login: string; scopes: readonly string[] }>()
  const refreshTokens = new Map<string, { login: string; scopes: readonly string[] }>()
  const server = createServer((request, response) => {
    answer(request, response).catch(error => {
      if (!response.headersSent) response.writeHead(500)
      response.end(String(error))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  running.push(() => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  })
  const oauth: PlainOauth = {
    origin,
    clientId: 'Iv1.the-bridge',
    clientSecret: 'the secret of an application',
    redirects: new Set(redirects),
    users: new Map(users.map(user => [user.login, user])),
    nextUser: undefined,
    denies: false,
    mood: 'well',
    grants: undefined,
    expiring: false,
    pageSize: 100,
    requests: [],
    asked: path => oauth.requests.filter(one => one.path === path).length,
    tokens,
    async signIn(url) {
      const response = await fetch(url, { redirect: 'manual' })
      const location = response.headers.get('location')
      if (location === null) throw new Error(`${response.status}: ${await response.text()}`)
      return new URL(location)
    },
    options: (changes = {}) => ({
      type: 'github',
      clientId: oauth.clientId,
      clientSecret: oauth.clientSecret,
      endpoints: {
        authorization: `${origin}/login/oauth/authorize`,
        token: `${origin}/login/oauth/access_token`,
        userinfo: `${origin}/api/v3/user`,
      },
      ...changes,
    }),
  }

  /** Responds with a form unless JSON is requested, also for errors, which have status 200. */
  function tell(request: IncomingMessage, response: ServerResponse, members: Record<string, string | number>) {
    if (request.headers.accept?.includes('json')) return json(response, 200, members)
    const form = new URLSearchParams()
    for (const [name, value] of Object.entries(members)) form.set(name, String(value))
    response.writeHead(200, { 'Content-Type': 'application/x-www-form-urlencoded; charset=utf-8' }).end(form.toString())
  }

  const refusal = (error: string, text: string) => ({
    error,
    error_description: text,
    error_uri: 'https://docs.example',
  })

  function authorize(query: URLSearchParams, response: ServerResponse) {
    const redirectUri = query.get('redirect_uri') ?? ''
    if (query.get('client_id') !== oauth.clientId) return void response.writeHead(404).end('no such application')
    const registered = oauth.redirects.has(redirectUri)
    const callback = new URL(registered ? redirectUri : ([...oauth.redirects][0] ?? origin))
    const all = [...oauth.users.values()]
    const wanted = query.get('login') ?? oauth.nextUser
    const user = all.find(({ login }) => login === wanted) ?? all[0]
    const parameters = !registered
      ? refusal(
          'redirect_uri_mismatch',
          'The redirect_uri MUST match the registered callback URL for this application.',
        )
      : oauth.denies || !user
        ? refusal('access_denied', 'The user has denied your application access.')
        : { code: random() }
    if ('code' in parameters && user) {
      const asked = (query.get('scope') ?? '').split(' ').filter(Boolean)
      const challenge = query.get('code_challenge_method') === 'S256' ? (query.get('code_challenge') ?? '') : ''
      codes.set(parameters.code, { login: user.login, scopes: oauth.grants ?? asked, challenge, redirectUri })
    }
    for (const [name, value] of Object.entries(parameters)) callback.searchParams.set(name, value)
    callback.searchParams.set('state', query.get('state') ?? '')
    response.writeHead(302, { Location: callback.href }).end()
  }

  function isClient({ authorization }: PlainRequest, form: URLSearchParams) {
    const basic = `Basic ${Buffer.from(`${oauth.clientId}:${encodeURIComponent(oauth.clientSecret).replaceAll('%20', '+')}`).toString('base64')}`
    if (authorization !== undefined) return authorization === basic
    return form.get('client_id') === oauth.clientId && form.get('client_secret') === oauth.clientSecret
  }

  function give(request: IncomingMessage, response: ServerResponse, login: string, scopes: readonly string[]) {
    const access_token = `gho_${random()}`
    tokens.set(access_token, { login, scopes })
    const given = { access_token, token_type: 'bearer', scope: scopes.join(',') }
    if (!oauth.expiring) return tell(request, response, given)
    const refresh_token = `ghr_${random()}`
    refreshTokens.set(refresh_token, { login, scopes })
    tell(request, response, { ...given, expires_in: 28_800, refresh_token, refresh_token_expires_in: 15_897_600 })
  }

  function token(request: IncomingMessage, told: PlainRequest, form: URLSearchParams, response: ServerResponse) {
    const refuse = (error: string, text: string) => tell(request, response, refusal(error, text))
    if (!isClient(told, form)) {
      return refuse('incorrect_client_credentials', 'The client_id and/or client_secret passed are incorrect.')
    }
    if (form.get('grant_type') === 'refresh_token') {
      const given = form.get('refresh_token') ?? ''
      const known = refreshTokens.get(given)
      refreshTokens.delete(given)
      if (!known || !oauth.users.has(known.login)) {
        return refuse('bad_refresh_token', 'The refresh token passed is incorrect or expired.')
      }
      return give(request, response, known.login, known.scopes)
    }
    const code = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (!code || code.challenge !== challenge || code.redirectUri !== form.get('redirect_uri')) {
      return refuse('bad_verification_code', 'The code passed is incorrect or expired.')
    }
    give(request, response, code.login, code.scopes)
  }

  function list(url: URL, all: readonly unknown[], response: ServerResponse) {
    const page = Number(url.searchParams.get('page') ?? 1)
    const next = new URL(url)
    next.searchParams.set('page', String(page + 1))
    const more = page * oauth.pageSize < all.length
    const items = all.slice((page - 1) * oauth.pageSize, page * oauth.pageSize)
    json(response, 200, items, more ? { Link: `<${next}>; rel="next", <${url}>; rel="first"` } : {})
  }

  function account(path: string, url: URL, told: PlainRequest, response: ServerResponse) {
    const known = tokens.get(told.authorization?.replace(/^(?:bearer|token) /i, '') ?? '')
    const user = known && oauth.users.get(known.login)
    if (!known || !user) return json(response, 401, { message: 'Bad credentials', status: '401' })
    const may = (scope: string) => known.scopes.includes(scope)
    const { id, login, name = null, email = null, emails = [], orgs = [], teams = [] } = user
    if (path === '/user') return json(response, 200, { id, login, name, email, type: 'User', site_admin: false })
    if (path === '/user/emails' && may('user:email')) return list(url, emails, response)
    const orgOf = (one: string) => ({ login: one, id: one.length })
    if (path === '/user/orgs' && may('read:org')) return list(url, orgs.map(orgOf), response)
    const teamOf = (one: string) => {
      const [org = '', slug = ''] = one.split('/')
      return { id: one.length, slug, name: slug.toUpperCase(), organization: orgOf(org) }
    }
    if (path === '/user/teams' && may('read:org')) return list(url, teams.map(teamOf), response)
    const known_path = ['/user/emails', '/user/orgs', '/user/teams'].includes(path)
    json(response, known_path ? 403 : 404, { message: 'You need more scopes for this.' })
  }

  function endGrant(told: PlainRequest, body: string, response: ServerResponse) {
    const { access_token = '' } = JSON.parse(body) as { access_token?: string }
    const known = tokens.get(access_token)
    if (!isClient(told, new URLSearchParams())) return json(response, 401, { message: 'Bad credentials' })
    if (!known) return json(response, 404, { message: 'Not Found' })
    for (const [token, { login }] of tokens) if (login === known.login) tokens.delete(token)
    json(response, 204, undefined)
  }

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const body = await readBody(request)
    const url = new URL(request.url ?? '/', origin)
    const isForm = request.headers['content-type']?.startsWith('application/x-www-form-urlencoded') ?? false
    const form = new URLSearchParams(isForm ? body : '')
    const { method = '', headers } = request
    const told: PlainRequest = {
      path: url.pathname.replace(/^\/api\/v3/, ''),
      method,
      query: Object.fromEntries(url.searchParams),
      form: Object.fromEntries(form),
      authorization: headers.authorization,
    }
    oauth.requests.push(told)
    if (oauth.mood === 'down') return void response.writeHead(502).end('<html>unicorn</html>')
    if (oauth.mood === 'limited') {
      return json(response, 403, { message: 'API rate limit exceeded' }, { 'X-RateLimit-Remaining': '0' })
    }
    const { path } = told
    if (path === '/login/oauth/authorize') return authorize(url.searchParams, response)
    if (path === '/login/oauth/access_token' && method === 'POST') return token(request, told, form, response)
    if (path === `/applications/${oauth.clientId}/grant` && method === 'DELETE') return endGrant(told, body, response)
    account(path, url, told, response)
  }
  return oauth
}

/** Stops every server that this file started: call it in `after`. */
export async function stopPlainOauths(): Promise<void> {
  await Promise.all(running.splice(0).map(stop => stop()))
}
