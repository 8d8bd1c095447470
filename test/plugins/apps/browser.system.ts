// Apps in Chromium with the official client and the official bridge: rendering, tool calls and the content security
// policy.
import { join } from 'node:path'
import axe from 'axe-core'
import { expect } from 'chai'
import type { Browser, Frame, Page } from 'playwright-core'
import { defineTool, type ToolDefinition } from '../../../core/index.ts'
import { savingsPlan } from '../../../examples/apps/savings/savings.ts'
import { defineApp } from '../../../plugins/apps/define-app.ts'
import { closePages, launchBrowser, watchFaults } from '../../support/browser.ts'
import { eventually } from '../../support/eventually.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { closeServers, serve, serveClient, serveSandbox } from './client-page.ts'

const PAGES = join(import.meta.dirname, 'pages')

interface Seen {
  ready: boolean
  initialized: number
  app: string
  calls: object[]
  sizes: number
}

describe('Apps in Chromium', () => {
  let browser: Browser
  let url: string
  let clientPage: string
  let sandbox: string
  let foreign: string
  const reached: string[] = []

  before(async function () {
    browser = await launchBrowser(this)
    foreign = await serve((request, response) => {
      reached.push(String(request.url))
      response.setHeader('Access-Control-Allow-Origin', '*')
      response.end()
    })
    ;[clientPage, sandbox] = await Promise.all([serveClient(), serveSandbox()])
    const prying = (name: string, csp?: object) =>
      defineTool({
        name,
        app: defineApp({ name, module: join(PAGES, 'prying.ts'), ...(csp && { csp }) }),
        handler: () => ({ to: foreign }),
      })
    const tools = [
      savingsPlan,
      prying('prying'),
      prying('allowed', { connectDomains: [foreign], resourceDomains: [foreign] }),
      defineTool({
        name: 'official',
        app: defineApp({ name: 'official', module: join(PAGES, 'official.ts') }),
        handler: () => ({ words: 'from the tool' }),
      }),
    ] as unknown as ToolDefinition[]
    ;({ url } = await startHost({
      toolsets: { all: tools },
      routes: { '/': { toolsets: 'all', cors: 'client' } },
      plugins: { 'transport-streamable': {}, apps: {}, cors: { policies: { client: { origins: [clientPage] } } } },
    }))
  })
  after(async () => {
    await closePages()
    await stopHosts()
    closeServers()
  })

  const seenIn = (tab: Page) => tab.evaluate<Seen>('window.seen')
  const appOf = (tab: Page): Frame => {
    const frame = tab.frames().find(one => one.parentFrame()?.parentFrame() === tab.mainFrame())
    if (!frame) throw new Error('no app')
    return frame
  }

  async function withApp(tool: string, args: object, work: (tab: Page, app: Frame, faults: string[]) => Promise<void>) {
    const tab = await browser.newPage()
    const faults = watchFaults(tab)
    try {
      await tab.goto(clientPage)
      await tab.evaluate(`window.show(${JSON.stringify({ url, sandbox, tool, args })})`)
      await eventually(
        'the app has the result',
        async () => [(await seenIn(tab)).ready, ...faults],
        ([ready]) => ready,
      )
      await work(tab, appOf(tab), faults)
    } finally {
      await tab.close()
    }
  }

  it('renders the tool result and renders again after its own tool call', async () => {
    await withApp('savings_plan', { monthly: 100, rate: 0, years: 3 }, async (tab, app, faults) => {
      const status = app.locator('#status')
      const bars = app.locator('.year .gain')
      const says = (words: string) =>
        eventually(
          words,
          () => status.textContent(),
          text => text?.startsWith(words),
        )
      await says('Savings after 3 years: €3,600.00, of which €3,600.00 are deposits.')
      expect(await app.locator('svg .year').count()).to.equal(3)
      const heights = () => bars.evaluateAll(all => all.map(bar => Number(bar.getAttribute('height'))))
      expect(await heights()).to.deep.equal([0, 0, 0])

      await app.locator('#rate').fill('12')
      await says('Savings after 3 years: €4,307.69')
      expect((await heights()).every(height => height > 0)).to.equal(true)
      const labels = await app.locator('svg text').allTextContents()
      const amounts = ['€0', '€2K', '€4K', '€6K']
      expect(labels).to.deep.equal([...amounts, '1', '2', '3', 'Amount (EUR)', 'End of year'])
      expect(await app.locator('.legend li').allTextContents()).to.deep.equal(['Deposits', 'Interest'])
      const { app: name, calls, sizes, initialized } = await seenIn(tab)
      expect({ name, initialized }).to.deep.equal({ name: 'savings', initialized: 1 })
      const [monthly, years] = [100, 3]
      expect(calls).to.deep.equal([0, 12].map(rate => ({ monthly, rate, years })))
      expect(sizes).to.be.greaterThan(0)
      expect(await app.evaluate('getComputedStyle(document.documentElement).colorScheme')).to.equal('dark')
      expect(faults).to.deep.equal([])
      await app.evaluate(axe.source)
      const { violations } = await app.evaluate<{ violations: Array<{ id: string }> }>('axe.run()')
      expect(violations.map(({ id }) => id)).to.deep.equal([])
    })
  })

  it('shows the error of a refused tool call and stays usable', async () => {
    await withApp('savings_plan', { monthly: 100, rate: 1, years: 2 }, async (_tab, app) => {
      await app.evaluate(`(() => {
        const rate = document.querySelector('#rate')
        rate.max = '99'
        rate.value = '99'
        rate.dispatchEvent(new Event('change'))
      })()`)
      const status = () => app.locator('#status').textContent()
      await eventually('the refusal is shown', status, text => text?.startsWith('Invalid arguments for savings_plan'))
      expect(await app.locator('svg .year').count()).to.equal(2)
    })
  })

  it('runs a page built with the official package', async () => {
    await withApp('official', {}, async (_tab, app, faults) => {
      const main = () => app.locator('#app').textContent()
      await eventually('the page shows the result', main, text => text === 'from the tool')
      expect(faults).to.deep.equal([])
    })
  })

  /** Until so many ways are blocked, or reached the other server. */
  const pry = async (tool: string, least: { blocked: number; reached: number }) => {
    reached.length = 0
    let tried = 0
    let violations: Array<{ directive: string }> = []
    const ways = () => [...new Set(reached.map(path => path.slice(1).split('.')[0] ?? ''))].sort()
    await withApp(tool, {}, async (_tab, app) => {
      const body = app.locator('body')
      const look = async () => {
        tried = Number(await body.getAttribute('data-tried'))
        violations = JSON.parse((await body.getAttribute('data-violations')) ?? '[]')
        return { tried, blocked: violations.length, reached: ways().length }
      }
      const isOver = (found: { blocked: number; reached: number }) =>
        found.blocked >= least.blocked && found.reached >= least.reached
      await eventually('the page has tried', look, isOver)
    })
    const directives = [...new Set(violations.map(({ directive }) => directive))].sort()
    return { tried, ways: ways(), directives }
  }

  it('cannot reach other servers without csp domains', async () => {
    const { tried, ways, directives } = await pry('prying', { blocked: 12, reached: 0 })
    expect(ways).to.deep.equal([])
    expect(tried).to.equal(15)
    expect(directives).to.include.members(['connect-src', 'img-src', 'script-src-elem', 'style-src-elem', 'font-src'])
    expect(directives).to.include.members(['media-src', 'frame-src'])
  })

  it('reaches an allowed server only through the allowed csp directives', async () => {
    const { ways } = await pry('allowed', { blocked: 1, reached: 9 })
    expect(ways).to.include.members(['fetch', 'xhr', 'beacon', 'image', 'script', 'style', 'font', 'media', 'import'])
    expect(ways).not.to.include.members(['frame', 'object', 'form'])
  })
})
