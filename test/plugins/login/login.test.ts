// Tests logins of callers at upstream servers and at APIs with an OpenAPI document.
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { META } from '../../../core/mcp/protocol.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import type { ApiWithLogin } from '../../support/api-with-login.ts'
import type { StartedBridge } from '../../support/bridge.ts'
import { Browser } from '../../support/form-browser.ts'
import type { IdentityProvider } from '../../support/identity-provider.ts'
import { modern } from '../../support/rpc.ts'
import { nextMessage, openSession } from '../../support/session-client.ts'

// The plugin loads parts on demand, which are ES modules: the host must not be a second copy of them.
const load = async () => ({
  ...(await import('../../../core/access/grant-store.ts')),
  ...(await import('../../../core/store/memory-store.ts')),
  ...(await import('../../fixtures/plugins.ts')),
  ...(await import('../../support/api-with-login.ts')),
  ...(await import('../../support/bridge.ts')),
  ...(await import('../../support/start-host.ts')),
})
let loaded: Awaited<ReturnType<typeof load>>

before(async () => {
  loaded = await load()
})
after(() => loaded.stopBridges())
after(() => loaded.stopApisWithLogin())
after(removeFolders)

const URL_CLIENT = { elicitation: { url: {} } }
const DOCUMENT = (server: string) =>
  JSON.stringify({
    openapi: '3.1.0',
    info: { title: 'things', version: '1' },
    servers: [{ url: server }],
    paths: { '/me': { get: { operationId: 'me', responses: { 200: { description: 'ok' } } } } },
  })

interface User {
  readonly name: string
  readonly browser: Browser
  readonly headers: Readonly<Record<string, string>>
}

/** A user with a client of the gateway, signed in there. */
async function signIn(gateway: StartedBridge, api: ApiWithLogin, name: string): Promise<User> {
  gateway.idp.nextUser = name
  const client = await gateway.client()
  const { access_token } = await client.logIn()
  const browser = new Browser(gateway.url, gateway.idp.origin, api.issuer)
  for (const [key, cookie] of client.browser.cookies) browser.cookies.set(key, cookie)
  return { name, browser, headers: { Authorization: `Bearer ${access_token}` } }
}

/** A browser with the cookies of a user that follows redirects to these origins only. */
function browserOf({ browser }: User, ...homes: readonly string[]): Browser {
  const other = new Browser(...homes)
  for (const [key, cookie] of browser.cookies) other.cookies.set(key, cookie)
  return other
}

const unescapeHtml = (text: string) => text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))

/** The target of the button of a page. */
function buttonOf({ html, url }: { readonly html: string; readonly url: string }): URL {
  const href = /class="button main" href="([^"]*)"/.exec(html)?.[1]
  if (href === undefined) throw new Error(`no button: ${html}`)
  return new URL(unescapeHtml(href), url)
}

/** Opens a link, continues, and logs in at the API. */
async function logIn({ browser }: User, link: string) {
  return browser.page(buttonOf(await browser.page(link)))
}

/** The URL of the callback, which the browser has not opened yet. */
async function callbackOf(gateway: StartedBridge, api: ApiWithLogin, user: User, link: string): Promise<URL> {
  const here = browserOf(user, gateway.url)
  const departure = await here.open(buttonOf(await here.page(link)))
  if (!('redirect' in departure)) throw new Error(`no redirect: ${departure.html}`)
  const back = await new Browser(api.issuer).open(departure.redirect)
  if (!('redirect' in back)) throw new Error(`no callback: ${back.html}`)
  return back.redirect
}

const call = (
  gateway: StartedBridge,
  { headers }: User,
  name: string,
  params: object = {},
  capabilities: object = URL_CLIENT,
) =>
  modern(
    gateway.resource,
    'tools/call',
    { name, ...params },
    { headers, meta: { [META.clientCapabilities]: capabilities } },
  ).then(({ message }) => message.result ?? message)

const linkOf = (result: { inputRequests: { login: { params: { url: string } } } }) =>
  result.inputRequests.login.params.url

interface Settings {
  readonly plugins?: object
  readonly config?: object
  readonly idp?: IdentityProvider
}

