// Tests session fixation, stolen session cookies, sessions after sign-out and forged account forms.
import { expect } from 'chai'
import { type BridgeClient, type StartedBridge, startBridge, stopBridges } from '../../../support/bridge.ts'
import type { Browser } from '../../../support/form-browser.ts'
import { cookiesFor, type Got, post, send, startTwo } from './attacker.ts'
import { Tally } from './tally.ts'

const USERS = [
  { sub: 'ann', name: 'Ann Example', email: 'ann@acme.example', groups: ['engineering'] },
  { sub: 'mallory', name: 'Mallory Example', email: 'mallory@acme.example', groups: ['engineering'] },
]

const sessionOf = (browser: Browser) =>
  [...browser.cookies.values()].find(({ pair }) => pair.startsWith('mcp_session='))?.pair

describe('auth-bridge attacks: browser sessions', () => {
  let bridge: StartedBridge

  before(async () => {
    bridge = await startBridge({ idp: { users: USERS } })
  })
  after(stopBridges)

  const openAccount = (Cookie: string, host = bridge) => send(`${host.url}/auth/account`, { headers: { Cookie } })
  const isNobodys = ({ text }: Got) => !/Ann Example|Mallory Example/.test(text)

  async function signedIn(sub: string): Promise<BridgeClient> {
    bridge.idp.nextUser = sub
    const client = await bridge.client()
    await client.logIn()
    return client
  }

  it('replaces a session planted before the login (session fixation)', async () => {
    const tally = new Tally('session fixation by a planted session')
    const mallory = await signedIn('mallory')
    const planted = sessionOf(mallory.browser) ?? ''
    for (const pair of [planted, 'mcp_session=x', `mcp_session=${'a'.repeat(43)}`, planted.slice(0, -1)]) {
      const ann = await bridge.client()
      ann.browser.cookies.set('127.0.0.1 / mcp_session', { host: '127.0.0.1', path: '/', pair })
      for (const [key, cookie] of mallory.browser.cookies)
        if (key.endsWith('.sig')) ann.browser.cookies.set(key, cookie)
      bridge.idp.nextUser = 'ann'
      // With the planted session of another she is asked as that one: she chooses her own account.
      const page = await ann.ask({ prompt: 'login' })
      expect(page.html).to.include('Ann Example')
      await ann.decide(page)
      const after = sessionOf(ann.browser)
      tally.add('id is the same', after !== undefined && after !== pair, after)
      const sig = [...mallory.browser.cookies.values()].find(one => one.pair.startsWith('mcp_session.sig'))?.pair
      tally.add('the planted one is hers', !(await openAccount(`${pair}; ${sig}`)).text.includes('Ann Example'))
    }
    tally.end(8)
  })

  it('gives an attacker no access when the victim completes a login with planted cookies', async () => {
    const tally = new Tally('session fixation by a planted interaction')
    bridge.idp.nextUser = 'ann'
    const client = await bridge.client()
    // Mallory begins, as far as the page that would send the browser to the provider.
    const begun = await send(client.authorizeUrl({ resource: bridge.resource }))
    const mallory = begun.headers
      .getSetCookie()
      .map(line => line.split(';')[0])
      .join('; ')
    const interaction = begun.location as URL
    // Ann's browser, with these cookies, goes the way of the link, and is back from the provider.
    const left = await send(interaction, { headers: { Cookie: mallory } })
    const hers = left.headers
      .getSetCookie()
      .map(line => line.split(';')[0])
      .join('; ')
    const callback = await bridge.idp.signIn(left.location?.href ?? '')
    const back = await send(callback, { headers: { Cookie: `${mallory}; ${hers}` } })
    expect(back.status).to.equal(303)
    // Now Mallory is there first.
    const got = await send(interaction, { headers: { Cookie: mallory } })
    tally.add('goes on as her', got.location?.origin === bridge.idp.origin || got.status === 400, got.location?.href)
    if (got.location?.origin === new URL(bridge.url).origin) {
      const resumed = await send(got.location, { headers: { Cookie: mallory } })
      const session = resumed.headers
        .getSetCookie()
        .map(line => line.split(';')[0])
        .join('; ')
      tally.add('is signed in as her', isNobodys(await openAccount(session)), session)
    }
    const on = await send(interaction, { headers: { Cookie: `${mallory}; ${hers}` } })
    expect(on.location?.pathname, 'her own browser goes on').to.match(/^\/auth\/authorize\//)
    // And again Mallory is there first, where that leads.
    const resumed = await send(on.location as URL, { headers: { Cookie: mallory } })
    const theirs = new Map(
      resumed.headers.getSetCookie().map(line => line.split(';')[0]?.split('=') as [string, string]),
    )
    const session = [...theirs].map(([name, value]) => `${name}=${value}`).join('; ')
    tally.add('is signed in as her', isNobodys(await openAccount(session)), session)
    const next = resumed.location && (await send(resumed.location, { headers: { Cookie: session } }))
    tally.add('is asked as her', next === undefined || isNobodys(next), next?.text)
    tally.end(3)
  })

  it('rejects invented and modified session cookies', async () => {
    const tally = new Tally('forged session cookie')
    const { browser } = await signedIn('ann')
    const cookie = cookiesFor(browser, `${bridge.issuer}/account`)
    expect((await openAccount(cookie)).text).to.include('Ann Example')
    const all = cookie.split('; ')
    const session = all.find(pair => pair.startsWith('mcp_session=')) ?? ''
    const signature = all.find(pair => pair.startsWith('mcp_session.sig=')) ?? ''
    const bent = [
      ...[
        session,
        signature,
        `${session}; mcp_session.sig=`,
        `${session}; mcp_session.sig=x`,
        '',
        'mcp_session=; mcp_session.sig=',
      ],
      ...[...session].slice('mcp_session='.length).map((letter, index) => {
        const at = index + 'mcp_session='.length
        return `${session.slice(0, at)}${letter === 'A' ? 'B' : 'A'}${session.slice(at + 1)}; ${signature}`
      }),
      ...[...signature].slice('mcp_session.sig='.length).map((letter, index) => {
        const at = index + 'mcp_session.sig='.length
        return `${session}; ${signature.slice(0, at)}${letter === 'A' ? 'B' : 'A'}${signature.slice(at + 1)}`
      }),
    ]
    for (const one of bent) tally.add(one, isNobodys(await openAccount(one)))
    tally.end(50)
  })

  it('rejects a stolen session cookie after sign-out, also at another node', async () => {
    const tally = new Tally('stolen cookie after the sign-out')
    const { one, other } = await startTwo({ idp: bridge.idp })
    bridge.idp.nextUser = 'ann'
    const client = await one.client()
    const tokens = await client.logIn()
    const url = `${one.issuer}/account`
    const stolen = cookiesFor(client.browser, url)
    expect((await openAccount(stolen, other)).text, 'before').to.include('Ann Example')
    const page = await client.browser.page(url)
    await client.browser.click(page, { signOut: 'yes' })
    for (const host of [one, other]) {
      tally.add('account', isNobodys(await openAccount(stolen, host)))
      const authorize = client.authorizeUrl({ resource: one.resource, prompt: 'none' })
      const got = await send(`${host.url}${authorize.pathname}${authorize.search}`, { headers: { Cookie: stolen } })
      tally.add('authorize', got.location?.searchParams.get('error') === 'login_required', got.location?.href)
    }
    const refreshed = await client.refresh(tokens.refresh_token ?? '')
    tally.add('refresh token', refreshed.error === 'invalid_grant', refreshed)
    tally.end(5)
  })

  it('rejects forged account page forms', async () => {
    const tally = new Tally('account form CSRF')
    const [ann, mallory] = [await signedIn('ann'), await signedIn('mallory')]
    const url = `${bridge.issuer}/account`
    const page = await ann.browser.page(url)
    const others = await mallory.browser.page(url)
    const revoke = /name="revoke" value="([^"]+)"/.exec(page.html)?.[1] ?? ''
    const csrf = page.fields['csrf'] ?? ''
    const foreign = others.fields['csrf'] ?? ''
    expect([revoke, csrf, foreign]).to.not.include('')
    const Cookie = cookiesFor(ann.browser, url)
    for (const doing of [{ revoke }, { signOut: 'yes' }, { revoke, signOut: 'yes' }] as Array<Record<string, string>>) {
      const sent: Record<string, () => Promise<Got>> = {
        'no token': () => post(url, doing, { Origin: bridge.url, Cookie }),
        'an empty token': () => post(url, { ...doing, csrf: '' }, { Origin: bridge.url, Cookie }),
        'a token of another session': () => post(url, { ...doing, csrf: foreign }, { Origin: bridge.url, Cookie }),
        'another origin': () => post(url, { ...doing, csrf }, { Origin: 'https://evil.example', Cookie }),
        'an origin that is null': () => post(url, { ...doing, csrf }, { Origin: 'null', Cookie }),
        'the query': () => send(`${url}?${new URLSearchParams({ ...doing, csrf })}`, { headers: { Cookie } }),
        JSON: () =>
          send(url, {
            method: 'POST',
            headers: { Origin: bridge.url, Cookie, 'Content-Type': 'application/json' },
            body: JSON.stringify({ ...doing, csrf }),
          }),
      }
      for (const [what, send] of Object.entries(sent)) {
        await send()
        const still = await openAccount(Cookie)
        tally.add(`${what} ${JSON.stringify(doing)}`, still.text.includes('Ann Example') && still.text.includes(revoke))
      }
    }
    // What is another's cannot be taken back with one's own session.
    await post(url, { revoke, csrf: foreign }, { Origin: bridge.url, Cookie: cookiesFor(mallory.browser, url) })
    tally.add('another person’s consent', (await openAccount(Cookie)).text.includes(revoke))
    tally.end(22)
  })
})
