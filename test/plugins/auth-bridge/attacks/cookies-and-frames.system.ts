// Tests cookie attributes and the framing, caching and content security headers of each page.
import { expect } from 'chai'
import { type StartedBridge, startBridge, stopBridges } from '../../../support/bridge.ts'
import { HandClient } from '../../../support/form-browser.ts'
import { type Got, post, send } from './attacker.ts'
import { Tally } from './tally.ts'

const PUBLIC = 'https://localhost:8443'

/** A browser that takes the host for the one behind its public address. */
class Walker {
  readonly #bridge: StartedBridge
  readonly #home: string
  readonly jar = new Map<string, string>()
  readonly lines: string[] = []
  readonly pages: Array<{ readonly path: string; readonly got: Got }> = []

  constructor(bridge: StartedBridge, home: string) {
    this.#bridge = bridge
    this.#home = home
  }

  #keep(got: Got) {
    for (const line of got.headers.getSetCookie()) {
      this.lines.push(line)
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') this.jar.delete(name)
      else this.jar.set(name, value)
    }
    return got
  }

  get headers() {
    return { Cookie: [...this.jar].map(([name, value]) => `${name}=${value}`).join('; '), Origin: this.#home }
  }

  /** To the first page; by way of the provider. */
  async open(address: string | URL): Promise<Got> {
    let url = new URL(address)
    for (let redirects = 0; redirects < 20; redirects++) {
      if (url.origin === this.#bridge.idp.origin) {
        url = await this.#bridge.idp.signIn(url.href)
        continue
      }
      const got = this.#keep(
        await send(`${this.#bridge.url}${url.pathname}${url.search}`, { headers: { Cookie: this.headers.Cookie } }),
      )
      const next = got.location && new URL(got.headers.get('location') ?? '', url)
      this.pages.push({ path: url.pathname, got })
      if (!next || ![this.#home, this.#bridge.url, this.#bridge.idp.origin].includes(next.origin)) return got
      url = next
    }
    throw new Error(`too many redirects, the last one to ${url.pathname}`)
  }

  async submit(path: string, got: Got, button: Record<string, string>): Promise<Got> {
    const csrf = /name="csrf" value="([^"]+)"/.exec(got.text)?.[1] ?? ''
    const answer = this.#keep(await post(`${this.#bridge.url}${path}`, { csrf, ...button }, this.headers))
    this.pages.push({ path, got: answer })
    return answer
  }
}

describe('auth-bridge attacks: cookies and frames', () => {
  after(stopBridges)

  /** Everything that a person does, and what goes wrong for them. */
  async function walkAll(home: string | undefined): Promise<Walker> {
    const bridge = await startBridge(home === undefined ? {} : { config: { http: { port: 0, publicUrl: home } } })
    bridge.idp.redirects.add(`${home ?? bridge.url}/auth/callback`)
    const walker = new Walker(bridge, home ?? bridge.url)
    const client = await new HandClient(bridge.issuer).start()
    const resource = `${home ?? bridge.url}/mcp`
    for (const decision of ['allow', 'deny']) {
      const page = await walker.open(client.authorizeUrl({ resource }))
      expect(page.text).to.include('name="decision"')
      const path = walker.pages.at(-1)?.path ?? ''
      await walker.submit(path, page, { decision: 'x' })
      const answered = await walker.submit(path, page, { decision })
      const on = /url=([^"]+)"/.exec(answered.text)?.[1] ?? ''
      await walker.open(new URL(on.replaceAll('&#38;', '&').replaceAll('&amp;', '&'), bridge.url))
    }
    const stranger = new Walker(bridge, home ?? bridge.url)
    for (const path of [
      '/account',
      '/interaction/x',
      '/callback?code=x&state=y',
      '/authorize',
      '/authorize?client_id=x',
      '/authorize/x',
    ])
      await stranger.open(`${bridge.url}/auth${path}`)
    await stranger.open(client.authorizeUrl({ redirect_uri: 'https://evil.example/' }))
    walker.pages.push(...stranger.pages)
    await walker.open(`${bridge.url}/auth/account/sign-in`)
    const account = await walker.open(`${bridge.url}/auth/account`)
    expect(account.text).to.include('Ann Example')
    await walker.submit('/auth/account', account, { revoke: 'x' })
    bridge.idp.failing.token = { error: 'invalid_client' }
    await walker.open(`${bridge.url}/auth/account/sign-in`)
    bridge.idp.failing.token = undefined
    bridge.idp.denies = true
    await walker.open(`${bridge.url}/auth/account/sign-in`)
    await walker.submit('/auth/account', account, { signOut: 'yes' })
    return walker
  }

  for (const home of [PUBLIC, undefined]) {
    const where = home === undefined ? 'on this machine' : 'behind https'
    it(`sets HttpOnly and SameSite on cookies ${where}`, async () => {
      const tally = new Tally(`cookie attributes ${where}`)
      const { lines } = await walkAll(home)
      const names = new Set(lines.map(line => line.split('=')[0]?.replace(/_[\w-]{12}$/, '_*')))
      for (const line of lines) {
        const attributes = line.toLowerCase().split(/;\s*/).slice(1)
        const has = (attribute: string) => attributes.includes(attribute)
        const isOurs = has('httponly') && has('samesite=lax') && !attributes.some(one => one.startsWith('domain='))
        const isHost = !line.startsWith('__Host-') || (has('path=/') && has('secure'))
        const isSecure = home === undefined || (has('secure') && /^__(?:Host|Secure)-/.test(line))
        const isNarrow = has('path=/') === /session|browser/.test(line.split('=')[0] ?? '')
        tally.add('cookie', isOurs && isHost && isSecure && isNarrow, line)
      }
      if (home !== undefined) expect([...names]).to.include('__Host-mcp_session')
      tally.end(20)
    })

    it(`forbids framing, caching and scripts on pages ${where}`, async () => {
      const tally = new Tally(`framing headers ${where}`)
      const { pages } = await walkAll(home)
      const kinds = new Set<string>()
      for (const { path, got } of pages) {
        const { headers, status, text } = got
        const policy = headers.get('content-security-policy') ?? ''
        const isPage = text.includes('<html')
        if (isPage) kinds.add(/<title>([^<]*)/.exec(text)?.[1] ?? '')
        const noFrame = headers.get('x-frame-options') === 'DENY' && /frame-ancestors 'none'/.test(policy)
        const noScript =
          /default-src 'none'/.test(policy) && !/script-src|unsafe-eval/.test(policy) && !/<script/i.test(text)
        const noCache = /no-store/.test(headers.get('cache-control') ?? '')
        const noSniff = headers.get('x-content-type-options') === 'nosniff'
        const noReferrer = /^(?:no-referrer|same-origin)$/.test(headers.get('referrer-policy') ?? '')
        if (isPage)
          tally.add(`${path} ${status}`, noFrame && noScript && noCache && noSniff && noReferrer, [...headers])
        // A redirect has no page, and may carry a code.
        else if (status >= 300 && status < 400) tally.add(`${path} ${status}`, noCache && noReferrer, [...headers])
      }
      expect(kinds.size).to.be.at.least(7)
      tally.end(25)
    })
  }
})
