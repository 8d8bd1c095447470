// Tests the forms of the auth-bridge pages in chromium by keyboard, and the redirects that follow.
import { expect } from 'chai'
import type { Page as Tab } from 'playwright-core'
import { createPages } from '../../../plugins/auth-bridge/pages/index.ts'
import type { Page } from '../../../plugins/families/pages/index.ts'
import { watchFaults } from '../../support/browser.ts'
import { eventually } from '../../support/eventually.ts'
import { ACCOUNT, IN_APP, KNOWN, SETTINGS, UNVERIFIED } from './page-examples.ts'
import { listen } from './page-server.ts'
import { closeTabs, openTabs, type Tabs } from './page-tabs.ts'

const pages = createPages(SETTINGS)

let tabs: Tabs
before(async function () {
  tabs = await openTabs(this)
})
after(closeTabs)

/** What is focused: its text, or its name. */
const focused = (tab: Tab) =>
  tab.evaluate<string>('document.activeElement === document.body ? "" : document.activeElement.textContent.trim()')

describe('auth-bridge pages: keyboard navigation', () => {
  it('keeps the tab order in reading order with a visible focus', async () => {
    await tabs.withPage(pages.consent(UNVERIFIED), async tab => {
      const seen: string[] = []
      for (let stops = 0; stops < 20; stops++) {
        await tab.keyboard.press('Tab')
        const name = await focused(tab)
        if (name === '' || seen.includes(name)) break
        seen.push(name)
        const outline = await tab.evaluate('getComputedStyle(document.activeElement).outline')
        expect(outline, name).to.match(/ solid 3px$/)
      }
      expect(seen).to.deep.equal(['Deny', 'Allow', 'Your clients', 'Technical details', 'help@acme.example'])
    })
  })

  it('opens the technical details', async () => {
    await tabs.withPage(pages.consent(UNVERIFIED), async tab => {
      expect(await tab.isVisible('details dd')).to.equal(false)
      await tab.focus('summary')
      await tab.keyboard.press('Enter')
      expect(await tab.textContent('details dd >> nth=1')).to.equal(UNVERIFIED.redirect.uri)
      expect(await tab.isVisible('details dd')).to.equal(true)
    })
  })

  it('ignores Enter without a focused button, and Deny is the default submit button', async () => {
    const { length } = tabs.server.posted
    await tabs.withPage(pages.consent(UNVERIFIED), async tab => {
      expect(await focused(tab)).to.equal('')
      for (const key of ['Enter', 'Space', 'Enter']) await tab.keyboard.press(key)
      expect(await tab.evaluate('document.querySelector("form :is(button, [type=submit])").value')).to.equal('deny')
      await tab.click('button[value=deny]')
      await tab.waitForURL('**/resume')
    })
    expect(tabs.server.posted.slice(length).map(({ fields }) => fields[1])).to.deep.equal([['decision', 'deny']])
  })

  // Its first stop is the client's own page.
  for (const [decision, stops, key] of [
    ['deny', 2, 'Enter'],
    ['deny', 2, 'Space'],
    ['allow', 3, 'Enter'],
    ['allow', 3, 'Space'],
  ] as const) {
    it(`answers ${decision} with ${key}`, async () => {
      const { length } = tabs.server.posted
      await tabs.withPage(pages.consent(KNOWN), async tab => {
        for (let count = 0; count < stops; count++) await tab.keyboard.press('Tab')
        expect((await focused(tab)).toLowerCase()).to.equal(decision)
        await tab.keyboard.press(key)
        await tab.waitForURL('**/resume')
        const path = new URL(tab.url()).pathname.replace('/resume', '')
        const fields = [
          ['csrf', 'a-token'],
          ['decision', decision],
        ]
        expect(tabs.server.posted.slice(length)).to.deep.equal([{ path, fields, origin: tabs.server.url }])
      })
    })
  }

  for (const [name, stops, fields] of [
    ['Remove access of “Claude Code”', 1, ['revoke', 'grant-1']],
    ['Remove access of “Claude”', 2, ['revoke', 'grant-2']],
    ['Sign out', 3, ['signOut', 'yes']],
  ] as const) {
    it(`submits the action: ${name}`, async () => {
      const { length } = tabs.server.posted
      await tabs.withPage(pages.account(ACCOUNT), async tab => {
        for (let count = 0; count < stops; count++) await tab.keyboard.press('Tab')
        expect(await focused(tab)).to.equal(name)
        await tab.keyboard.press('Enter')
        await tab.waitForURL('**/resume')
        expect(tabs.server.posted.slice(length).map(posted => posted.fields)).to.deep.equal([
          [['csrf', 'a-token'], fields],
        ])
      })
    })
  }
})

