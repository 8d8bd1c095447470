// Logins of users with a role: they sign in at the identity provider of auth-bridge.
import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { PATHS } from '../../../plugins/console/api.ts'
import { type StartedBridge, startBridge, stopBridges } from '../../support/bridge.ts'
import { eventually } from '../../support/eventually.ts'
import type { Browser } from '../../support/form-browser.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { startHost } from '../../support/start-host.ts'
import { exchange } from '../../support/stream-exchange.ts'
import { type ApiReply, ask, headersIn, logIn, PAGE_HEADERS, placeOf } from './console-client.ts'

const USERS = [
  { sub: 'ann', groups: ['operators'] },
  { sub: 'bob', groups: ['operators'] },
  { sub: 'eve', groups: ['staff'] },
]
const TOKEN = 'a-token-long-enough-to-be-one'
const PROXY = 'console.example'
const hashOf = (text: string) => createHash('sha256').update(text).digest('base64url')

describe('A login to the console by role', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-host-console-'))
  const file = join(folder, 'audit.jsonl')
  const clock = createManualClock()
  let bridge: StartedBridge
  let origin: string

  before(async () => {
    bridge = await startBridge({
      idp: { users: USERS },
      options: { roles: { operator: { group: 'operators' } } },
      plugins: {
        audit: { file },
        console: { port: 0, role: 'operator', token: TOKEN, actions: true, allowedHosts: [PROXY] },
      },
      clock,
    })
    ;({ origin } = placeOf(bridge))
  })
  after(async () => {
    await stopBridges()
    rmSync(folder, { recursive: true })
  })

  const signInUrl = async (headers = {}) =>
    new URL((await ask(`${origin}${PATHS.login}`, { headers })).body.signIn as string)

  /** The URL to sign in, as the page of the console opens it. */
  async function urlFor(verifier: string, headers = {}): Promise<URL> {
    const url = await signInUrl(headers)
    url.searchParams.set('challenge', hashOf(verifier))
    return url
  }

  /** The URL at which the browser of a user ends. */
  async function visit(user: string, url: URL, browser: Browser = bridge.browser()): Promise<URL | number> {
    bridge.idp.nextUser = user
    const page = await browser.open(url)
    return 'redirect' in page ? page.redirect : page.status
  }

  async function ticketOf(user: string, verifier: string, headers = {}): Promise<string> {
    const at = await visit(user, await urlFor(verifier, headers))
    if (typeof at === 'number') throw new Error(`no ticket: ${at}`)
    return at.hash.slice('#t='.length)
  }

  const redeem = (token: string, verifier: string, headers = {}): Promise<ApiReply> =>
    ask(`${origin}${PATHS.login}`, {
      method: 'POST',
      headers: { ...PAGE_HEADERS, ...headers },
      body: { token, verifier },
    })

  const secret = () => randomBytes(32).toString('base64url')

  it('leads a user with the role back to the console, with a ticket in the fragment', async () => {
    const verifier = secret()
    const at = (await visit('ann', await urlFor(verifier))) as URL
    expect(at.origin).to.equal(origin)
    expect(at.pathname + at.search).to.equal('/')
    const login = await redeem(at.hash.slice('#t='.length), verifier)
    expect(login.status).to.equal(200)
    expect(login.body.via).to.equal('role')
    expect(login.body.expiresAt).to.equal(clock.now() + 3_600_000)
    expect((await ask(`${origin}${PATHS.overview}`, { headers: headersIn(login) })).status).to.equal(200)
    expect(login.text).not.to.include('ann')
  })

  it('tells no one the URL of the ticket', async () => {
    const browser = bridge.browser()
    const url = await urlFor(secret())
    await visit('ann', url, browser)
    const Cookie = [...browser.cookies.values()].map(({ pair }) => pair).join('; ')
    const { status, headers } = await exchange(url.href, { headers: { Cookie } })
    expect(status).to.equal(303)
    expect(headers).to.include({ 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' })
    expect(headers).not.to.have.property('access-control-allow-origin')
    for (const dest of ['iframe', 'image', 'empty']) {
      const embedded = await exchange(url.href, { headers: { Cookie, 'Sec-Fetch-Dest': dest } })
      expect(embedded.status).to.equal(403)
      expect(embedded.headers).not.to.have.property('location')
    }
  })

  it('refuses a user without the role, also after a role was withdrawn', async () => {
    expect(await visit('eve', await urlFor(secret()))).to.equal(403)
    expect(bridge.log.find(({ code }) => code === 'MH3612')).to.have.property('user')
    const browser = bridge.browser()
    expect(await visit('bob', await urlFor(secret()), browser)).to.be.instanceOf(URL)
    bridge.idp.users.set('bob', { sub: 'bob', groups: [] })
    await clock.advance(2_000)
    expect(await visit('bob', await urlFor(secret()), browser)).to.equal(403)
    bridge.idp.users.set('bob', { sub: 'bob', groups: ['operators'] })
  })

  it('requires a new sign-in if the provider ended the login', async () => {
    const browser = bridge.browser()
    expect(await visit('ann', await urlFor(secret()), browser)).to.be.instanceOf(URL)
    bridge.idp.endLogins()
    await clock.advance(2_000)
    const before = bridge.idp.asked('authorization')
    expect(await visit('ann', await urlFor(secret()), browser)).to.be.instanceOf(URL)
    expect(bridge.idp.asked('authorization')).to.be.above(before)
  })

  it('is used once, within a minute, by the browser that started it, at the console that it is for', async () => {
    const verifier = secret()
    const ticket = await ticketOf('ann', verifier)
    expect((await redeem(ticket, secret())).status).to.equal(401)
    expect((await logIn(origin, ticket)).status).to.equal(401)
    expect((await redeem(ticket, verifier, { Host: PROXY })).status).to.equal(401)
    expect((await redeem(`${ticket.slice(0, -2)}AA`, verifier)).status).to.equal(401)
    const both = await Promise.all([redeem(ticket, verifier), redeem(ticket, verifier)])
    expect(both.map(({ status }) => status).sort()).to.deep.equal([200, 401])
    await clock.advance(60_000)
    const late = await ticketOf('ann', verifier)
    await clock.advance(60_000)
    expect((await redeem(late, verifier)).status).to.equal(401)
  })

  it('returns to a proxy of `allowedHosts`, and to no other origin', async () => {
    const verifier = secret()
    const headers = { Host: PROXY }
    const at = (await visit('ann', await urlFor(verifier, headers))) as URL
    expect(at.origin).to.equal(`https://${PROXY}`)
    expect((await redeem(at.hash.slice('#t='.length), verifier, headers)).status).to.equal(200)
    const url = await urlFor(verifier)
    const others = [
      `http://${PROXY}`,
      `https://${PROXY}:1`,
      'http://127.0.0.1:1',
      `${origin}/x`,
      'https://evil.example',
    ]
    for (const to of others) {
      url.searchParams.set('to', to)
      expect(await visit('ann', url)).to.equal(400)
    }
    for (const challenge of ['', 'x'.repeat(44), 'x'.repeat(42)]) {
      const without = await urlFor(verifier)
      without.searchParams.set('challenge', challenge)
      expect(await visit('ann', without)).to.equal(400)
    }
    // `localhost` is another origin, so the page at the console's own origin starts the sign-in.
    expect((await signInUrl({ Host: 'localhost' })).href).to.equal(`${origin}/#sign-in`)
  })

  it('names the user of each action in the audit, as in the lines of calls', async () => {
    const verifier = secret()
    const sessionOf = async (user: string) => headersIn(await redeem(await ticketOf(user, verifier), verifier))
    const [ann, bob] = [await sessionOf('ann'), await sessionOf('bob')]
    const own = headersIn(await logIn(origin, TOKEN))
    for (const headers of [ann, bob, ann, own]) {
      await ask(`${origin}${PATHS.reload}`, {
        method: 'POST',
        headers: { ...PAGE_HEADERS, ...headers },
        body: { confirm: true },
      })
    }
    const client = await bridge.client()
    bridge.idp.nextUser = 'ann'
    const tokens = await client.logIn()
    await exchange(bridge.resource, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        Authorization: `Bearer ${tokens.access_token}`,
        'MCP-Protocol-Version': '2025-11-25',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } },
      }),
    })
    const lines = () =>
      readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map(line => JSON.parse(line))
    const read = () => lines().flatMap(({ event, operator }) => (event === 'console' ? [operator as string] : []))
    const [first, second, third, fourth] = await eventually('the actions', read, found => found.length >= 4)
    expect(fourth).to.equal('token')
    expect(first).to.equal(third)
    expect(new Set([first, second, 'token', 'role', 'ann', 'bob'])).to.have.property('size', 6)
    await eventually('the call', lines, found => found.some(({ user }) => user === first))
  })
})

