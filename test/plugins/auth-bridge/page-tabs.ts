// Pages of the bridge in tabs of a chromium, for tests: one browser and one server of pages for a file.
import { expect } from 'chai'
import type { Context } from 'mocha'
import type { Browser, BrowserContext, BrowserContextOptions, Page as Tab } from 'playwright-core'
import type { Page } from '../../../plugins/auth-bridge/pages/index.ts'
import { closeBrowsers, launchBrowser, watchFaults } from '../../support/browser.ts'
import { type PageServer, startPageServer, stopServers } from './page-server.ts'

export interface Tabs {
  readonly server: PageServer
  /** Does something in a tab that is new, and closes it. */
  inTab<Result>(work: (tab: Tab) => Promise<Result>, options?: BrowserContextOptions): Promise<Result>
  /** A tab with a page in it, of which the browser complains in nothing until the work is done. */
  withPage<Result>(page: Page, work: (tab: Tab) => Promise<Result>, options?: BrowserContextOptions): Promise<Result>
}

/** A context takes longer to make than all that most tests do in it; the pages keep nothing there. */
function createContexts(browser: Browser) {
  const contexts = new Map<string, Promise<BrowserContext>>()
  return (options: BrowserContextOptions): Promise<BrowserContext> => {
    const key = JSON.stringify(options)
    const context = contexts.get(key) ?? browser.newContext({ viewport: { width: 560, height: 800 }, ...options })
    contexts.set(key, context)
    return context
  }
}

/** For `before` hooks; `closeTabs` ends it. */
export async function openTabs(context: Context): Promise<Tabs> {
  context.timeout(60_000)
  const contextOf = createContexts(await launchBrowser(context))
  const server = await startPageServer()
  const tabs: Tabs = {
    server,
    async inTab(work, options = {}) {
      const tab = await (await contextOf(options)).newPage()
      try {
        const result = await work(tab)
        expect(await tab.context().cookies(), 'what the next tab would find').to.deep.equal([])
        return result
      } finally {
        await tab.close()
      }
    },
    withPage: (page, work, options) =>
      tabs.inTab(async tab => {
        const faults = watchFaults(tab)
        await tab.goto(server.show(page))
        const result = await work(tab)
        expect(faults).to.deep.equal([])
        return result
      }, options),
  }
  return tabs
}

/** For `after` hooks. */
export async function closeTabs(): Promise<void> {
  await closeBrowsers()
  await stopServers()
}
