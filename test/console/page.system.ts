// Tests the page of the operator console in chromium: every screen, accessibility, keyboard, hostile text, and many calls.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { bundleConsole } from '../../build/bundle-console.ts'
import { closePages, launchBrowser, watchFaults } from '../support/browser.ts'
import { ATTACK, type ConsoleApi, callRow, startConsoleApi, tick } from '../support/console-api.ts'

/** Evaluated, because the policy of the page forbids added scripts. */
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const runAxe = (
  part: string,
  options: object,
) => `axe.run('${part}', { ...${JSON.stringify(options)}, resultTypes: ['violations'] })
  .then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))`
const ALL_RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
/** Views of a desktop and a phone. The dark theme differs only in colors, which do not depend on the width. */
const VIEWS = [
  { width: 1_280, colorScheme: 'light', options: { runOnly: ALL_RULES } },
  { width: 1_280, colorScheme: 'dark', options: { runOnly: ['color-contrast'] } },
  {
    width: 390,
    colorScheme: 'light',
    options: { runOnly: ALL_RULES, rules: { 'color-contrast': { enabled: false } } },
  },
] as const

/** Each screen, and a text that it shows once its data has arrived. */
const SCREENS = [
  ['/', 'Busiest tools'],
  ['/calls', 'search_orders'],
  ['/denials', 'unauthorized'],
  ['/sessions', 'claude-code'],
  ['/tasks', 'export_report'],
  ['/upstreams', 'tickets'],
  ['/routes', 'Protected'],
  ['/tools', 'Withheld from clients'],
  ['/access', 'scope orders:read'],
  ['/try', 'Number of the customer'],
  ['/clients', 'Desk'],
  ['/audit', '41058'],
  ['/config', 'http.port'],
] as const

/** Screens with an open drawer. */
const DRAWERS = [
  '/calls?seq=16',
  '/calls?seq=9',
  '/calls?seq=7',
  '/sessions?session=b',
  '/tasks?task=task-0',
  '/upstreams?server=github',
  '/upstreams?server=tickets',
  '/routes?route=/mcp',
  '/tools?path=/mcp&kind=tools&name=get_invoice',
  '/tools?path=/mcp&kind=tools&name=cancel_order',
  '/audit?line=41005',
  '/config?key=http.port',
]

/** Screens with a list, the list of a stream, a matrix, and a form. Other lists are the same component. */
const KEYBOARD: readonly string[] = ['/calls', '/access', '/try', '/config']
const FIRST = 'text=Busiest tools'
const MAX_TABS = 200

