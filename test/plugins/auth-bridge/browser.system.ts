// Tests the complete sign-in flow in chromium by keyboard, and the cookies that remain in the browser.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { type BridgeClient, type StartedBridge, startBridge } from '../../support/bridge.ts'
import { closePages, launchBrowser, watchFaults } from '../../support/browser.ts'
import { readClaims } from '../../support/form-browser.ts'
import { stopIdentityProviders } from '../../support/identity-provider.ts'
import { stopHosts } from '../../support/start-host.ts'

const MAX_TABS = 20

describe('auth-bridge in chromium', () => {
  let browser: Browser
  let bridge: StartedBridge
  let redirect: string
  const client = createServer((_, response) => {
    response
      .writeHead(200, { 'Content-Type': 'text/html' })
      .end('<!doctype html><title>Client</title><h1>Signed in</h1>')
  })

  before(async function () {
    browser = await launchBrowser(this)
    await new Promise<void>(resolve => client.listen(0, '127.0.0.1', resolve))
    redirect = `http://127.0.0.1:${(client.address() as AddressInfo).port}/done`
    const users = [
      { sub: 'ann', name: 'Ann Example', email: 'ann@acme.example', groups: ['engineering'] },
      { sub: 'bob', name: 'Bob Example', email: 'bob@acme.example' },
    ]
    bridge = await startBridge({ idp: { users, page: 'form' } })
  })
  after(async () => {
    await closePages()
    await stopHosts()
    await stopIdentityProviders()
    client.closeAllConnections()
    client.close()
  })

  /** Presses Tab until this is focused, and then Enter. */
  async function choose(tab: Page, text: string): Promise<void> {
    for (let presses = 0; presses < MAX_TABS; presses++) {
      await tab.keyboard.press('Tab')
      const focused = await tab.evaluate<string>('document.activeElement.textContent.trim()')
      if (focused.includes(text)) return tab.keyboard.press('Enter')
    }
    throw new Error(`nothing to press that says ${text}: ${await tab.content()}`)
  }

  const start = () => bridge.client({ client_name: 'The Editor', redirect_uris: [redirect] })
  const authorizeUrl = (handClient: BridgeClient) =>
    String(handClient.authorizeUrl({ resource: bridge.resource, scope: 'read admin', redirect_uri: redirect }))

  async function inContext(work: (tab: Page, context: BrowserContext) => Promise<void>) {
    const context = await browser.newContext({ javaScriptEnabled: false })
    try {
      await work(await context.newPage(), context)
    } finally {
      await context.close()
    }
  }

  it('completes sign-in and consent without mouse or script, and the client receives its code', () =>
    inContext(async (tab, context) => {
      const editor = await start()
      await tab.goto(authorizeUrl(editor))
      expect(new URL(tab.url()).origin).to.equal(bridge.idp.origin)
      await choose(tab, 'Ann Example')
      await tab.waitForURL(`${bridge.issuer}/interaction/*`)
      const faults = watchFaults(tab)
      expect(await tab.textContent('main'))
        .to.include('The Editor')
        .and.include('Ann Example')
        .and.include('admin')
      await choose(tab, 'Allow')
      await tab.waitForURL(`${redirect}?*`)
      expect(await tab.textContent('h1')).to.equal('Signed in')
      const tokens = await editor.exchange(new URL(tab.url()), { redirect_uri: redirect })
      expect(readClaims(tokens.access_token)).to.include({ sub: 'ann', scope: 'read admin', aud: bridge.resource })
      expect(faults).to.deep.equal([])
      const cookies = (await context.cookies()).filter(({ name }) => name.startsWith('mcp_'))
      expect(cookies.map(({ name }) => name)).to.include('mcp_session')
      for (const cookie of cookies) expect(cookie, cookie.name).to.include({ httpOnly: true, sameSite: 'Lax' })
    }))

  it('returns access_denied when the user denies consent', () =>
    inContext(async tab => {
      const editor = await start()
      await tab.goto(authorizeUrl(editor))
      await choose(tab, 'Bob Example')
      await tab.waitForURL(`${bridge.issuer}/interaction/*`)
      await choose(tab, 'Deny')
      await tab.waitForURL(`${redirect}?*`)
      expect(new URL(tab.url()).searchParams.get('error')).to.equal('access_denied')
    }))

  it('lists granted access on the account page, revokes it and signs out', () =>
    inContext(async tab => {
      const editor = await start()
      await tab.goto(authorizeUrl(editor))
      await choose(tab, 'Ann Example')
      await tab.waitForURL(`${bridge.issuer}/interaction/*`)
      await choose(tab, 'Allow')
      await tab.waitForURL(`${redirect}?*`)
      const { refresh_token = '' } = await editor.exchange(new URL(tab.url()), { redirect_uri: redirect })
      await tab.goto(`${bridge.issuer}/account`)
      expect(await tab.textContent('main')).to.include('The Editor')
      const [revoke] = await tab.$$('button[name=revoke]')
      await revoke?.focus()
      await tab.keyboard.press('Enter')
      await tab.waitForSelector('text=You removed the access of')
      expect(await editor.refresh(refresh_token)).to.include({ error: 'invalid_grant' })
      await choose(tab, 'Sign out')
      await tab.waitForSelector('text=You are signed out')
      await tab.goto(`${bridge.issuer}/account`)
      expect(await tab.textContent('main')).to.include('Sign in with')
    }))
})
