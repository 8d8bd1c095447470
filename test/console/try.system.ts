// Calls tools from the console in chromium: forms and URLs that a tool requests, progress, cancellation, and structured results.
import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { CORE, startCli, stopAll } from '../cli/run-cli.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { closePages, launchBrowser, watchFaults } from '../support/browser.ts'
import { modern } from '../support/rpc.ts'

const CONFIG = `import { defineConfig, defineTool } from '${CORE}'
let release
const released = new Promise(resolve => { release = resolve })
const annotations = { readOnlyHint: true }
const seat = {
  type: 'object',
  properties: {
    seat: { type: 'string', title: 'Seat', minLength: 1 },
    meal: { type: 'string', title: 'Meal', enum: ['none', 'vegan'], default: 'none' },
  },
  required: ['seat'],
}
const book = defineTool({
  name: 'book',
  annotations,
  async handler(_, { elicit }) {
    const { action, content } = await elicit({ message: 'Your seat?', requestedSchema: seat })
    if (action !== 'accept') return { booked: false, action }
    const paid = await elicit({ mode: 'url', message: 'Pay there.', url: 'https://pay.example/seat' })
    return { booked: true, ...content, paid: paid.action }
  },
})
const pack = defineTool({
  name: 'pack',
  annotations,
  async handler(_, { progress }) {
    progress(1, 3, 'packing the first box')
    await released
    return 'all boxes are packed'
  },
})
const stuck = defineTool({
  name: 'stuck',
  annotations,
  handler: (_, { signal, progress }) => {
    progress(1)
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  },
})
const unlock = defineTool({ name: 'unlock', annotations, handler: () => { release(); return 'unlocked' } })
export default defineConfig({
  server: { name: 'acme', version: '1.0.0' },
  http: { port: 0 },
  toolsets: { all: [book, pack, stuck, unlock] },
  routes: { '/mcp': { toolsets: 'all' } },
  plugins: { 'transport-streamable': {}, console: { port: 0, actions: true } },
})
`

describe('Calls of tools from the console in chromium', () => {
  let browser: Browser
  let page: Page
  let url: string
  let faults: string[] = []

  before(async function () {
    browser = await launchBrowser(this)
    const running = startCli(['dev'], await makeFolder({ 'mcp.config.ts': CONFIG }))
    const [, loginUrl = ''] = await running.printed(/^ {2}Console {2}(http:\/\/127\.0\.0\.1:\d+\/#t=\S+)$/m)
    url = await running.listening()
    page = await browser.newPage()
    faults = watchFaults(page)
    await page.goto(loginUrl)
    await page.waitForSelector('text=Busiest tools')
  })
  after(async () => {
    await closePages()
    await stopAll()
    await removeFolders()
  })
  // Chromium reports streamed responses as aborted, too.
  afterEach(() => expect(faults.splice(0).filter(fault => !fault.includes('net::ERR_ABORTED'))).to.deep.equal([]))

  async function call(tool: string) {
    await page.goto(`${new URL(page.url()).origin}/try?path=/mcp&tool=${tool}`)
    await page.waitForSelector(`main h2 >> text=${tool}`)
    await page.click('form button[type=submit]')
  }
  const structured = async () => {
    const block = page.locator('section', { hasText: 'Structured content' }).locator('h3 + .block pre')
    return JSON.parse((await block.textContent()) ?? '')
  }

  it('fills in a form and opens a URL that the tool requests, then shows the structured result', async () => {
    await call('book')
    await page.waitForSelector('text=Your seat?')
    expect(await page.evaluate('document.activeElement.tagName')).to.equal('H2')
    await page.fill('.field:has(> label:has-text("Seat")) input', '12A')
    await page.click('text=Send')
    await page.waitForSelector('text=Pay there.')
    const link = page.locator('main a[target=_blank]')
    expect(await link.getAttribute('href')).to.equal('https://pay.example/seat')
    expect(await link.getAttribute('rel')).to.equal('noopener noreferrer')
    expect(await page.textContent('main')).to.include('https://pay.example/seat')
    await page.click('text=Continue')
    await page.waitForSelector('text=Structured content')
    expect(await structured()).to.deep.equal({ booked: true, seat: '12A', meal: 'none', paid: 'accept' })
  })

  it('declines a form', async () => {
    await call('book')
    await page.click('text=Decline')
    await page.waitForSelector('text=Structured content')
    expect(await structured()).to.deep.equal({ booked: false, action: 'decline' })
  })

  it('shows progress while the tool runs', async () => {
    await call('pack')
    await page.waitForSelector('[role=status] >> text=packing the first box')
    const bar = page.locator('main progress')
    expect([await bar.getAttribute('value'), await bar.getAttribute('max')]).to.deep.equal(['1', '3'])
    expect(await page.locator('text=all boxes are packed').count()).to.equal(0)
    expect((await modern(`${url}/mcp`, 'tools/call', { name: 'unlock' })).status).to.equal(200)
    await page.waitForSelector('text=all boxes are packed')
    expect(await bar.count()).to.equal(0)
  })

  it('cancels a call', async () => {
    await call('stuck')
    await page.waitForSelector('main progress')
    await page.click('main form >> text=Cancel')
    await page.waitForSelector('text=Cancelled.')
    await page.goto(`${new URL(page.url()).origin}/calls?outcome=cancelled`)
    await page.waitForSelector('tr[data-row] >> text=stuck')
  })

  it('opens only http and https URLs', async () => {
    const asked = {
      method: 'elicitation/create',
      params: { mode: 'url', message: 'Go', url: 'javascript:window.attacked=1' },
    }
    const result = { resultType: 'input_required', inputRequests: { one: asked }, requestState: 's' }
    await page.route('**/api/try', route =>
      route.fulfill({
        contentType: 'application/x-ndjson',
        body: JSON.stringify({ status: 200, ms: 1, response: { result }, commands: [] }),
      }),
    )
    await call('book')
    await page.waitForSelector('text=The tool requests input')
    expect(await page.locator('main form a').count()).to.equal(0)
    await page.unroute('**/api/try')
  })
})
