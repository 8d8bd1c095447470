// Tests the callback from the identity provider: login CSRF, mix-up and forged ID tokens (RFC 9207, OpenID Connect Core
// 3.1.3.7).
import { expect } from 'chai'
import { type BridgeClient, type StartedBridge, startBridge, stopBridges } from '../../../support/bridge.ts'
import { Browser } from '../../../support/form-browser.ts'
import { startIdentityProvider, unsignedToken } from '../../../support/identity-provider.ts'
import { inSeconds, makeKey } from '../../../support/test-issuer.ts'
import { cookiesFor, type Got, send } from './attacker.ts'
import { Tally } from './tally.ts'

describe('auth-bridge attacks: identity provider callback', () => {
  let bridge: StartedBridge

  before(async () => {
    bridge = await startBridge()
  })
  after(stopBridges)

  /** A sign-in that has come as far as the provider: the browser, and the callback that the provider sends it to. */
  async function underWay(host = bridge) {
    const browser = new Browser(host.url)
    const client = await host.client()
    const departure = await browser.open(client.authorizeUrl({ resource: host.resource }))
    if (!('redirect' in departure)) throw new Error(`not sent to the provider: ${departure.html}`)
    const callback = await host.idp.signIn(departure.redirect.href)
    return { browser, client, callback, departure: departure.redirect }
  }

  const open = (callback: URL, browser: Browser): Promise<Got> =>
    send(callback, { headers: { Cookie: cookiesFor(browser, callback) } })

  /** Nobody is signed in by it: no way on, and no session. */
  const signsNobodyIn = (got: Got) =>
    got.status >= 400 &&
    got.status !== 500 &&
    got.location === undefined &&
    !/mcp_session=\w/.test(got.headers.get('set-cookie') ?? '')

  it('rejects a callback in another browser or with another state', async () => {
    const tally = new Tally('login CSRF')
    const [attacker, victim] = [await underWay(), await underWay()]
    const bystander = bridge.browser()
    const bent = (change: (url: URL) => void) => {
      const url = new URL(attacker.callback)
      change(url)
      return url
    }
    const state = victim.callback.searchParams.get('state') ?? ''
    const attempts: Record<string, [URL, Browser]> = {
      'attacker’s callback in the victim’s browser': [attacker.callback, victim.browser],
      'attacker’s callback in a browser that began nothing': [attacker.callback, bystander],
      'victim’s callback in the attacker’s browser': [victim.callback, attacker.browser],
      'no state': [bent(url => url.searchParams.delete('state')), attacker.browser],
      'an empty state': [bent(url => url.searchParams.set('state', '')), attacker.browser],
      'two states': [bent(url => url.searchParams.append('state', state)), attacker.browser],
      'a made-up state': [bent(url => url.searchParams.set('state', 'x'.repeat(43))), attacker.browser],
      'a state in other letters': [
        bent(url => url.searchParams.set('state', url.searchParams.get('state')?.toUpperCase() ?? '')),
        attacker.browser,
      ],
      'a long state': [bent(url => url.searchParams.set('state', 'x'.repeat(6_000))), attacker.browser],
    }
    for (const [what, [url, browser]] of Object.entries(attempts))
      tally.add(what, signsNobodyIn(await open(url, browser)))
    // The attacker's callback with what the victim's browser has: it is not the attempt's.
    const [attackers, victims] = [attacker, victim].map(({ browser }) =>
      [...browser.cookies.values()].find(({ pair }) => pair.startsWith('mcp_browser=')),
    )
    const Cookie = `${attackers?.pair.split('=')[0]}=${victims?.pair.split('=')[1]}`
    tally.add('the cookie of another browser', signsNobodyIn(await send(attacker.callback, { headers: { Cookie } })))
    // All the while both could go on.
    for (const { browser, callback } of [attacker, victim]) {
      const next = await open(callback, browser)
      expect(next.location?.pathname, next.text).to.match(/^\/auth\/interaction\//)
    }
    tally.end(10)
  })

  it("keeps the victim's session when an attacker plants a login with its cookies (login CSRF)", async () => {
    const tally = new Tally('attacker’s login planted in a browser that is signed in')
    const victim = await bridge.client()
    await victim.logIn()
    const session = () => [...victim.browser.cookies.values()].find(({ pair }) => pair.startsWith('mcp_session='))?.pair
    const before = session()
    const attacker = await underWay()
    const page = await victim.browser.open(attacker.callback)
    tally.add('callback', 'html' in page && page.status === 400 && session() === before, page)
    const account = await victim.browser.page(`${bridge.issuer}/account`)
    tally.add('account', account.html.includes('Ann Example'))
    tally.end(2)
  })

  it('rejects a replayed callback', async () => {
    const tally = new Tally('callback replayed')
    const { browser, callback } = await underWay()
    const cookie = cookiesFor(browser, callback)
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(callback, { headers: { Cookie: cookie } })))
    const asked = bridge.idp.requests.filter(({ form }) => form['code'] === callback.searchParams.get('code'))
    // Whoever was not first is sent to begin again.
    expect(answers.every(({ status }) => status === 303)).to.equal(true)
    for (const _ of answers.slice(1)) tally.add('a code shown twice to the provider', asked.length === 1, asked.length)
    tally.end(19)
  })

  it('rejects a callback with another issuer or of another provider (mix-up)', async () => {
    const tally = new Tally('mix-up: iss of the callback')
    const other = await startIdentityProvider()
    other.redirects.add(`${bridge.issuer}/callback`)
    const bends: Record<string, (url: URL) => void> = {
      'another iss': url => url.searchParams.set('iss', other.issuer),
      'iss with a slash': url => url.searchParams.set('iss', `${bridge.idp.issuer}/`),
      'iss of ours': url => url.searchParams.set('iss', bridge.issuer),
      'an empty iss': url => url.searchParams.set('iss', ''),
      'iss twice': url => url.searchParams.append('iss', other.issuer),
      'iss in capitals': url => url.searchParams.set('iss', bridge.idp.issuer.toUpperCase()),
      'no iss, where the provider promises one': url => url.searchParams.delete('iss'),
      'no iss, and an error': url => {
        url.searchParams.delete('iss')
        url.searchParams.delete('code')
        url.searchParams.set('error', 'access_denied')
      },
      'no code': url => url.searchParams.delete('code'),
      'two codes': url => url.searchParams.append('code', 'x'),
      'another code': url => url.searchParams.set('code', 'x'.repeat(43)),
      'a token in its place': url => {
        url.searchParams.delete('code')
        url.searchParams.set('access_token', 'x')
      },
      'an ID token beside it': url => url.searchParams.set('id_token', unsignedToken({ sub: 'eve' })),
      'a response object': url => {
        url.searchParams.delete('code')
        url.searchParams.set('response', unsignedToken({ code: 'x' }))
      },
    }
    for (const [what, bend] of Object.entries(bends)) {
      const { browser, callback } = await underWay()
      bend(callback)
      const got = await open(callback, browser)
      tally.add(what, signsNobodyIn(got), got.location?.href ?? got.status)
    }
    // A code of another provider, which would be glad to be asked for it.
    const { browser, departure, callback } = await underWay()
    const elsewhere = new URL(departure.href.replace(bridge.idp.origin, other.origin))
    const foreign = await other.signIn(elsewhere.href)
    for (const iss of [other.issuer, bridge.idp.issuer]) {
      const url = new URL(callback)
      url.searchParams.set('code', foreign.searchParams.get('code') ?? '')
      url.searchParams.set('iss', iss)
      const got = await open(url, browser)
      tally.add(
        `a code of another provider, iss ${iss}`,
        signsNobodyIn(got) || got.location?.pathname.startsWith('/auth/interaction') === true,
      )
    }
    expect(other.asked('token')).to.equal(0)
    tally.end(16)
  })

  it('rejects ID tokens that do not belong to the login', async () => {
    const tally = new Tally('ID token of another issuer, audience, nonce, time, key')
    const stranger = makeKey('first')
    const { idp } = bridge
    type Claims = Record<string, unknown>
    const tokens: Record<string, (claims: Claims) => unknown> = {
      'another issuer': claims => idp.sign({ ...claims, iss: 'https://evil.example' }),
      'no issuer': ({ iss: _, ...claims }) => idp.sign(claims),
      'another audience': claims => idp.sign({ ...claims, aud: 'another-client' }),
      'several audiences, and another azp': claims => idp.sign({ ...claims, aud: [claims['aud'], 'x'], azp: 'x' }),
      'no audience': ({ aud: _, ...claims }) => idp.sign(claims),
      'another nonce': claims => idp.sign({ ...claims, nonce: 'x' }),
      'no nonce': ({ nonce: _, ...claims }) => idp.sign(claims),
      'the time past': claims => idp.sign({ ...claims, exp: inSeconds(-3_600) }),
      'no end': ({ exp: _, ...claims }) => idp.sign(claims),
      'the time to come': claims => idp.sign({ ...claims, iat: inSeconds(3_600), nbf: inSeconds(3_600) }),
      'no subject': ({ sub: _, ...claims }) => idp.sign(claims),
      'a subject that is no text': claims => idp.sign({ ...claims, sub: { $ne: '' } }),
      'another key of the same name': claims => idp.sign({ ...claims, sub: 'eve' }, stranger),
      'another key': claims => idp.sign({ ...claims, sub: 'eve' }, makeKey('stranger')),
      'no signature': claims => unsignedToken({ ...claims, sub: 'eve' }),
      'no signature, alg in capitals': claims =>
        unsignedToken({ ...claims, sub: 'eve' }).replace(/^[^.]+/, Buffer.from('{"alg":"NONE"}').toString('base64url')),
      'the signature cut off': claims => idp.sign(claims).replace(/[^.]+$/, ''),
      'claims changed after signing': claims =>
        idp
          .sign(claims)
          .split('.')
          .map((part, index) =>
            index === 1 ? Buffer.from(JSON.stringify({ ...claims, sub: 'eve' })).toString('base64url') : part,
          )
          .join('.'),
      'none at all': () => undefined,
      'no JWT': () => 'x',
      'a number': () => 7,
    }
    for (const [what, make] of Object.entries(tokens)) {
      const { browser, callback } = await underWay()
      idp.tamper = answer => ({ ...answer, id_token: make(idp.read(answer['id_token'])) })
      const got = await open(callback, browser)
      idp.tamper = undefined
      tally.add(what, signsNobodyIn(got), got.location?.href ?? got.status)
    }
    const { browser, callback } = await underWay()
    expect((await open(callback, browser)).status, 'an ID token as it is').to.equal(303)
    tally.end(21)
  })

  it('rejects an interaction URL without its cookie', async () => {
    const tally = new Tally('interaction URL in another browser')
    const victim: BridgeClient = await bridge.client()
    const page = await victim.ask()
    const uid = new URL(page.url).pathname.split('/').at(-1)
    const strangers = [bridge.browser(), (await underWay()).browser]
    for (const browser of strangers)
      for (const path of [`/interaction/${uid}`, `/authorize/${uid}`, `/interaction/${uid}?prompt=select_account`]) {
        const got = await send(`${bridge.issuer}${path}`, {
          headers: { Cookie: cookiesFor(browser, `${bridge.issuer}${path}`) },
        })
        const givesNothing =
          got.status === 400 && got.location === undefined && !/Ann Example|name="decision"/.test(got.text)
        tally.add(path, givesNothing, got.location?.href ?? got.text)
      }
    tally.end(6)
  })
})
