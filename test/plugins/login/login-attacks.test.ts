// Attacks on logins of callers at APIs: floods, forgotten registrations, tokens that outlive access, mistaken identities.

import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { createLoginWaits } from '../../../plugins/families/credentials/login-waits.ts'
import type { GrantStore } from '../../../plugins/families/grant-store/index.ts'
import { removeFolders } from '../../config/folder.ts'
import type { ApiWithLogin } from '../../support/api-with-login.ts'
import type { BridgeClient, StartedBridge } from '../../support/bridge.ts'
import { eventually } from '../../support/eventually.ts'
import { Browser } from '../../support/form-browser.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { itThorough } from '../../support/thorough.ts'
import {
  call,
  callbackOf,
  type Loaded,
  linkOf,
  load,
  logIn,
  type Settings,
  signIn,
  startGateway,
  type User,
} from './gateway.ts'

const DAY = 86_400_000
const ACCEPTED = { login: { action: 'accept' } }
const IS_TOKENS = /^granted:api tokens:/
const IS_LOCK = /^granted:api tokens lock:/

let loaded: Loaded

before(async () => {
  loaded = await load()
})
after(() => loaded.stopBridges())
after(() => loaded.stopApisWithLogin())
after(removeFolders)

/** A grant store that reports its operations. */
function watchedStore(report: (operation: string, key: string, ttl?: number) => unknown) {
  const memory = loaded.createMemoryStore()
  const store = loaded.createGrantStore(memory)
  const watched: GrantStore = {
    ...store,
    async get(key) {
      const found = await store.get(key)
      await report('get', key)
      return found
    },
    async set(key, value, ttl) {
      await report('set', key, ttl)
      return store.set(key, value, ttl)
    },
    async replace(key, from, to, ttl) {
      await report('replace', key, ttl)
      return store.replace(key, from, to, ttl)
    },
    async delete(...keys) {
      for (const key of keys) await report('delete', key)
      return store.delete(...keys)
    },
  }
  const keys = () => JSON.stringify(memory.dump())
  return { plugin: loaded.plugin(host => host.provide('grantStore', watched)), store, keys }
}

const secrets = [randomBytes(32).toString('base64')]

async function start(settings: Settings = {}, plugins: object = {}) {
  const api = await loaded.startApiWithLogin()
  const gateway = await startGateway(loaded, api, {
    ...settings,
    ...(Object.keys(plugins).length > 0 && { plugins }),
    config: { secrets, ...settings.config },
  })
  return { api, gateway }
}

/** Sends a call, accepts the request for a login, and returns the link and the result to come. */
async function waitingCall(gateway: StartedBridge, user: User, tool = 'far_whoami') {
  const asked = await call(gateway, user, tool)
  const { requestState } = asked
  const result = call(gateway, user, tool, { inputResponses: ACCEPTED, requestState })
  return { link: linkOf(asked), result }
}

async function logInAs(gateway: StartedBridge, api: ApiWithLogin, name: string): Promise<User> {
  const user = await signIn(gateway, api, name)
  api.nextUser = `${name}-there`
  const page = await logIn(user, linkOf(await call(gateway, user, 'far_whoami')))
  expect(page.html).to.include('You are logged in')
  return user
}

const textOf = async (gateway: StartedBridge, user: User) => (await call(gateway, user, 'far_whoami')).content?.[0].text

describe('Calls that wait for a login', () => {
  it('are limited to 5 per user, and share one check per second', async () => {
    const clock = createManualClock()
    let reads = 0
    const { plugin } = watchedStore((operation, key) => {
      if (operation === 'get' && IS_TOKENS.test(key)) reads++
    })
    const { api, gateway } = await start({ clock }, { plugin })
    const ann = await signIn(gateway, api, 'ann')
    const ben = await signIn(gateway, api, 'ben')
    const readsPerSecond = async () => {
      reads = 0
      await clock.advance(1_000)
      return reads
    }
    const hasOneCheck = (found: number) => found === 1
    const first = await waitingCall(gateway, ann)
    await eventually('a waiting call checks once a second', readsPerSecond, hasOneCheck)
    const more = []
    for (let at = 0; at < 4; at++) more.push(await waitingCall(gateway, ann))
    await eventually('the calls share the check', readsPerSecond, hasOneCheck)
    const { result } = await waitingCall(gateway, ann)
    const refused = await result
    expect(refused.error).to.include({ code: -32600 })
    expect(refused.error.message).to.match(/^Too many requests/)
    expect(await readsPerSecond(), 'of five calls').to.equal(1)
    const other = await waitingCall(gateway, ben)
    api.nextUser = 'ann-there'
    await logIn(ann, first.link)
    for (const { result } of [first, ...more]) expect((await result).content[0].text).to.equal('ann-there')
    api.nextUser = 'ben-there'
    await logIn(ben, other.link)
    expect((await other.result).content[0].text).to.equal('ben-there')
  })

  it('are limited to 200 in total, and end after two minutes', async () => {
    const clock = createManualClock()
    const log = { warn: () => undefined } as never
    const waits = createLoginWaits(clock, log)
    const request = (user: number) => ({
      key: `${user}`,
      owner: `${user}`,
      isDone: async () => false,
      signal: new AbortController().signal,
    })
    const waiting = Array.from({ length: 200 }, (_, index) => waits.wait(request(index % 50)))
    const errorOf = (result: Promise<unknown>) =>
      result.then(
        () => undefined,
        error => error.kind,
      )
    expect(await errorOf(waits.wait(request(1_000)))).to.equal('tooManyRequests')
    clock.block(119_000)
    await clock.advance(1_000)
    expect(new Set(await Promise.all(waiting))).to.deep.equal(new Set([false]))
    const again = waits.wait({ ...request(1_000), isDone: async () => true })
    expect(await again).to.equal(true)
    expect(clock.pending()).to.deep.equal([])
  })
})