describe('auth-bridge pages: redirect after consent', () => {
  let elsewhere: string
  let client: string
  before(async () => {
    const say = { 'content-type': 'text/html' }
    elsewhere = await listen((_, response) => response.writeHead(200, say).end('<h1>Elsewhere</h1>'))
    client = await listen(({ url }, response) => {
      if (url?.startsWith('/further')) response.writeHead(302, { location: `${elsewhere}/end` }).end()
      else response.writeHead(200, say).end('<h1>The client</h1>')
    })
  })

  /** Allows; `answer` is where the form then leads. */
  const allow = (redirect: string, answer: Page | string, work: (tab: Tab, faults: string[]) => Promise<void>) =>
    tabs.inTab(async tab => {
      const faults = watchFaults(tab)
      await tab.goto(tabs.server.show(pages.consent({ ...KNOWN, redirect: { uri: redirect } }), answer))
      await tab.click('button[value=allow]', { noWaitAfter: true })
      await work(tab, faults)
    })

  const arrives = (redirect: string, answer: Page | string, end: string) =>
    allow(redirect, answer, async (tab, faults) => {
      await tab.waitForURL(end)
      expect(faults).to.deep.equal([])
    })

  const isRefused = (redirect: string, answer: string) =>
    allow(redirect, answer, async (_, faults) => {
      await eventually(
        'the browser refuses',
        () => faults.join(),
        text => text.includes('form-action'),
      )
    })

  it('leads to a loopback redirect URI', () =>
    arrives(`${client}/cb`, pages.leave(`${client}/cb?code=1`), `${client}/cb?code=1`))

  it('leads to an IPv6 redirect URI', async () => {
    const six = await listen((_, response) => response.end('six'), '::1')
    await arrives(`${six}/cb`, pages.leave(`${six}/cb?code=1`), `${six}/cb?code=1`)
  })

  /** The browser knows no such app: what it would open is what it says that it could not. */
  const opens = (answer: Page | string) =>
    allow(IN_APP.redirect.uri, answer, async (tab, faults) => {
      await eventually(
        'the browser would open the app',
        () => faults,
        found => found.length > 0,
      )
      expect(faults).to.deep.equal(['cursor://anysphere.cursor-mcp/oauth/callback?code=1: net::ERR_ABORTED'])
      // Chromium asks about the app over the tab, which blocks the next page.
      await tab.close()
    })

  it('is blocked by the policy without the intermediate page', async () => {
    await isRefused(`${client}/cb`, `${client}/cb?code=1`)
    await isRefused(`${client}/cb`, `${IN_APP.redirect.uri}?code=1`)
    await isRefused(IN_APP.redirect.uri, `${client}/cb?code=1`)
  })

  it('continues when the client redirects further', () =>
    arrives(`${client}/further`, pages.leave(`${client}/further?code=1`), `${elsewhere}/end`))

  it('leads to an app scheme, and to a URL with every special character', async () => {
    await opens(pages.leave(`${IN_APP.redirect.uri}?code=1`))
    const odd = `${client}/cb?code=a%22'%3C;,=&state=%20&x="<>\`#'"`
    await arrives(`${client}/cb`, pages.leave(odd), new URL(odd).href)
  })
})
