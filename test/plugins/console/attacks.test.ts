// Attacks on the console: from other origins, other sites and other programs of the machine, and by clients of the host.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { defineResource, defineTool, type ResourceDefinition } from '../../../core/index.ts'
import { authorizeRoute, definePlugin } from '../../../core/plugin.ts'
import { PATHS, shellWord } from '../../../plugins/console/api.ts'
import { createLogins } from '../../../plugins/console/login.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { modern } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { exchange } from '../../support/stream-exchange.ts'
import { itThorough } from '../../support/thorough.ts'
import {
  type Asked,
  ask,
  cookieIn,
  headersIn,
  logIn,
  type Operator,
  PAGE_HEADERS,
  placeOf,
  startConsole,
} from './console-client.ts'

afterEach(stopHosts)

const config = {
  toolsets: { all: [defineTool({ name: 'say', handler: () => 'said' })] },
  routes: { '/mcp': { toolsets: 'all' } },
}
const TOKEN = 'a-token-long-enough-to-be-one'
const open = (options: object = {}) => startConsole(config, options)

const GETS = [
  '/',
  '/calls?seq=1',
  ...Object.values(PATHS).filter(path => !/login|logout|actions|try|app|access|explain/.test(path)),
]
const POSTS = [
  PATHS.access,
  PATHS.explain,
  PATHS.try,
  PATHS.app,
  PATHS.endSession,
  PATHS.cancelTask,
  PATHS.reload,
  PATHS.logout,
]

/** The statuses of requests with the operator's session, without repetition. */
async function statusesOf({ origin, headers: own }: Operator, paths: readonly string[], { headers, ...asked }: Asked) {
  const requests = paths.map(path => ask(`${origin}${path}`, { ...asked, headers: { ...own, ...headers } }))
  return [...new Set((await Promise.all(requests)).map(({ status }) => status))]
}