describe('A dynamic registration that the authorization server has deleted', () => {
  it('is replaced before the user is sent there', async () => {
    const { api, gateway } = await start()
    await logInAs(gateway, api, 'ann')
    api.forgetClients()
    const ben = await logInAs(gateway, api, 'ben')
    expect(await textOf(gateway, ben)).to.equal('ben-there')
    expect(api.registrations).to.have.length(2)
    api.revoke('all')
    const ann = await logInAs(gateway, api, 'ann')
    expect(await textOf(gateway, ann)).to.equal('ann-there')
    expect(api.registrations, 'the next user shares it').to.have.length(2)
  })

  it('is replaced after a refused code', async () => {
    const { api, gateway } = await start()
    const ann = await signIn(gateway, api, 'ann')
    const callback = await callbackOf(gateway, api, ann, linkOf(await call(gateway, ann, 'far_whoami')))
    api.forgetClients()
    expect((await ann.browser.page(callback)).status).to.equal(502)
    api.nextUser = 'ann-there'
    await logIn(ann, linkOf(await call(gateway, ann, 'far_whoami')))
    expect(await textOf(gateway, ann)).to.equal('ann-there')
    expect(api.registrations).to.have.length(2)
  })

  it('is replaced after a refused refresh', async () => {
    const { api, gateway } = await start()
    const ann = await logInAs(gateway, api, 'ann')
    api.forgetClients()
    api.revoke('access')
    const asked = await call(gateway, ann, 'far_whoami')
    expect(asked.resultType).to.equal('input_required')
    await logIn(ann, linkOf(asked))
    expect(await textOf(gateway, ann)).to.equal('ann-there')
    expect(api.registrations).to.have.length(2)
  })

  it('is replaced once a minute at most', async () => {
    const clock = createManualClock()
    const { api, gateway } = await start({ clock })
    const ann = await logInAs(gateway, api, 'ann')
    const open = async () => {
      api.forgetClients()
      api.revoke('all')
      await logIn(ann, linkOf(await call(gateway, ann, 'far_whoami')))
      return api.registrations.length
    }
    expect(await open()).to.equal(2)
    expect(await open()).to.equal(2)
    await clock.advance(60_000)
    expect(await open()).to.equal(3)
  })
})

describe('An API that requires more scopes than a login has', () => {
  for (const tool of ['far_whoami', 'me']) {
    it(`gets them by another login, the call continues, and tokens are kept if a scope does not exist (${tool})`, async () => {
      const { api, gateway } = await start()
      const ben = await logInAs(gateway, api, 'ben')
      const ann = await signIn(gateway, api, 'ann')
      api.nextUser = 'ann-there'
      await logIn(ann, linkOf(await call(gateway, ann, tool)))
      const before = await call(gateway, ann, tool)
      expect(before.content[0].text).to.include('ann-there')
      api.requiredScope = 'write'
      const { link, result } = await waitingCall(gateway, ann, tool)
      expect((await ann.browser.page(link)).html).to.include('write')
      await logIn(ann, link)
      expect((await result).content[0].text).to.include('ann-there')
      expect((await call(gateway, ann, tool)).content[0].text, 'later calls').to.include('ann-there')
      api.requiredScope = undefined
      api.revoke('access')
      expect(await textOf(gateway, ben), 'the registration of others').to.equal('ben-there')
      // A scope that does not exist: the tokens are kept.
      expect((await call(gateway, ann, tool)).content[0].text).to.include('ann-there')
      api.requiredScope = 'unknown'
      await logIn(ann, linkOf(await call(gateway, ann, tool)))
      api.requiredScope = undefined
      expect((await call(gateway, ann, tool)).content[0].text).to.include('ann-there')
    })
  }

  it('does not request a login for scopes that the token has', async () => {
    const { api, gateway } = await start()
    const ann = await logInAs(gateway, api, 'ann')
    api.requiredScope = 'read'
    api.refusesAll = true
    expect(await call(gateway, ann, 'far_whoami')).to.include({ isError: true })
  })
})

