// A person with a browser in front of the bridge: signs in, allows clients, and takes that back; and the address on their
// machine that a client waits at.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { StartedBridge } from '../../support/bridge.ts'
import type { Browser } from '../../support/form-browser.ts'

/** What a page says, without its markup. */
const textOf = (html: string) =>
  html
    .replace(/<(style|title)>[\s\S]*?<\/\1>/g, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()

export class Person {
  readonly #bridge: StartedBridge
  readonly #browser: Browser
  /** Every authorization URL that a client sent them to. */
  readonly asked: URL[] = []
  /** The pages that asked whether a client may act for them. */
  readonly consents: string[] = []

  /** `sub`: who they are at the provider. */
  constructor(bridge: StartedBridge, sub = 'ann') {
    this.#bridge = bridge
    this.#browser = bridge.browser()
    bridge.idp.nextUser = sub
  }

  /** The scopes of each time that they were asked, sorted; without the one for refresh tokens. */
  get scopes(): string[][] {
    const named = this.asked.map(({ searchParams }) => searchParams.get('scope')?.split(' ') ?? [])
    return named.map(scopes => scopes.filter(scope => scope !== 'offline_access').sort())
  }

  /** Goes where a client sends them, allows it where they are asked, and ends where the client waits. */
  readonly answer = async (address: URL): Promise<URL> => {
    this.asked.push(address)
    const page = await this.#browser.open(address)
    if ('redirect' in page) return page.redirect
    if (page.status !== 200) throw new Error(`was shown ${page.status}: ${textOf(page.html)}`)
    this.consents.push(page.html)
    const next = await this.#browser.click(page, { decision: 'allow' })
    if ('html' in next) throw new Error(`got no further than ${next.url}: ${next.status} ${next.html}`)
    return next.redirect
  }

  /** Takes back what every client was allowed; how many there were. */
  async revokeAll(): Promise<number> {
    const page = await this.#browser.page(`${this.#bridge.issuer}/account`)
    const buttons = [...page.html.matchAll(/name="revoke" value="([^"]+)"/g)]
    for (const [, id = ''] of buttons) await this.#browser.click(page, { revoke: id })
    return buttons.length
  }
}

/** Where a client waits for the browser to come back, on a port of this machine. */
export interface Landing {
  readonly redirectUri: string
  /** The browser of the person goes there; what it brings. */
  arrive(url: URL): Promise<URLSearchParams>
}

const servers: Server[] = []

export async function startLanding(): Promise<Landing> {
  let brought: URLSearchParams | undefined
  const server = createServer((request, response) => {
    brought = new URL(request.url ?? '/', 'http://127.0.0.1').searchParams
    response.end('You may close this page.')
  })
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const redirectUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`
  return {
    redirectUri,
    async arrive(url) {
      brought = undefined
      await (await fetch(url)).text()
      if (!brought) throw new Error(`${url} is not where the client waits`)
      return brought
    },
  }
}

/** For `after`. */
export async function stopLandings(): Promise<void> {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
}