describe('Page of the console in chromium', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-host-console-'))
  let browser: Browser
  let api: ConsoleApi
  let shared: Page

  before(async function () {
    browser = await launchBrowser(this)
    await bundleConsole(folder)
    api = await startConsoleApi(folder)
    shared = await newPage()
    await shared.goto(api.loginUrl)
    await shared.waitForSelector(FIRST)
  })
  beforeEach(() => api.reset())
  after(async () => {
    await closePages()
    api.close()
    rmSync(folder, { recursive: true })
  })

  type Work = (page: Page, context: BrowserContext) => Promise<void>

  async function newPage(): Promise<Page> {
    const context = await browser.newContext()
    // Detects hangs only.
    context.setDefaultTimeout(120_000)
    return context.newPage()
  }

  async function watch(page: Page, url: string, work: Work) {
    try {
      await page.setViewportSize({ width: 1_280, height: 900 })
      await page.emulateMedia({ colorScheme: null })
      const outside: string[] = []
      page.on('request', request => {
        const { protocol, origin } = new URL(request.url())
        if (protocol !== 'data:' && origin !== api.origin) outside.push(request.url())
      })
      const faults = watchFaults(page)
      await page.goto(url)
      await work(page, page.context())
      expect(outside).to.deep.equal([])
      // A stream that ends with its page is no fault, nor a refused login. Violations of the Content-Security-Policy are console errors.
      expect(faults.filter(fault => !/net::ERR_ABORTED|status of 401/.test(fault))).to.deep.equal([])
      expect(await page.evaluate('window.attacked')).to.equal(undefined)
    } finally {
      for (const event of ['request', 'console', 'requestfailed', 'pageerror']) page.removeAllListeners(event)
    }
  }

  /** Tests share one page with a login, because a new context needs two seconds of CPU time for the first screen. */
  const withPage = (path: string, work: Work) => watch(shared, api.origin + path, work)

  async function withOwnPage(work: Work) {
    // The shared page would send requests.
    await shared.goto('about:blank')
    const page = await newPage()
    api.reset()
    await watch(page, api.loginUrl, async (...found) => {
      await page.waitForSelector(FIRST)
      await work(...found)
    })
    await page.context().close()
  }

  const waitForText = (page: Page, text: string) => page.waitForSelector(`main >> text=${text}`)
  const open = async (page: Page, path: string, text: string) => {
    await page.goto(api.origin + path)
    await waitForText(page, text)
  }

  /** Checks every view without reloading the page. */
  async function checkAccessibility(page: Page, where: string, part = 'html') {
    if (!(await page.evaluate(`'axe' in window`))) await page.evaluate(AXE)
    for (const { width, colorScheme, options } of VIEWS) {
      await page.setViewportSize({ width, height: 844 })
      await page.emulateMedia({ colorScheme })
      await page.evaluate(`document.getAnimations().forEach(animation => animation.finish())`)
      expect(await page.evaluate(runAxe(part, options)), `${where}, ${width} px, ${colorScheme}`).to.deep.equal([])
      expect(await page.evaluate('document.documentElement.scrollWidth'), where).to.be.at.most(width)
    }
  }

  it('passes all axe rules and contains no markup of others on every screen', () =>
    withPage('/', async page => {
      const check = async (path: string, part?: string) => {
        const markup = 'document.querySelectorAll("img, main script, dialog script").length'
        expect(await page.evaluate(markup), path).to.equal(0)
        await checkAccessibility(page, path, part)
      }
      // Without a new page, which would have to load again. Other tests open URLs of screens and drawers.
      const show = (path: string) => page.evaluate(`history.pushState(null, '', '${path}')`)
      for (const [path, text] of SCREENS) {
        await show(path)
        await page.waitForSelector(`main >> text=${text}`)
        api.send(tick(Date.now()))
        await check(path)
      }
      for (const path of DRAWERS) {
        await show(path.replace(/\?.*/, ''))
        await page.waitForSelector('dialog[open]', { state: 'detached' })
        await show(path)
        await page.waitForSelector('dialog[open]')
        // The screen behind the dialog was already checked.
        await check(path, 'dialog[open]')
      }
    }))

  it('removes the token from the URL, logs out, and shows the login for an invalid token', () =>
    withOwnPage(async page => {
      expect(page.url()).to.equal(`${api.origin}/`)
      expect(api.requests[0]).to.deep.equal({ method: 'POST', path: '/api/login', body: { token: 'one-time' } })
      await page.goBack().catch(() => undefined)
      expect(page.url()).not.to.include('one-time')
      await page.goto(`${api.origin}/calls`)
      await page.click('text=Log out')
      await page.waitForSelector('input[type=password]')
      await page.goto(`${api.origin}/#t=used`)
      await page.waitForSelector('#login-error')
      await page.fill('input[type=password]', `${api.origin}/#t=one-time`)
      await page.keyboard.press('Enter')
      await page.waitForSelector('text=Live calls')
    }))

  it('shares the secret of a login with open tabs only', () =>
    withOwnPage(async (page, context) => {
      const second = await context.newPage()
      await second.goto(`${api.origin}/calls`)
      await second.waitForSelector('main >> text=search_orders')
      api.send({ event: 'calls', node: 'n1', calls: [{ ...callRow(900), name: 'brand_new' }], skipped: 0 })
      await second.waitForSelector('text=brand_new')
      await page.goto('about:blank')
      await second.close()
      const third = await context.newPage()
      await third.goto(`${api.origin}/calls`)
      await third.waitForSelector('input[type=password]')
      await third.goto(api.loginUrl)
      await third.waitForSelector('text=Busiest tools')
    }))

  it('shows hostile text of clients and servers as text', () =>
    withPage('/calls?seq=7', async page => {
      await page.waitForSelector('dialog[open] >> text=U+202E')
      await page.goto(`${api.origin}/calls?seq=9`)
      await page.waitForSelector('dialog[open]')
      expect(await page.textContent('dialog[open]')).to.include(ATTACK)
      for (const path of ['/tools', '/tools?path=/mcp&kind=tools&name=cancel_order']) {
        await page.goto(`${api.origin}${path}`)
        const text = await page.textContent(`${path === '/tools' ? 'main' : 'dialog[open]'} pre >> text=was`)
        expect(text, path).to.include(`was  none\nnow  readU+202Etxt.exe ${ATTACK}`)
      }
    }))

  it('shows the upstream server of a call and its duration, and filters by server', () =>
    withPage('/calls', async page => {
      await waitForText(page, 'search_orders')
      await page.fill('input[placeholder^=tool]', 'github')
      await page.waitForSelector('tr[data-row] >> nth=1', { state: 'detached' })
      await page.click('tr[data-row]')
      await page.waitForSelector('dialog[open] dt:has-text("Upstream duration") + dd:has-text("314 ms")')
    }))

  it('shows the command that adds a route to the selected client', () =>
    withPage('/routes?route=/mcp', async page => {
      await page.selectOption('dialog[open] select', 'cursor')
      await page.waitForSelector('dialog >> text=npx mcp-host connect cursor https://tools.acme.example/mcp')
    }))

  it('adds calls of the stream, filters and pauses', () =>
    withPage('/calls', async page => {
      await waitForText(page, 'search_orders')
      api.send({ event: 'calls', node: 'n1', calls: [{ ...callRow(900), name: 'brand_new' }], skipped: 12 })
      await page.waitForSelector('text=brand_new')
      await page.waitForSelector('text=12 more not sent')
      await page.fill('input[placeholder^=tool]', 'brand_new')
      await page.waitForSelector('tr[data-row] >> nth=1', { state: 'detached' })
      expect(page.url()).to.include('q=brand_new')
      await page.click('text=Pause')
      api.send({ event: 'calls', node: 'n1', calls: [{ ...callRow(901), name: 'brand_new' }], skipped: 0 })
      await page.waitForSelector('text=1 new')
      expect(await page.locator('tr[data-row]').count()).to.equal(1)
      await page.click('text=Resume')
      await page.waitForSelector('tr[data-row] >> nth=1')
    }))

  it('renders only visible rows and stays responsive with 10,000 calls per second', () =>
    withPage('/calls', async page => {
      await waitForText(page, 'search_orders')
      for (let batch = 1; batch <= 15; batch++) {
        const calls = Array.from({ length: 200 }, (_, index) => callRow(batch * 10_000 + index))
        api.send({ event: 'calls', node: 'n1', calls, skipped: 9_800 })
        api.send(tick(Date.now()))
        await page.waitForSelector(`tr[data-row] >> nth=0`)
      }
      await page.waitForSelector('text=2,000 calls')
      expect(await page.locator('tr[data-row]').count()).to.be.lessThan(60)
      // The input of the operator is applied while the batches arrive.
      await page.fill('input[placeholder^=tool]', 'req-150199')
      await page.waitForSelector('tr[data-row] >> nth=1', { state: 'detached' })
    }))

  it('searches with /, opens a hit with Enter and focuses the title of the screen', () =>
    withPage('/', async page => {
      await page.waitForSelector(FIRST)
      await page.keyboard.press('/')
      await page.keyboard.type('order')
      await page.waitForSelector('[role=option]')
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Enter')
      await page.waitForURL('**/routes?route=*')
      await page.waitForSelector('dialog[open]')
      await page.keyboard.press('Escape')
      await page.waitForSelector('dialog[open]', { state: 'detached' })
      expect(await page.title()).to.include('Routes')
    }))

  it('reaches screens and their details by keyboard', () =>
    withPage('/', async page => {
      await page.waitForSelector(FIRST)
      const press = async (isWanted: string, key: string) => {
        for (let presses = 0; presses < MAX_TABS; presses++) {
          await page.keyboard.press('Tab')
          if (await page.evaluate(`(element => ${isWanted})(document.activeElement)`)) return page.keyboard.press(key)
        }
        throw new Error(`not reachable by keyboard: ${isWanted}`)
      }
      const links = await page.locator('nav a').evaluateAll(all => all.map(link => link.getAttribute('href')))
      expect(links).to.include.members(SCREENS.map(([path]) => path))
      for (const [path, text] of SCREENS.filter(([path]) => KEYBOARD.includes(path))) {
        await page.evaluate('document.activeElement.blur()')
        await press(`element.getAttribute('href') === '${path}'`, 'Enter')
        await page.waitForSelector(`main >> text=${text}`)
        expect(await page.evaluate('document.activeElement.tagName'), path).to.equal('H1')
        if (path === '/try') continue
        await press(path === '/access' ? `element.closest('.matrix td')` : `element.closest('tr[data-row]')`, 'Enter')
        await page.waitForSelector('dialog[open]')
        await page.keyboard.press('Escape')
        await page.waitForSelector('dialog[open]', { state: 'detached' })
      }
    }))

  it('calls a tool with the values of the form, and a destructive one after confirmation', () =>
    withPage('/try', async page => {
      await waitForText(page, 'Number of the customer')
      await page.fill('.field:has(> label:has-text("customer")) input', 'c7')
      await page.selectOption('.field:has(> label:has-text("state")) select', { label: 'shipped' })
      await page.click('text=Add tags')
      await page.click('text=Add item')
      await page.fill('fieldset input', 'urgent')
      await page.click('form button[type=submit]')
      await page.waitForSelector('text=3 orders')
      expect(api.requests.at(-1)).to.deep.equal({
        method: 'POST',
        path: '/api/try',
        body: {
          path: '/mcp',
          tool: 'search_orders',
          arguments: { customer: 'c7', state: 'shipped', limit: 20, tags: ['urgent'] },
        },
      })
      await open(page, '/try?path=/mcp&tool=cancel_order', 'destructive')
      await page.fill('.field:has(> label:has-text("customer")) input', 'c7')
      await page.selectOption('.field:has(> label:has-text("state")) select', { label: 'open' })
      const before = api.requests.filter(({ path }) => path === '/api/try').length
      await page.click('form button[type=submit]')
      await page.waitForSelector('dialog[open]')
      expect(api.requests.filter(({ path }) => path === '/api/try')).to.have.lengthOf(before)
      await page.click('dialog[open] >> button.danger')
      await page.waitForSelector('text=3 orders')
      expect(api.requests.findLast(({ path }) => path === '/api/try')?.body).to.include({ confirm: true })
    }))

  it('ends a session only after confirmation', () =>
    withPage('/sessions?session=a', async page => {
      const ended = () => api.requests.filter(({ path }) => path === '/api/actions/end-session')
      await page.click('dialog[open] >> text=End session')
      await page.waitForSelector('dialog.confirm')
      expect(ended()).to.deep.equal([])
      await page.click('dialog.confirm >> button.danger')
      await page.waitForSelector('dialog[open]', { state: 'detached' })
      expect(ended().map(({ body }) => body)).to.deep.equal([{ handle: 'a', node: 'n1', confirm: true }])
    }))

  it('shows the result of a reload for each node', () =>
    withPage('/config', async page => {
      await waitForText(page, 'http.port')
      await page.click('text=Reload all nodes')
      await page.click('dialog.confirm >> button.main')
      const list = page.getByRole('region', { name: 'Reload by node' })
      await list.waitFor()
      await page.waitForSelector('dialog[open]', { state: 'detached' })
      expect(await list.getByRole('listitem').allTextContents()).to.have.length(2)
      await checkAccessibility(page, 'reload')
    }))

  it('shows how to enable a plugin that is off, and empty states', () => {
    api.replace('audit', {
      node: 'n1',
      at: 0,
      scope: 'process',
      available: false,
      reason: 'The plugin audit is off.',
      fix: 'audit: { file: "audit.jsonl" }',
    })
    return withPage('/audit', async page => {
      await waitForText(page, 'The plugin audit is off.')
      expect(await page.textContent('main')).to.include('audit: { file: "audit.jsonl" }')
      const off = { node: 'n1', at: 0, scope: 'process', available: false, reason: 'The plugin auth-bridge is off.' }
      api.replace('grants', off)
      await open(page, '/clients', off.reason)
      api.replace('denials', { node: 'n1', at: 0, scope: 'process', available: true, groups: [], other: 0 })
      await open(page, '/denials', 'No denials')
      await checkAccessibility(page, 'empty')
    })
  })

  it('sends no requests while the tab is hidden', () =>
    withOwnPage(async page => {
      await page.evaluate(`Object.defineProperty(document, 'visibilityState', { get: () => window.visible ?? 'hidden' })
        document.dispatchEvent(new Event('visibilitychange'))`)
      const before = api.requests.length
      // A hidden page has no timers left: three intervals of the overview pass in the page's own clock.
      await page.clock.install()
      await page.clock.fastForward(15_000)
      expect(api.requests).to.have.lengthOf(before)
      await page.evaluate(`window.visible = 'visible'; document.dispatchEvent(new Event('visibilitychange'))`)
      await page.waitForResponse(`${api.origin}/api/overview`)
    }))
})