describe('Stored tokens of a login', () => {
  it('are deleted by their user on the page of connected servers, or when the authorization server refuses them', async () => {
    const { plugin, keys } = watchedStore(() => undefined)
    const { api, gateway } = await start({}, { plugin })
    const ann = await logInAs(gateway, api, 'ann')
    const ben = await logInAs(gateway, api, 'ben')
    const page = await ann.browser.page(`${gateway.url}/connect`)
    expect(page.status).to.equal(200)
    expect(page.html).to.include(`(${new URL(api.mcpUrl).host})`)
    const [, value = ''] = /name="disconnect" value="([^"]+)"/.exec(page.html) ?? []
    const forged = await ann.browser.click({ ...page, fields: { csrf: 'x' } }, { disconnect: value })
    expect('status' in forged && forged.status).to.equal(403)
    const ofBen = await ben.browser.click(page, { disconnect: value })
    expect('status' in ofBen && ofBen.status, "another user's form").to.equal(403)
    expect(await textOf(gateway, ann)).to.equal('ann-there')
    const done = await ann.browser.click(page, { disconnect: value })
    expect('html' in done && done.html).to.match(/You disconnected/)
    expect('html' in done && done.html).not.to.match(/name="disconnect"/)
    expect(api.revocations).to.include('refresh_token')
    expect((await call(gateway, ann, 'far_whoami')).resultType).to.equal('input_required')
    expect(keys().match(/granted:api tokens:/g), 'the record of the other user').to.have.length.within(1, 2)
    expect(await textOf(gateway, ben)).to.equal('ben-there')
    expect(keys()).to.include('granted:api tokens:')
    api.revoke('all')
    expect((await call(gateway, ben, 'far_whoami')).resultType).to.equal('input_required')
    expect(keys(), 'tokens that the authorization server no longer accepts').not.to.include('granted:api tokens:')
  })

  it('are shown to signed-in users only', async () => {
    const { gateway } = await start()
    const response = await fetch(`${gateway.url}/connect`, { redirect: 'manual' })
    expect(response.status).to.equal(303)
    gateway.idp.nextUser = 'ann'
    const page = await new Browser(gateway.url, gateway.idp.origin).page(`${gateway.url}/connect`)
    expect(page.html).to.include('You are not logged in at a server')
  })

  itThorough('are shown to a signed-in user 300 times per minute at most', async () => {
    const clock = createManualClock()
    const { api, gateway } = await start({ clock })
    const [ann, ben] = [await signIn(gateway, api, 'ann'), await signIn(gateway, api, 'ben')]
    const show = async ({ browser }: User) => (await browser.page(`${gateway.url}/connect`)).status
    await clock.advance(1_000)
    for (let count = 0; count < 300; count++) expect(await show(ann)).to.equal(200)
    expect([await show(ann), await show(ben)]).to.deep.equal([429, 200])
    await clock.advance(61_000)
    expect(await show(ann)).to.equal(200)
  })

  it('expire 30 days after the last use', async () => {
    const clock = createManualClock()
    const written: Array<readonly [string, number | undefined]> = []
    const { plugin } = watchedStore((operation, key, ttl) => {
      if (!['get', 'delete'].includes(operation) && IS_TOKENS.test(key)) written.push([operation, ttl])
    })
    const { api, gateway } = await start({ clock }, { plugin, asUser: asUser() })
    const signedIn = await logInAs(gateway, api, 'ann')
    const ann = { ...signedIn, headers: { 'X-User': JSON.stringify({ issuer: gateway.issuer, subject: 'ann' }) } }
    expect(await textOf(gateway, ann)).to.equal('ann-there')
    expect(new Set(written.map(([, ttl]) => ttl))).to.deep.equal(new Set([30 * DAY]))
    written.length = 0
    expect(await textOf(gateway, ann)).to.equal('ann-there')
    expect(written, 'the same day').to.deep.equal([])
    clock.block(DAY)
    expect(await textOf(gateway, ann)).to.equal('ann-there')
    expect(written).to.deep.equal([['replace', 30 * DAY]])
  })

  it('are deleted when auth-bridge no longer allows the user', async () => {
    const clock = createManualClock()
    const { plugin, keys } = watchedStore(() => undefined)
    const options = { allow: { groups: ['staff'] }, scopes: {} }
    const idp = {
      users: [
        { sub: 'ann', groups: ['staff'] },
        { sub: 'ben', groups: ['staff'] },
      ],
    }
    const { api, gateway } = await start({ clock, options, idp: idp as never }, { plugin })
    const client: BridgeClient = await gateway.client()
    gateway.idp.nextUser = 'ann'
    const { refresh_token = '' } = await client.logIn()
    await logInAs(gateway, api, 'ann')
    const ben = await logInAs(gateway, api, 'ben')
    const count = () => keys().match(/granted:api tokens:/g)?.length ?? 0
    const before = count()
    gateway.idp.users.set('ann', { sub: 'ann', groups: [] })
    expect(await client.refreshLater(refresh_token).catch(() => ({}))).not.to.have.property('access_token')
    await eventually('the tokens of the user are deleted', count, found => found < before)
    expect(api.revocations).to.include('refresh_token')
    expect(await textOf(gateway, ben)).to.equal('ben-there')
  })

  for (const operation of ['get', 'delete']) {
    it(`are deleted at the other APIs if one fails (${operation})`, async () => {
      const clock = createManualClock()
      let broken: string | undefined
      let isArmed = false
      const { plugin, keys } = watchedStore((done, key) => {
        if (!isArmed || done !== operation || !IS_TOKENS.test(key)) return
        broken ??= key
        if (key === broken) throw new Error('the store failed')
      })
      const options = { allow: { groups: ['staff'] }, scopes: {} }
      const idp = { users: [{ sub: 'ann', groups: ['staff'] }] }
      const { api, gateway } = await start({ clock, options, idp: idp as never }, { plugin })
      const client: BridgeClient = await gateway.client()
      gateway.idp.nextUser = 'ann'
      const { refresh_token = '' } = await client.logIn()
      const ann = await logInAs(gateway, api, 'ann')
      await logIn(ann, linkOf(await call(gateway, ann, 'me')))
      const count = () => new Set(keys().match(/granted:api tokens:[\w-]+/g)).size
      expect(count()).to.equal(2)
      isArmed = true
      gateway.idp.users.set('ann', { sub: 'ann', groups: [] })
      await client.refreshLater(refresh_token).catch(() => ({}))
      await eventually('the tokens of the other API are deleted', count, found => found < 2)
      expect(count()).to.equal(1)
      expect(keys()).to.include(broken ?? 'no failure')
    })
  }
})

