// Tests open redirects through the redirect URI and every other parameter that can hold a URL (RFC 9700 4.11).
import { expect } from 'chai'
import { type BridgeClient, type StartedBridge, startBridge, stopBridges } from '../../../support/bridge.ts'
import { type Got, post, send } from './attacker.ts'
import { Tally } from './tally.ts'

const HOME = 'https://app.example/cb'
const NATIVE = 'http://127.0.0.1:9/callback'

const SPELLINGS = [
  ...['https://evil.example/', 'https://evil.example/cb', '//evil.example', '/\\evil.example', 'evil.example', '/'],
  ...[
    `${HOME}x`,
    `${HOME}/`,
    `${HOME}/x`,
    `${HOME}/..`,
    `${HOME}/../x`,
    `${HOME}?x=1`,
    `${HOME}#x`,
    `${HOME};x`,
    `${HOME}%00`,
  ],
  ...[
    'https://app.example',
    'https://app.example/',
    'https://app.example/c',
    'https://app.example/CB',
    'https://app.example/%63b',
  ],
  ...[
    'https://app.example//cb',
    'https://app.example/./cb',
    'https://app.example/x/../cb',
    'https://app.example/%2e/cb',
  ],
  ...[
    'https://app.example%2fcb',
    'https://app.example\\cb',
    'https:\\\\app.example\\cb',
    'https:/app.example/cb',
    'https:app.example/cb',
  ],
  ...[
    'https://app.example@evil.example/cb',
    'https://app.example%40evil.example/cb',
    'https://evil.example\\@app.example/cb',
  ],
  ...['https://user@app.example/cb', 'https://user:pass@app.example/cb', 'https://evil.example/https://app.example/cb'],
  ...[
    'https://app.example.evil.example/cb',
    'https://evilapp.example/cb',
    'https://x.app.example/cb',
    'https://app.example./cb',
  ],
  ...[
    'https://app.example:444/cb',
    'https://app.example:80/cb',
    'https://app.example:/cb',
    'https://app.example:0443/cb',
  ],
  ...[
    'http://app.example/cb',
    'HTTPS://app.example/cb',
    'https://APP.example/cb',
    'ftp://app.example/cb',
    'cursor://app.example/cb',
  ],
  ...['https://аpp.example/cb', 'https://app。example/cb', 'https://app.example／cb', 'https://app.ex\u00adample/cb'],
  ...['https://app.example/cb\n', ' https://app.example/cb', 'https://app.example/cb ', 'ht\ttps://app.example/cb'],
  ...['https://app.example/cb\r\nLocation: https://evil.example', 'https://app.example/cb%0d%0aX: y', `${HOME}\u0000`],
  ...[
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'blob:https://app.example/x',
    'about:blank',
    'urn:x:y',
  ],
  ...['http://127.0.0.1:9/callback/', 'http://127.0.0.1:9/callbac', 'http://127.0.0.1.evil.example:9/callback'],
  ...[
    'http://127.0.0.1@evil.example/callback',
    'http://127.0.0.1:9@evil.example/callback',
    'http://127.0.0.1:9\\@evil.example/callback',
  ],
  ...[
    'http://localhost:9/callback',
    'http://[::1]:9/callback',
    'http://127.0.0.2:9/callback',
    'https://127.0.0.1:9/callback',
  ],
  ...[
    'http://127.0.0.1:9/callback#x',
    'http://127.0.0.1:9/callback?x',
    'http://127.0.0.1:99999/callback',
    'http://0.0.0.0:9/callback',
  ],
]

const SAME = new Set([
  ...[`${HOME}?x=1`, 'https://app.example:/cb', 'https://app.example:0443/cb', 'HTTPS://app.example/cb'],
  ...['https://APP.example/cb', 'https://app。example/cb'],
])

const PLACES = [
  'https://evil.example/',
  '//evil.example/',
  '/\\evil.example',
  'javascript:alert(1)',
  '%2f%2fevil.example',
]

/** Names that servers have had for where to go afterwards. */
const TARGETS = [
  ...['return_to', 'returnTo', 'redirect', 'redirect_uri', 'redirect_url', 'next', 'target', 'url', 'continue', 'rurl'],
  ...[
    'post_logout_redirect_uri',
    'post_login',
    'goto',
    'iss',
    'client_uri',
    'state',
    'uid',
    'action',
    'prompt',
    'label',
  ],
]