describe('The role of the console', () => {
  after(stopBridges)

  const configWith = (options: object) => ({
    toolsets: { all: [] },
    routes: { '/mcp': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, console: { port: 0, ...options } },
  })
  const codesOf = (options: object) =>
    startHost(configWith(options)).then(
      () => [],
      (error: Error) => [...new Set(error.message.match(/MH\d{4}/g) ?? [(error as { code?: string }).code])],
    )

  it('requires auth-bridge, and TLS on an address other than loopback', async () => {
    expect(await codesOf({ role: 'operator' })).to.deep.equal(['MH3611'])
    expect(await codesOf({ role: 'operator', host: '0.0.0.0' })).to.deep.equal(['MH3602'])
  })

  it('replaces one-time tokens, and is not offered without the option', async () => {
    const { log } = await startBridge({ plugins: { console: { port: 0, role: 'operator' } } })
    const url = new URL(String(log.find(({ code }) => code === 'MH3608')?.['url']))
    expect(url.hash).to.equal('')
    expect((await ask(`${url.origin}${PATHS.login}`)).body)
      .to.include({ tokens: false })
      .and.have.property('signIn')
    const without = await startBridge({ plugins: { console: { port: 0 } } })
    expect((await ask(`${placeOf(without).origin}${PATHS.login}`)).body).to.deep.equal({ tokens: true })
    expect((await exchange(`${without.url}/console`)).status).to.equal(404)
  })
})
