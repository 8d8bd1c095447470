// Tests logins of callers at upstream servers and at APIs with an OpenAPI document.
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { removeFolders } from '../../config/folder.ts'
import type { ApiWithLogin } from '../../support/api-with-login.ts'
import type { StartedBridge } from '../../support/bridge.ts'
import { Browser } from '../../support/form-browser.ts'
import { modern } from '../../support/rpc.ts'
import { nextMessage, openSession } from '../../support/session-client.ts'
import {
  buttonOf,
  call,
  callbackOf,
  type Loaded,
  linkOf,
  load,
  logIn,
  signIn,
  startGateway,
  URL_CLIENT,
  type User,
} from './gateway.ts'

let loaded: Loaded

before(async () => {
  loaded = await load()
})
after(() => loaded.stopBridges())
after(() => loaded.stopApisWithLogin())
after(removeFolders)

describe('Login of a caller at an API', () => {
  let api: ApiWithLogin
  let gateway: StartedBridge
  let ann: User
  let ben: User

  before(async () => {
    api = await loaded.startApiWithLogin()
    gateway = await startGateway(loaded, api)
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
    const [, url = ''] = /Open this URL within 10 minutes, [^:]+: (\S+) /.exec(result.content[0].text) ?? []
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
    first = await startGateway(loaded, api, { plugins: { shared }, config: { secrets } })
    second = await startGateway(loaded, api, {
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
    for (let round = 0; round < 2; round++) {
      api.revoke('access')
      const before = api.grants.length
      const results = await Promise.all([first, second, first, second].map(node => call(node, ann, 'far_whoami')))
      expect(results.map(({ content }) => content[0].text)).to.deep.equal(Array(4).fill('ann-there'))
      expect(api.grants.slice(before)).to.deep.equal(['refresh_token'])
    }
    const stored = JSON.stringify(store.dump())
    expect(api.tokens.length).to.be.above(3)
    for (const secret of [...api.tokens, 'ann-there', link.split('link=')[1] ?? ''])
      expect(stored).not.to.include(secret)
    expect(stored).to.include('granted:api tokens')
  })

  it('are an error without secrets, or without a bridge', async () => {
    const errorOf = (start: Promise<unknown>) => start.then(() => undefined, String)
    const temporary = startGateway(loaded, api, { plugins: { shared }, config: { secrets: undefined } })
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