describe('auth-bridge attacks: open redirects', () => {
  let bridge: StartedBridge
  let web: BridgeClient
  let native: BridgeClient
  const homes = () => [bridge.url, bridge.idp.origin]

  before(async () => {
    bridge = await startBridge({
      options: { clients: { redirects: ['https://app.example/cb', 'http://127.0.0.1:*/**'] } },
    })
    web = await bridge.client({ redirect_uris: [HOME] })
    native = await bridge.client({ redirect_uris: [NATIVE] })
    await web.logIn({ redirect_uri: HOME }).catch(() => undefined)
  })
  after(stopBridges)

  const staysHome = ({ location, text }: Got) =>
    (location === undefined || homes().includes(location.origin)) &&
    !/<(?:a|form|meta)[^>]*(?:evil\.example|javascript:|app\.example)/i.test(text)

  /** An authorization request, well or badly formed: the error must not be taken there either. */
  const asks = (client: BridgeClient, redirect_uri: string) => [
    client.authorizeUrl({ redirect_uri, resource: bridge.resource }),
    client.authorizeUrl({ redirect_uri, response_type: 'token' }),
    client.authorizeUrl({ redirect_uri, prompt: 'none' }),
  ]

  it('sends neither codes nor errors to an unregistered redirect URI', async () => {
    const tally = new Tally('redirect_uri that was not registered')
    let number = 0
    for (const uri of SPELLINGS)
      for (const client of [web, native])
        for (const url of asks(client, uri)) {
          number += 1
          // RFC 8252 7.3: the port of a native client is its own. One address begins no more than 300 sign-ins in a minute.
          if (number % 250 === 0) ({ bridge, web, native } = await restarted())
          const bent = new URL(url)
          const target = new URL(`${bridge.issuer}/authorize?${bent.searchParams}`)
          target.searchParams.set('client_id', client === web ? web.clientId : native.clientId)
          const got = await send(target)
          tally.add(
            JSON.stringify(uri),
            got.status >= 400 && got.status < 500 && staysHome(got),
            got.location?.href ?? got.status,
          )
        }
    tally.end(SPELLINGS.length * 6)
  })

  async function restarted() {
    const next = await startBridge({
      options: { clients: { redirects: ['https://app.example/cb', 'http://127.0.0.1:*/**'] } },
    })
    return {
      bridge: next,
      web: await next.client({ redirect_uris: [HOME] }),
      native: await next.client({ redirect_uris: [NATIVE] }),
    }
  }

  it('rejects registrations with an unsafe redirect URI', async () => {
    const tally = new Tally('registration of a redirect URI that no pattern has')
    // Spellings that every reader takes for a place that the patterns have are no attack.
    const all = SPELLINGS.filter(uri => !/^http:\/\/127\.0\.0\.1:9\/callba[^#]*$/.test(uri) && !SAME.has(uri))
    for (const [index, uri] of all.entries()) {
      if (index % 50 === 0) ({ bridge, web, native } = await restarted())
      // Beside a good one, too.
      const response = await web.register({ redirect_uris: index % 2 ? [uri] : [HOME, uri] })
      tally.add(JSON.stringify(uri), response.status === 400, await response.text())
    }
    tally.end(60)
  })

  it('ignores redirect targets in every parameter of the user pages', async () => {
    const tally = new Tally('other parameters that name a place')
    const page = await native.ask()
    expect(page.html).to.include('decision')
    for (const name of TARGETS)
      for (const place of PLACES) {
        for (const path of ['/account', '/callback', '/interaction/x', '/authorize']) {
          const got = await send(`${bridge.issuer}${path}?${new URLSearchParams({ [name]: place })}`)
          tally.add(`${path} ${name}=${place}`, staysHome(got), got.location?.href)
        }
        const cookie = [...native.browser.cookies.values()].map(({ pair }) => pair).join('; ')
        const form = { ...page.fields, decision: 'x', [name]: place }
        const got = await post(page.url, form, { Origin: bridge.url, Cookie: cookie })
        tally.add(`consent form ${name}=${place}`, staysHome(got), got.location?.href)
      }
    tally.end(TARGETS.length * PLACES.length * 5)
  })

  it('ignores foreign hosts in Host and forwarding headers', async () => {
    const tally = new Tally('host headers')
    const page = await native.ask()
    const cookie = [...native.browser.cookies.values()].map(({ pair }) => pair).join('; ')
    const names = ['X-Forwarded-Host', 'Forwarded', 'X-Host', 'X-Original-Host', 'X-Original-URL', 'X-Rewrite-URL']
    const urls = [native.authorizeUrl({ resource: bridge.resource }), page.url, `${bridge.issuer}/account/sign-in`]
    for (const name of [...names, 'X-Forwarded-Prefix', 'X-Forwarded-Proto', 'Origin', 'Referer'])
      for (const value of ['evil.example', 'host=evil.example;proto=https', 'https://evil.example/'])
        for (const url of [...urls, `${bridge.issuer}/.well-known/openid-configuration`]) {
          const got = await send(url, { headers: { [name]: value, Cookie: cookie } })
          const elsewhere = new URL(got.location?.searchParams.get('redirect_uri') ?? bridge.url).origin !== bridge.url
          tally.add(
            `${name} ${value} ${url}`,
            staysHome(got) && !elsewhere && (got.status >= 400 || !got.text.includes('evil.example/')),
            got.location?.href,
          )
        }
    tally.end(120)
  })

  it('rejects paths that would become off-site links on pages', async () => {
    const tally = new Tally('paths')
    for (const path of [
      '//evil.example',
      '/%2f%2fevil.example',
      '/\\evil.example',
      '/..//evil.example',
      '/interaction//evil.example',
    ])
      for (const base of ['/auth', '/auth/interaction', '/auth/account', '/auth/authorize', '']) {
        const got = await send(`${bridge.url}${base}${path}`)
        tally.add(base + path, staysHome(got), got.location?.href)
      }
    tally.end(25)
  })
})