/** Identifies callers by a header. */
const asUser = () =>
  loaded.plugin(
    host =>
      host.authenticate(async (ctx, next) => {
        const given = ctx.get('X-User')
        if (given !== '') ctx.state.user = { scopes: [], roles: [], claims: {}, ...JSON.parse(given) }
        await next()
      }),
    { provides: ['user'] },
  )

describe('Tokens of a login belong to one user', () => {
  it('are not used for a caller with the same subject in another claim or of another issuer', async () => {
    const { api, gateway } = await start({}, { asUser: asUser() })
    const ann = await logInAs(gateway, api, 'ann')
    const callAs = async (user: object) => {
      const headers = { 'X-User': JSON.stringify({ issuer: gateway.issuer, subject: 'ann', ...user }) }
      return call(gateway, { ...ann, headers }, 'far_whoami')
    }
    expect((await callAs({})).content[0].text).to.equal('ann-there')
    for (const other of [{ subjectClaim: 'email' }, { issuer: 'https://other.example' }]) {
      const refused = await callAs(other)
      expect(refused.isError).to.equal(true)
      expect(refused.content[0].text).to.match(/requires a user who signed in at this host/)
    }
  })
})

describe('The lock of a refresh', () => {
  it('is not removed by a node whose lock has expired', async () => {
    let isArmed = false
    let takeOver: string | undefined
    const { plugin, store } = watchedStore(async (operation, key, ttl) => {
      if (!isArmed || !IS_LOCK.test(key) || !(operation === 'get' || ttl === 0)) return
      takeOver = key
      await store.set(key, 'the lock of another node', DAY)
    })
    const { api, gateway } = await start({}, { plugin })
    const ann = await logInAs(gateway, api, 'ann')
    isArmed = true
    api.revoke('access')
    expect(await textOf(gateway, ann)).to.equal('ann-there')
    expect(takeOver).to.be.a('string')
    expect(await store.get(takeOver ?? '')).to.equal('the lock of another node')
  })
})

describe('A login without URL elicitation, or without a browser at hand', () => {
  it('has the link and the next step in each text', async () => {
    const { api, gateway } = await start()
    const ann = await signIn(gateway, api, 'ann')
    const asked = await call(gateway, ann, 'far_whoami')
    const { url, message } = asked.inputRequests.login.params
    expect(message)
      .to.include(url)
      .and.match(/any device/)
    const plain = await call(gateway, ann, 'far_whoami', {}, {})
    expect(plain.content[0].text)
      .to.match(/https?:\/\/\S+\/connect\/far\?link=\S+/)
      .and.match(/any device.*call the tool again/is)
  })
})