describe('Attacks on the console', () => {
  it('by DNS rebinding are refused on every path', async () => {
    const operator = await open()
    const { port } = new URL(operator.origin)
    const names = [
      'evil.example',
      `evil.example:${port}`,
      `127.0.0.1.evil.example:${port}`,
      '10.0.0.7',
      'localhost.evil',
    ]
    for (const Host of names) {
      const statuses = await statusesOf(operator, GETS, { headers: { Host } })
      expect(
        statuses.every(status => status === 403 || status === 400),
        `${Host}: ${statuses}`,
      ).to.equal(true)
    }
    for (const name of ['localhost', '127.0.0.1', '[::1]']) {
      const headers = { Host: `${name}:${port}` }
      expect(await statusesOf(operator, [PATHS.me], { headers }), name).to.deep.equal([200])
    }
  })

  it('from other origins and sites are refused', async () => {
    const operator = await open({ actions: true })
    const { origin } = operator
    const origins = [
      'http://evil.example',
      'null',
      'http://127.0.0.1:1',
      origin.replace('http:', 'https:'),
      `${origin}.evil`,
    ]
    for (const Origin of origins) {
      expect(await statusesOf(operator, GETS, { headers: { Origin } }), Origin).to.deep.equal([403])
      const asked = { method: 'POST', headers: { 'Content-Type': 'application/json', Origin }, body: {} }
      expect(await statusesOf(operator, [...POSTS, PATHS.login], asked), Origin).to.deep.equal([403])
      expect((await ask(origin, { headers: { Origin } })).headers['access-control-allow-origin']).to.equal(undefined)
    }
    for (const site of ['cross-site', 'same-site']) {
      const headers = { 'Sec-Fetch-Site': site }
      expect(await statusesOf(operator, [PATHS.me, PATHS.calls, PATHS.events], { headers })).to.deep.equal([403])
    }
    expect((await operator.get(PATHS.me)).status).to.equal(200)
  })

  it('from other origins are refused behind a proxy that terminates TLS', async () => {
    const { origin } = await open({ token: TOKEN, allowedHosts: ['Console.example'] })
    const proxied = (Origin: string) => logIn(origin, TOKEN, { Host: 'console.example', Origin })
    const login = await proxied('https://console.example')
    expect(login.status).to.equal(200)
    expect(String(login.headers['set-cookie'])).to.match(/; Secure$/)
    for (const other of ['https://evil.example', 'https://console.example:8443', 'https://127.0.0.1', 'null']) {
      expect((await proxied(other)).status, other).to.equal(403)
    }
  })

  it('by forms without the header or the content type of the page are refused', async () => {
    const operator = await open({ actions: true })
    const { origin, cookie } = operator
    const body = { confirm: true }
    const json = { 'Content-Type': 'application/json' }
    const form = { 'Content-Type': 'text/plain' }
    for (const path of POSTS) {
      const asked = { method: 'POST', headers: { Cookie: cookie, ...json }, body }
      expect((await ask(origin + path, asked)).status, path).to.equal(403)
    }
    expect(await statusesOf(operator, POSTS, { method: 'POST', headers: form, body })).to.deep.equal([415])
    for (const method of ['PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      expect(await statusesOf(operator, POSTS, { method, headers: json }), method).to.deep.equal([405])
    }
    expect((await operator.get(PATHS.me)).status).to.equal(200)
  })

  it('without a session are refused on every path of the API', async () => {
    const { origin } = await open({ actions: true })
    for (const path of GETS.filter(one => one.startsWith('/api/'))) {
      expect((await ask(origin + path)).status, path).to.equal(401)
    }
    for (const path of POSTS) {
      expect((await ask(origin + path, { method: 'POST', headers: PAGE_HEADERS, body: {} })).status, path).to.equal(401)
    }
  })

  it('by other ports of the address, which receive and replace the cookie, are refused', async () => {
    const { origin, cookie, headers } = await open({ token: TOKEN })
    const { Cookie: _, ...secret } = headers
    const other = headersIn(await logIn(origin, TOKEN))
    const refused = { cookie: { Cookie: cookie }, secret, replaced: { ...headers, Cookie: other['Cookie'] ?? '' } }
    for (const [kind, sent] of Object.entries(refused)) {
      for (const path of GETS.filter(one => one.startsWith('/api/'))) {
        const { status, body } = await ask(origin + path, { headers: sent })
        expect([status, body.error], `${kind} ${path}`).to.deep.equal([401, 'unauthorized'])
      }
      for (const path of POSTS) {
        const asked = { method: 'POST', headers: { ...PAGE_HEADERS, ...sent }, body: { confirm: true } }
        expect((await ask(origin + path, asked)).status, `${kind} ${path}`).to.equal(401)
      }
    }
    expect((await ask(origin + PATHS.me, { headers })).status).to.equal(200)
    expect((await ask(origin + PATHS.me, { headers: other })).status, 'another tab').to.equal(200)
  })

  it('from other addresses get no connection', async () => {
    const { origin } = await open()
    const other = origin.replace('127.0.0.1', '127.0.0.2')
    const failure = await ask(other).catch((error: NodeJS.ErrnoException) => error.code)
    expect(failure).to.equal('ECONNREFUSED')
  })

  it('by links to paths of other servers cause no call and reveal no token', async () => {
    const operator = await open({ actions: true })
    const requests: unknown[] = []
    const server = createServer((req, res) => {
      requests.push(req.headers)
      res.end('{}')
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const authority = `127.0.0.1:${(server.address() as AddressInfo).port}`
    for (const path of [
      `http://${authority}/mcp`,
      `//${authority}/mcp`,
      `/\\${authority}/mcp`,
      `\\\\${authority}/mcp`,
      'http://host.invalid/mcp',
      '//host.invalid/mcp',
      `/\t/${authority}/mcp`,
      `/.//${authority}/mcp`,
    ]) {
      const body = { path, tool: 'say', arguments: {}, token: 'planted', confirm: true }
      expect((await operator.post(PATHS.try, body)).status, path).to.be.within(400, 404)
    }
    expect(requests).to.deep.equal([])
    server.close()
  })

  describe('by pages of apps', () => {
    const URI = 'ui://evil/app.html'
    const MIME_TYPE = 'text/html;profile=mcp-app'
    const pageOf = (uri: string, contents: object) =>
      defineResource({ name: uri, uri, handler: () => ({ mimeType: MIME_TYPE, text: 'page', ...contents }) })
    const withPages = (pages: readonly ResourceDefinition[], options: object = { actions: true }) =>
      startConsole({ toolsets: { all: pages }, routes: { '/mcp': { toolsets: 'all' } } }, options)
    const openPage = ({ post }: Operator, more: object = {}) => post(PATHS.app, { path: '/mcp', uri: URI, ...more })

    it('cannot add directives or origins of private networks to the policy', async () => {
      const hosts = ['localhost', 'a.localhost', '127.0.0.1', '[::1]', '10.0.0.1', '169.254.169.254', 'nas.local']
      const refused = [
        ...hosts.map(name => `https://${name}`),
        ...['http://a.example', 'https://a.example/path', 'https://*', 'https://*.example', 'https:', 'data:', '*'],
        ..."'unsafe-eval'|'self'|https://a.example; script-src *|https://a.example, x|https://a.example *".split('|'),
        ...['https://a.example\r\nX: y', 'https://user@a.example', 'https://2130706433', 'wss://internal.internal'],
      ]
      const domains = [...refused, 'https://*.ok.example', 'wss://ok.example:8443']
      const csp = {
        connectDomains: domains,
        resourceDomains: domains,
        frameDomains: domains,
        baseUriDomains: 'https://b.example',
      }
      const operator = await withPages([pageOf(URI, { _meta: { ui: { csp } } })])
      const { body } = await openPage(operator)
      expect(body).to.deep.include({ allowed: ['https://*.ok.example', 'wss://ok.example:8443'], refused })
      const page = await ask(operator.origin + body.path)
      const own = 'https://*.ok.example wss://ok.example:8443'
      expect(page.headers['content-security-policy']).to.equal(
        `sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' ${own}; style-src 'unsafe-inline' ${own}; ` +
          `img-src data: ${own}; font-src data: ${own}; media-src data: ${own}; connect-src ${own}; frame-src ${own}; ` +
          "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
      )
      expect(page.headers['connection-allowlist']).to.equal('("https://*.ok.example" "https://ok.example:8443")')
      expect(page.headers).not.to.have.property('x-frame-options')
      expect(page.headers).to.include({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
      expect(page.text).to.equal('page')
    })

    it('cannot fail with origins that are not strings', async () => {
      const csp = { connectDomains: [{ toString: null }, ['https://a.example'], 7, 'https://b.example'] }
      const { status, body } = await openPage(await withPages([pageOf(URI, { _meta: { ui: { csp } } })]))
      expect(status).to.equal(200)
      expect(body).to.deep.include({ allowed: ['https://b.example'], refused: [] })
    })

    it('are served once, only to a frame of the console, and until the logout', async () => {
      const operator = await withPages([pageOf(URI, {})])
      const { origin } = operator
      const { path } = (await openPage(operator)).body
      for (const [headers, status] of [
        [{ 'Sec-Fetch-Site': 'cross-site' }, 403],
        [{ 'Sec-Fetch-Site': 'same-site' }, 403],
        [{ Origin: 'null' }, 403],
        [{ Host: 'evil.example' }, 403],
        [{ 'Sec-Fetch-Site': 'none', 'Sec-Fetch-Dest': 'document' }, 404],
      ] as const) {
        expect((await ask(origin + path, { headers })).status).to.equal(status)
      }
      expect((await exchange(origin + path, { method: 'HEAD' })).status).to.equal(404)
      expect((await ask(`${origin}${PATHS.app}/guess`)).status).to.equal(404)
      expect([(await ask(origin + path)).status, (await ask(origin + path)).status]).to.deep.equal([200, 404])
      const pages = []
      for (let count = 0; count < 5; count++) pages.push((await openPage(operator)).body.path)
      expect(new Set(pages).size).to.equal(5)
      expect((await ask(origin + pages[0])).status).to.equal(404)
      expect((await ask(origin + pages[1])).status).to.equal(200)
      await operator.post(PATHS.logout, {})
      expect((await ask(origin + pages[4])).status).to.equal(404)
    })

    it('of other types, sizes and schemes are refused', async () => {
      const operator = await withPages([
        pageOf('ui://html/app.html', { mimeType: 'text/html' }),
        pageOf('ui://large/app.html', { text: 'x'.repeat(5 * 1_048_576) }),
        pageOf('file:///etc/app.html', {}),
      ])
      for (const [uri, status] of [
        ['ui://html/app.html', 502],
        ['ui://large/app.html', 502],
        ['ui://none/app.html', 502],
        ['file:///etc/app.html', 400],
        [`ui://${'x'.repeat(2_000)}`, 400],
        [{ uri: URI }, 400],
      ] as const) {
        expect((await openPage(operator, { uri })).status).to.equal(status)
      }
      expect((await openPage(operator, { path: '//evil.example/mcp' })).status).to.equal(400)
      expect((await openPage(operator, { token: 'a\r\nX: y' })).status).to.equal(400)
    })

    it('are read with the login of the operator only, and only with `actions: true`', async () => {
      const logins = definePlugin({
        options: { type: 'object', additionalProperties: false, properties: {} },
        provides: ['user', 'authorize'],
        setup(host) {
          host.authenticate((ctx, next) => {
            const subject = /^Bearer (.+)$/.exec(ctx.get('Authorization'))?.[1]
            if (subject) ctx.state.user = { subject, issuer: 'test', scopes: [], roles: [], claims: {} }
            return next()
          })
          host.authorize(authorizeRoute(host))
        },
      })
      const operator = await startConsole(
        {
          toolsets: { all: [pageOf(URI, {})] },
          routes: { '/mcp': { toolsets: 'all', authorize: true } },
          plugins: { logins: logins({}) },
        },
        { actions: true },
      )
      expect((await openPage(operator)).status).to.equal(502)
      expect((await openPage(operator, { token: 'ada' })).status).to.equal(200)
      expect((await openPage(await withPages([pageOf(URI, {})], {}))).status).to.equal(403)
    })
  })

  it('by control characters in copied commands are escaped', () => {
    expect(shellWord("a\u0003b'c")).to.equal("$'a\\u0003b\\'c'")
    expect(shellWord('a\u001b[201~\n')).to.equal("$'a\\u001b[201~\\u000a'")
  })

  it('by frames, scripts and referrers are prevented by headers of every response', async () => {
    const operator = await open()
    for (const path of ['/', PATHS.me, '/none.js', '/api/none']) {
      const { headers } = await operator.get(path)
      const policy = String(headers['content-security-policy'])
      for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'none'"]) {
        expect(policy, path).to.include(part)
      }
      expect(policy).not.to.match(/unsafe|http|\*/)
      expect(headers).to.deep.include({
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'cross-origin-resource-policy': 'same-origin',
      })
    }
    expect((await operator.get(PATHS.me)).headers['cache-control']).to.equal('no-store')
  })

  it('by a second use of the one-time token are refused', async () => {
    const { origin, oneTimeToken } = await open()
    const again = await logIn(origin, oneTimeToken)
    expect([again.status, again.headers['set-cookie']]).to.deep.equal([401, undefined])
  })

  it('with an expired one-time token are refused', async () => {
    const clock = createManualClock()
    const started = await startHost(
      { ...config, plugins: { 'transport-streamable': {}, console: { port: 0 } } },
      undefined,
      { clock },
    )
    const { origin, token } = placeOf(started)
    await clock.advance(10 * 60_000)
    expect((await logIn(origin, token)).status).to.equal(401)
  })

  it('with the oldest of too many one-time tokens are refused', () => {
    const { createToken, logIn: use } = createLogins(undefined, Date.now)
    const [oldest = '', second = ''] = Array.from({ length: 9 }, createToken)
    expect([use(oldest, '').kind, use(second, '').kind]).to.deep.equal(['refused', 'accepted'])
  })

  it('by tokens in the query are refused, and the token stays unused', async () => {
    const started = await startHost({ ...config, plugins: { 'transport-streamable': {}, console: { port: 0 } } })
    const { origin, token } = placeOf(started)
    for (const name of ['t', 'token', 'access_token']) {
      for (const path of ['/', PATHS.me]) {
        const { status, text } = await ask(`${origin}${path}?${name}=${token}`)
        expect(status).to.equal(400)
        expect(text).not.to.include(token)
      }
    }
    expect((await logIn(origin, token)).status).to.equal(200)
  })

  it('by session fixation have no effect', async () => {
    const { origin, cookie } = await open({ token: TOKEN })
    const [name = ''] = cookie.split('=')
    const planted = `${name}=${'A'.repeat(43)}`
    expect((await ask(origin + PATHS.me, { headers: { Cookie: planted } })).status).to.equal(401)
    const login = await logIn(origin, TOKEN, { Cookie: planted })
    expect(login.status).to.equal(200)
    expect(cookieIn(login)).not.to.equal(planted)
    const own = headersIn(login)
    expect((await ask(origin + PATHS.me, { headers: { ...own, Cookie: planted } })).status).to.equal(401)
    // A second cookie of this name does not lock the operator out.
    for (const Cookie of [`${planted}; ${own['Cookie']}`, `${own['Cookie']}; ${planted}`]) {
      expect((await ask(origin + PATHS.me, { headers: { ...own, Cookie } })).status).to.equal(200)
    }
    expect(String(login.headers['set-cookie'])).to.match(/; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/)
  })

  it('with the cookie of an ended session are refused', async () => {
    const operator = await open()
    expect((await operator.post(PATHS.logout, {})).status).to.equal(204)
    expect((await operator.get(PATHS.me)).status).to.equal(401)
  })

  it('with a call that runs at the logout end the call', async () => {
    let isCancelled = false
    const wait = defineTool({
      name: 'wait',
      annotations: { readOnlyHint: true },
      async handler(_args, { progress, signal }) {
        progress(1)
        await once(signal, 'abort')
        isCancelled = true
      },
    })
    const operator = await startConsole({ ...config, toolsets: { all: [wait] } }, { actions: true })
    const headers = { ...PAGE_HEADERS, ...operator.headers }
    const body = JSON.stringify({ path: '/mcp', tool: 'wait', arguments: {} })
    // Resolves with the first notification.
    const call = await exchange(`${operator.origin}${PATHS.try}`, { method: 'POST', headers, body })
    const rest = call.text().catch(() => 'destroyed')
    await operator.post(PATHS.logout, {})
    await eventually('the call is cancelled', () => isCancelled)
    expect(await rest).not.to.include('"result"')
  })

  it('by actions without `actions: true` or without a confirmation are refused', async () => {
    const confirmed = { handle: 'x'.repeat(22), confirm: true, path: '/mcp', tool: 'say', arguments: {} }
    const off = await open()
    for (const path of [PATHS.endSession, PATHS.cancelTask, PATHS.reload, PATHS.try]) {
      expect((await off.post(path, confirmed)).status, path).to.equal(403)
    }
    const on = await open({ actions: true })
    for (const path of [PATHS.endSession, PATHS.cancelTask, PATHS.reload]) {
      for (const confirm of [undefined, false, 'true', 1]) {
        expect((await on.post(path, { ...confirmed, confirm })).status, `${path} ${confirm}`).to.equal(400)
      }
    }
  })

  it('on secrets of the config fail: keys without a schema and arguments of commands are masked', async () => {
    // A plugin in JavaScript can allow options that its schema does not declare.
    const schema = {
      type: 'object',
      additionalProperties: true,
      properties: { command: { type: 'array', items: { type: 'string' } } },
    } as const
    const loose = definePlugin<object>({ options: schema as never, setup: () => undefined })
    const options = { dsn: 'password=PLANTED', pin: 1_234, list: ['PLANTED'], command: ['node', '--api-key=PLANTED'] }
    const { get } = await startConsole({ ...config, plugins: { loose: loose(options) } })
    const { body } = await get(PATHS.config)
    expect(body.config.plugins.loose).to.include({ dsn: '***', pin: '***' })
    expect(body.config.plugins.loose.command).to.deep.equal(['node', '***'])
    expect(JSON.stringify(body)).not.to.match(/PLANTED|1234/)
  })

  it('by guessing tokens are limited per address', async () => {
    const { origin } = await open({ token: TOKEN })
    const statuses: number[] = []
    for (let guess = 0; guess < 8; guess++) statuses.push((await logIn(origin, `guess-${guess}`)).status)
    expect(statuses).to.deep.equal([401, 401, 401, 401, 401, 429, 429, 429])
  })

  it('by wrong tokens through a proxy do not lock the operator out', async () => {
    const { origin } = await open({ token: TOKEN, allowedHosts: ['console.example'] })
    const proxied = (token: string) => logIn(origin, token, { Host: 'console.example' })
    for (let guess = 0; guess < 8; guess++) await proxied(`guess-${guess}`)
    expect((await proxied(TOKEN)).status).to.equal(200)
    expect((await proxied(`${TOKEN}x`)).status, 'a login does not reset the limit').to.equal(429)
  })

  it('by refused logins are one warning with a count', async () => {
    const { origin, get, log } = await open()
    for (let guess = 0; guess < 3; guess++) await logIn(origin, `guess-${guess}`)
    const { warnings } = (await get(PATHS.overview)).body
    const shown = warnings.filter(({ code }: { code: string }) => code === 'MH3605')
    expect(shown.map(({ count }: { count: number }) => count)).to.deep.equal([3])
    expect(log.filter(({ code }) => code === 'MH3605')).to.have.length(3)
  })

  it('by many logins end the oldest sessions', async () => {
    const operator = await open({ token: TOKEN })
    for (let login = 0; login < 16; login++) await logIn(operator.origin, TOKEN)
    expect((await operator.get(PATHS.me)).status).to.equal(401)
  })

  it('by many viewers are refused', async () => {
    const { origin, headers, get } = await open()
    const view = () => exchange(origin + PATHS.events, { headers })
    const viewers = await Promise.all(Array.from({ length: 8 }, view))
    expect(viewers.map(({ status }) => status)).to.deep.equal(Array.from({ length: 8 }, () => 200))
    expect((await view()).status).to.equal(503)
    expect((await get(PATHS.me)).status).to.equal(200)
    for (const viewer of viewers) viewer.drop()
  })

  it('by idle and slow connections do not lock out operators', async () => {
    const { origin, headers, get, post } = await open()
    const viewer = await exchange(origin + PATHS.events, { headers })
    const { port } = new URL(origin)
    const slow = `POST /api/login HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nX-Console: 1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{`
    const sockets: Socket[] = []
    for (const sent of ['', 'GET / HTTP/1.1\r\n', slow]) {
      for (let count = 0; count < 80; count++) {
        const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined)
        sockets.push(socket)
        await once(socket, 'connect')
        socket.write(sent)
      }
      expect((await get(PATHS.me)).status).to.equal(200)
    }
    for (const socket of sockets) socket.destroy()
    await post(PATHS.logout, {})
    const events = await viewer.rest()
    expect(events.at(-1)?.event, 'the stream of the operator').to.equal('end')
  })

  itThorough('by many calls are limited to the ring buffer', async () => {
    const operator = await open()
    const callAs = (name: string) => {
      const meta = { 'io.modelcontextprotocol/clientInfo': { name, version: '1' } }
      return modern(`${operator.url}/mcp`, 'tools/call', { name: 'say' }, { meta })
    }
    await callAs('regular')
    const names = Array.from({ length: 2_100 }, (_, index) => `client-${index}`)
    for (let from = 0; from < names.length; from += 100) {
      const batch = names.slice(from, from + 100)
      await Promise.all(batch.map(name => callAs(name.padEnd(2_000, 'x'))))
      await callAs('regular')
    }
    await callAs('late')
    const { calls, dropped } = (await operator.get(`${PATHS.calls}?limit=999999`)).body
    expect(calls.length).to.be.within(1, 2_000)
    expect(calls.length + dropped).to.equal(2_123)
    const { clients, other } = (await operator.get(PATHS.clients)).body
    expect([clients.length, other]).to.deep.equal([500, 1_602])
    // Active clients stay.
    expect([clients[0].name, clients[0].calls]).to.deep.equal(['regular', 22])
    expect(clients.map(({ name }: { name: string }) => name)).to.include('late')
    expect(clients[1].name.length).to.be.at.most(64)
  })

  itThorough('by floods of one kind do not hide a rare failure from the live feed and the list', async () => {
    const broken = defineTool({
      name: 'broken',
      handler() {
        throw new Error('broken')
      },
    })
    const clock = createManualClock()
    const operator = await startConsole(
      { ...config, toolsets: { all: [...config.toolsets.all, broken] } },
      {},
      { clock },
    )
    const { url, origin, headers } = operator
    const viewer = await exchange(origin + PATHS.events, { headers })
    const call = (name: string) => modern(`${url}/mcp`, 'tools/call', { name })
    const flood = (send: () => Promise<unknown>) => Promise.all(Array.from({ length: 600 }, send))
    await flood(() => ask(`${url}/none`))
    await flood(() => call('say'))
    await call('broken')
    const isRare = ({ name }: { readonly name?: string }) => name === 'broken'
    const list = async () => (await operator.get(`${PATHS.calls}?limit=2000`)).body.calls
    await eventually('the record', async () => (await list()).some(isRare))
    await clock.advance(1_000)
    const events = await viewer.until(({ event }) => event === 'tick')
    const { calls, skipped } = events.find(({ event }) => event === 'calls')?.message ?? {}
    expect(calls.some(isRare)).to.equal(true)
    expect([calls.length, calls.length + skipped]).to.deep.equal([200, 1_201])
    viewer.drop()
  })

  it('by large or broken bodies and URLs are refused', async () => {
    const operator = await open()
    const send = (body: string) =>
      ask(operator.origin + PATHS.access, {
        method: 'POST',
        headers: { ...PAGE_HEADERS, ...operator.headers },
        body,
      })
    expect((await send('x'.repeat(300_000))).status).to.equal(413)
    for (const body of ['{', '[]', 'null', '7']) expect((await send(body)).status, body).to.equal(400)
    expect((await operator.get(`/api/search?q=${'x'.repeat(5_000)}`)).status).to.equal(414)
    for (const path of [
      '/api/__proto__',
      '/api/constructor',
      '/api/..%2f..%2fetc',
      '/../package.json',
      '/assets/../../x.js',
    ]) {
      expect((await operator.get(path)).status, path).to.equal(404)
    }
  })
})

describe('The console at startup', () => {
  const codesOf = (options: object, settings = {}): Promise<unknown[]> =>
    startHost(
      { ...config, plugins: { 'transport-streamable': {}, console: { port: 0, ...options } } },
      undefined,
      settings,
    ).then(
      () => [],
      (error: Error) => [...new Set(error.message.match(/MH\d{4}/g) ?? [(error as { code?: string }).code])],
    )

  it('refuses settings that would expose it', async () => {
    expect(await codesOf({ host: '0.0.0.0' })).to.deep.equal(['MH3602'])
    expect(await codesOf({ host: '0.0.0.0', token: TOKEN })).to.deep.equal(['MH3602'])
    expect(await codesOf({ token: 'short' })).to.deep.equal(['MH3601'])
    expect(await codesOf({}, { processes: 2 })).to.include('MH3603')
    expect(await codesOf({})).to.deep.equal([])
  })
})
