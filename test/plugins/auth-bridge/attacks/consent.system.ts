// Tests the confused deputy and forged consent answers (MCP security best practices, RFC 9700 4.7).
import { expect } from 'chai'
import { type BridgeClient, type StartedBridge, startBridge, stopBridges } from '../../../support/bridge.ts'
import type { Page } from '../../../support/form-browser.ts'
import { cookiesFor, type Got, isRefused, post, send } from './attacker.ts'
import { Tally } from './tally.ts'

const HOME = 'https://app.example/cb'
const SECOND = 'https://app.example/second'
const EVIL = 'https://evil.example/cb'
/** Consent is remembered only for clients that authenticate. */
const CONFIDENTIAL = { token_endpoint_auth_method: 'client_secret_post' }

describe('auth-bridge attacks: consent (confused deputy, CSRF)', () => {
  let bridge: StartedBridge

  before(async () => {
    const redirects = ['https://app.example/**', 'https://evil.example/**', 'http://127.0.0.1:*/**']
    bridge = await startBridge({ options: { clients: { redirects } } })
  })
  after(stopBridges)

  /** A client that a person has allowed, which this browser is not asked about again. */
  async function allowed(): Promise<BridgeClient> {
    const client = await bridge.client({ redirect_uris: [HOME, SECOND], ...CONFIDENTIAL })
    await client.decide(await client.ask({ redirect_uri: HOME, scope: 'read' }))
    const again = await client.browser.open(
      client.authorizeUrl({ redirect_uri: HOME, resource: bridge.resource, scope: 'read' }),
    )
    expect('redirect' in again && again.redirect.searchParams.has('code'), 'is remembered').to.equal(true)
    return client
  }

  it('does not reuse the consent of one client for another, even with silent sign-in', async () => {
    const tally = new Tally('one client’s consent used for another')
    const victim = await allowed()
    const others: Record<string, object> = {
      'another place': { redirect_uris: [EVIL] },
      'the same redirect URI': { redirect_uris: [HOME], ...CONFIDENTIAL },
      'the same redirect URIs, another order': { redirect_uris: [SECOND, HOME], ...CONFIDENTIAL },
      'the same host': { redirect_uris: ['https://app.example/other'] },
      'the same with one more': { redirect_uris: [HOME, SECOND, EVIL] },
      'the same with another name': { redirect_uris: [HOME, SECOND], client_name: 'Another' },
      'the same, with a secret': { redirect_uris: [HOME, SECOND], ...CONFIDENTIAL },
      'a native one': { redirect_uris: ['http://127.0.0.1:9/callback'] },
    }
    for (const [what, metadata] of Object.entries(others)) {
      const evil = await bridge.client(metadata)
      const redirect_uri = (metadata as { redirect_uris: string[] }).redirect_uris.at(-1) as string
      for (const more of [{}, { prompt: 'login' }, { prompt: 'none' }, { prompt: 'consent' }, { scope: 'openid' }]) {
        const next = await victim.browser.open(evil.authorizeUrl({ redirect_uri, resource: bridge.resource, ...more }))
        const isAsked = 'html' in next ? next.html.includes('name="decision"') : next.redirect.searchParams.has('error')
        tally.add(`${what} ${JSON.stringify(more)}`, isAsked, 'html' in next ? next.html : next.redirect.href)
      }
    }
    tally.end(40)
  })

  it('issues no code without a click when a malicious server sends the browser here for a public client', async () => {
    const tally = new Tally('authorization server in the middle')
    const fixedId = 'acme-portal'
    const host = await startBridge({
      config: { http: { trustProxy: true } },
      options: { clients: { redirects: [HOME], fixed: [{ clientId: fixedId, redirects: [HOME] }] } },
    })
    const registered = await host.client({ redirect_uris: [HOME] })
    const fixed = Object.assign(await host.client({ redirect_uris: [HOME] }), { clientId: fixedId })
    for (const client of [registered, fixed]) {
      await client.decide(await client.ask({ redirect_uri: HOME, scope: 'read' }))
      for (const site of ['none', 'same-site', 'cross-site', 'same-origin', undefined])
        for (const Referer of ['https://evil.example/authorize', `${host.issuer}/authorize`, undefined])
          for (const more of [{}, { prompt: 'none' }, { login_hint: 'ann' }, { response_mode: 'query' }]) {
            const url = client.authorizeUrl({ redirect_uri: HOME, resource: host.resource, scope: 'read', ...more })
            const headers: Record<string, string> = {
              ...(site && { 'Sec-Fetch-Site': site }),
              ...(Referer && { Referer }),
            }
            const next = await client.browser.open(url, { headers })
            const isAsked =
              'html' in next
                ? next.html.includes('name="decision"')
                : next.redirect.searchParams.get('error') === 'consent_required'
            tally.add(
              `${client.clientId.slice(0, 8)} ${JSON.stringify({ site, Referer, ...more })}`,
              isAsked,
              'html' in next ? next.html : next.redirect.href,
            )
          }
    }
    tally.end(120)
  })

  it('asks again when the same client requests another redirect URI, resource or scope', async () => {
    const tally = new Tally('consent used for another redirect URI, or more scopes')
    const client = await allowed()
    for (const bent of [
      { redirect_uri: SECOND, scope: 'read' },
      { redirect_uri: SECOND, scope: 'read', prompt: 'none' },
      { redirect_uri: HOME, scope: 'read admin' },
      { redirect_uri: HOME, scope: 'admin', prompt: 'none' },
    ]) {
      const next = await client.browser.open(client.authorizeUrl({ resource: bridge.resource, ...bent }))
      const isAsked = 'html' in next ? next.html.includes('name="decision"') : next.redirect.searchParams.has('error')
      tally.add(JSON.stringify(bent), isAsked, 'html' in next ? next.html : next.redirect.href)
      if ('html' in next && bent.redirect_uri === SECOND) expect(next.html).to.include('Something changed')
    }
    tally.end(4)
  })

  /** Whoever answers is sent on, by a page of ours; whoever is refused is not. */
  const isNoAnswer = ({ status, location, text }: Got) =>
    status < 500 && location === undefined && !/http-equiv="refresh"/.test(text)

  /** That the request was open all the while: by a click the client gets its code. */
  async function clickWorks(page: Page, client: BridgeClient) {
    const cookie = cookiesFor(client.browser, page.url)
    const answered = await post(page.url, { ...page.fields, decision: 'allow' }, { Origin: bridge.url, Cookie: cookie })
    expect(isNoAnswer(answered), 'a click is told from the rest').to.equal(false)
    const back = await client.decide(page)
    expect(back.searchParams.has('code'), 'the click itself').to.equal(true)
  }

  it('grants no consent for a GET, a prefetch or another method on the consent URL', async () => {
    const tally = new Tally('consent by GET, prefetch and other methods')
    const client = await bridge.client()
    const page = await client.ask()
    const cookie = cookiesFor(client.browser, page.url)
    const query = new URLSearchParams({ ...page.fields, decision: 'allow' })
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
      for (const purpose of ['', 'prefetch', 'prefetch;prerender'])
        for (const url of [page.url, `${page.url}?${query}`]) {
          const headers = {
            Cookie: cookie,
            'X-HTTP-Method-Override': 'POST',
            ...(purpose && { 'Sec-Purpose': purpose }),
          }
          const body = method === 'GET' || method === 'HEAD' || method === 'OPTIONS' ? {} : { body: query }
          const got = await send(url, { method, headers, ...body })
          tally.add(`${method} ${purpose} ${url === page.url ? '' : 'with the form in the query'}`, isNoAnswer(got))
        }
    await clickWorks(page, client)
    tally.end(36)
  })

  it('rejects a forged consent form', async () => {
    const tally = new Tally('consent form CSRF')
    const client = await bridge.client()
    const page = await client.ask()
    const token = page.fields['csrf'] ?? ''
    const other = await bridge.client()
    const foreign = (await other.ask()).fields['csrf'] ?? ''
    const second = (await client.ask()).fields['csrf'] ?? ''
    const account = (await client.browser.page(`${bridge.issuer}/account`)).fields['csrf'] ?? ''
    expect(new Set([token, foreign, second, account, '']).size).to.equal(5)
    const cookie = cookiesFor(client.browser, page.url)
    const home = { Origin: bridge.url, Cookie: cookie }
    const forms: Record<string, () => Promise<Got>> = {
      'no token': () => post(page.url, { decision: 'allow' }, home),
      'an empty token': () => post(page.url, { decision: 'allow', csrf: '' }, home),
      'of another browser': () => post(page.url, { decision: 'allow', csrf: foreign }, home),
      'of another request of this browser': () => post(page.url, { decision: 'allow', csrf: second }, home),
      'of the account page': () => post(page.url, { decision: 'allow', csrf: account }, home),
      'a token that is cut': () => post(page.url, { decision: 'allow', csrf: token.slice(0, -1) }, home),
      'a token and more': () => post(page.url, { decision: 'allow', csrf: `${token}a` }, home),
      'a token twice': () =>
        send(page.url, {
          method: 'POST',
          headers: home,
          body: new URLSearchParams([
            ['csrf', token],
            ['csrf', token],
            ['decision', 'allow'],
          ]),
        }),
      'no decision': () => post(page.url, { csrf: token }, home),
      'two decisions': () =>
        send(page.url, {
          method: 'POST',
          headers: home,
          body: new URLSearchParams([
            ['csrf', token],
            ['decision', 'deny'],
            ['decision', 'allow'],
          ]),
        }),
      'another decision': () => post(page.url, { csrf: token, decision: 'Allow' }, home),
      'no cookie': () => post(page.url, { csrf: token, decision: 'allow' }, { Origin: bridge.url }),
      'a cookie of another browser': () =>
        post(
          page.url,
          { csrf: token, decision: 'allow' },
          { Origin: bridge.url, Cookie: cookiesFor(other.browser, page.url) },
        ),
      JSON: () =>
        send(page.url, {
          method: 'POST',
          headers: { ...home, 'Content-Type': 'application/json' },
          body: JSON.stringify({ csrf: token, decision: 'allow' }),
        }),
      'plain text': () =>
        send(page.url, {
          method: 'POST',
          headers: { ...home, 'Content-Type': 'text/plain' },
          body: `csrf=${token}&decision=allow`,
        }),
      'in the query': () => send(`${page.url}?csrf=${token}&decision=allow`, { method: 'POST', headers: home }),
    }
    for (const Origin of [
      'https://evil.example',
      'null',
      'http://evil.example:80',
      `${bridge.url}.evil.example`,
      'file://',
      '',
    ])
      forms[`from ${Origin}`] = () => post(page.url, { csrf: token, decision: 'allow' }, { Origin, Cookie: cookie })
    for (const [what, sent] of Object.entries(forms)) {
      // An empty Origin is one that undici does not send; then the token decides, and it is the right one.
      if (what === 'from ') continue
      tally.add(what, isNoAnswer(await sent()))
    }
    await clickWorks(page, client)
    tally.end(21)
  })

  it('accepts a consent form only once', async () => {
    const tally = new Tally('consent form sent again')
    const client = await bridge.client()
    const page = await client.ask()
    const cookie = cookiesFor(client.browser, page.url)
    await client.decide(page)
    for (const Cookie of [cookie, cookiesFor(client.browser, page.url)]) {
      const got = await post(page.url, { ...page.fields, decision: 'allow' }, { Origin: bridge.url, Cookie })
      tally.add('again', isRefused(got), got.location?.href ?? got.text)
    }
    tally.end(2)
  })
})