async function startGateway(api: ApiWithLogin, { plugins, config, idp }: Settings = {}): Promise<StartedBridge> {
  const folder = await makeFolder({ 'things.json': DOCUMENT(api.apiUrl) })
  const gateway = await loaded.startBridge({
    idp: idp ?? { users: [{ sub: 'ann' }, { sub: 'ben' }] },
    config: { routes: { '/mcp': { toolsets: ['far', 'things'], authorize: true } }, toolsets: {}, ...config },
    plugins: {
      upstream: { servers: { far: { url: api.mcpUrl, auth: { kind: 'login' } } } },
      openapi: {
        documents: {
          things: {
            document: `${folder}/things.json`,
            allowHosts: [new URL(api.apiUrl).host],
            auth: {
              kind: 'login',
              issuer: api.issuer,
              clientId: loaded.KNOWN_CLIENT.id,
              clientSecret: loaded.KNOWN_CLIENT.secret,
              scopes: ['openid', 'offline_access'],
            },
          },
        },
      },
      ...plugins,
    },
  })
  api.callback = `${gateway.url}/connect/things/callback`
  return gateway
}

describe('Login of a caller at an API', () => {
  let api: ApiWithLogin
  let gateway: StartedBridge
  let ann: User
  let ben: User

  before(async () => {
    api = await loaded.startApiWithLogin()
    gateway = await startGateway(api)
    ann = await signIn(gateway, api, 'ann')
    ben = await signIn(gateway, api, 'ben')
  })

  for (const [tool, textOf] of [
    ['far_whoami', (user: string) => user],
    ['me', (user: string) => JSON.stringify({ user })],
  ] as const) {
    it(`is requested by URL, and the call continues after it (2026-07-28, ${tool})`, async () => {
      api.nextUser = 'ann-there'
      const asked = await call(gateway, ann, tool)
      expect(asked.resultType).to.equal('input_required')
      expect(asked.inputRequests.login).to.deep.include({ method: 'elicitation/create' })
      const { requestState } = asked
      const responses = { login: { action: 'accept' } }
      const answer = call(gateway, ann, tool, { inputResponses: responses, requestState })
      expect((await logIn(ann, linkOf(asked))).html).to.include('You are logged in')
      expect((await answer).content[0].text).to.equal(textOf('ann-there'))
      expect((await call(gateway, ann, tool)).content[0].text, 'later calls').to.equal(textOf('ann-there'))
    })

    it(`belongs to one caller (2025-11-25, ${tool})`, async () => {
      api.nextUser = 'ben-there'
      const session = await openSession(gateway.resource, { headers: ben.headers, capabilities: URL_CLIENT })
      const stream = await session.call(tool)
      const request = await nextMessage(stream)
      expect(request.params).to.include({ mode: 'url' })
      expect(request.params.elicitationId).to.be.a('string')
      await session.send({ id: request.id, result: { action: 'accept' } })
      await logIn(ben, request.params.url)
      expect((await nextMessage(stream)).result.content[0].text).to.equal(textOf('ben-there'))
      expect((await call(gateway, ann, tool)).content[0].text).to.equal(textOf('ann-there'))
    })
  }

  it('registers one client of the host for all users', () => expect(api.registrations).to.have.length(1))

  it('is refreshed once after a 401 response', async () => {
    for (const tool of ['far_whoami', 'me']) {
      api.revoke('access')
      const before = api.grants.length
      expect((await call(gateway, ann, tool)).content[0].text).to.include('ann-there')
      expect(api.grants.slice(before)).to.deep.equal(['refresh_token'])
    }
  })

  it('is requested again when the API has revoked it', async () => {
    api.revoke('all')
    const asked = await call(gateway, ann, 'far_whoami')
    expect(asked.resultType).to.equal('input_required')
    const { requestState } = asked
    const declined = await call(gateway, ann, 'far_whoami', {
      inputResponses: { login: { action: 'decline' } },
      requestState,
    })
    expect(declined).to.deep.include({ isError: true })
    expect(declined.content[0].text).to.match(/^The user did not log in at "far"/)
  })

  it('is requested by text from clients without URL elicitation', async () => {
    const result = await call(gateway, ann, 'far_whoami', {}, {})
    expect(result.isError).to.equal(true)
    const [, url = ''] = /Open this URL within 10 minutes: (\S+) /.exec(result.content[0].text) ?? []
    api.nextUser = 'ann-again'
    expect((await logIn(ann, url)).html).to.include('You are logged in')
    expect((await call(gateway, ann, 'far_whoami')).content[0].text).to.equal('ann-again')
  })

  it('cannot be started or finished by another user, or without sign-in', async () => {
    const link = linkOf(await call(gateway, ann, 'me'))
    expect((await ben.browser.page(link)).status).to.equal(403)
    gateway.idp.nextUser = 'ben'
    const stranger = await new Browser(gateway.url, gateway.idp.origin).page(link)
    expect(stranger.status, 'after the sign-in').to.equal(403)
    const callback = await callbackOf(gateway, api, ann, link)
    const refused = await ben.browser.page(callback)
    expect(refused.status).to.equal(403)
    expect(refused.html).to.include('This login belongs to another user')
    expect((await ann.browser.page(callback)).status, 'the flow has ended').to.equal(400)
    expect((await call(gateway, ann, 'me')).resultType).to.equal('input_required')
  })

  it('accepts a link, a confirmation and a callback once', async () => {
    const link = linkOf(await call(gateway, ann, 'me'))
    const page = await ann.browser.page(link)
    expect(page.headers.get('x-frame-options')).to.equal('DENY')
    expect(page.html).to.include(new URL(api.apiUrl).host)
    const forged = new URL(buttonOf(page))
    forged.searchParams.set('confirm', 'x')
    expect((await ann.browser.page(forged)).html, 'another confirmation').to.include('Continue')
    const callback = await callbackOf(gateway, api, ann, link)
    expect((await ann.browser.page(link)).status, 'the used link').to.equal(400)
    expect((await ann.browser.page(`${callback}&code=another`)).status, 'two codes').to.equal(502)
    expect((await ann.browser.page(callback)).status, 'the state was used').to.equal(400)
    expect((await ann.browser.page(`${gateway.url}/connect/far/callback${callback.search}`)).status).to.equal(400)
  })

  it('requires a user of this host', async () => {
    const { url } = await loaded.startHost({
      toolsets: {},
      routes: { '/mcp': { toolsets: ['far'] } },
      plugins: {
        'transport-streamable': {},
        'auth-jwt': {},
        'auth-bridge': { provider: gateway.idp.options() as never, allow: { everyone: true } },
        upstream: { servers: { far: { url: api.mcpUrl, auth: { kind: 'login' } } } },
      },
    })
    const { message } = await modern(`${url}/mcp`, 'tools/call', { name: 'far_whoami' })
    expect(message.result.content[0].text).to.match(/requires a user who signed in at this host/)
  })
})

describe('Logins of callers on two nodes', () => {
  const secrets = [randomBytes(32).toString('base64')]
  let api: ApiWithLogin
  let first: StartedBridge
  let second: StartedBridge
  let shared: ReturnType<typeof loaded.plugin>
  let store: ReturnType<typeof loaded.createMemoryStore>

  before(async () => {
    const { createGrantStore, createMemoryStore, plugin } = loaded
    store = createMemoryStore()
    shared = plugin(host => host.provide('grantStore', createGrantStore({ ...store, shared: true })))
    api = await loaded.startApiWithLogin()
    first = await startGateway(api, { plugins: { shared }, config: { secrets } })
    second = await startGateway(api, {
      idp: first.idp,
      plugins: { shared },
      config: { secrets, http: { port: 0, publicUrl: first.url } },
    })
    api.callback = `${first.url}/connect/things/callback`
  })

  it('refresh a rotated token once, and are encrypted in the store', async () => {
    const ann = await signIn(first, api, 'ann')
    const link = linkOf(await call(second, ann, 'far_whoami'))
    expect((await logIn(ann, link)).html).to.include('You are logged in')
    for (const node of [first, second])
      expect((await call(node, ann, 'far_whoami')).content[0].text).to.equal('ann-there')
    for (let round = 0; round < 3; round++) {
      api.revoke('access')
      const before = api.grants.length
      const results = await Promise.all([first, second, first, second].map(node => call(node, ann, 'far_whoami')))
      expect(results.map(({ content }) => content[0].text)).to.deep.equal(Array(4).fill('ann-there'))
      expect(api.grants.slice(before)).to.deep.equal(['refresh_token'])
    }
    const stored = JSON.stringify(store.dump())
    expect(api.tokens.length).to.be.above(4)
    for (const secret of [...api.tokens, 'ann-there', link.split('link=')[1] ?? ''])
      expect(stored).not.to.include(secret)
    expect(stored).to.include('granted:api tokens')
  })

  it('are an error without secrets, or without a bridge', async () => {
    const errorOf = (start: Promise<unknown>) => start.then(() => undefined, String)
    const temporary = startGateway(api, { plugins: { shared }, config: { secrets: undefined } })
    expect(await errorOf(temporary)).to.include('the keys that encrypt tokens of users are temporary')
    const alone = loaded.startHost({
      toolsets: {},
      routes: { '/mcp': { toolsets: ['far'] } },
      plugins: {
        'transport-streamable': {},
        upstream: { servers: { far: { url: api.mcpUrl, auth: { kind: 'login' } } } },
      },
    })
    expect(await errorOf(alone)).to.include("kind 'login' requires auth-bridge")
  })
})
