// Pages of the bridge in tabs of a chromium, for tests: one browser and one server of pages for a file.
import { expect } from 'chai'
import type { Context } from 'mocha'
import type { Browser, BrowserContext, BrowserContextOptions, Page as Tab } from 'playwright-core'
import type { Page } from '../../../plugins/families/pages/index.ts'
import { closePages, launchBrowser, watchFaults } from '../../support/browser.ts'
import { type PageServer, startPageServer, stopServers } from './page-server.ts'

export interface Tabs {
  readonly server: PageServer
  /** Runs `work` in an empty tab. If `work` leaves a state that a new page does not reset, it closes the tab. */
  inTab<Result>(work: (tab: Tab) => Promise<Result>, options?: BrowserContextOptions): Promise<Result>
  /** A tab with a page in it, of which the browser complains in nothing until the work is done. */
  withPage<Result>(page: Page, work: (tab: Tab) => Promise<Result>, options?: BrowserContextOptions): Promise<Result>
}

const VIEWPORT = { width: 560, height: 800 }

/** Lends tabs. A tab costs more time than most tests spend in it, so a tab without faults is used again. */
function createTabs(browser: Browser) {
  const contexts = new Map<string, Promise<BrowserContext>>()
  const free = new Map<string, Tab[]>()
  return async (options: BrowserContextOptions) => {
    const key = JSON.stringify(options)
    const context = contexts.get(key) ?? browser.newContext({ viewport: VIEWPORT, ...options })
    contexts.set(key, context)
    const tabs = free.get(key) ?? []
    free.set(key, tabs)
    const tab = tabs.pop() ?? (await (await context).newPage())
    return {
      tab,
      async giveBack() {
        if (tab.isClosed()) return
        // The listeners of `watchFaults`.
        for (const event of ['console', 'requestfailed', 'pageerror']) tab.removeAllListeners(event)
        await tab.goto('about:blank')
        await tab.setViewportSize(options.viewport ?? VIEWPORT)
        await tab.emulateMedia({ colorScheme: options.colorScheme ?? 'light' })
        tabs.push(tab)
      },
    }
  }
}

/** For `before` hooks; `closeTabs` ends it. */
export async function openTabs(context: Context): Promise<Tabs> {
  const lend = createTabs(await launchBrowser(context))
  const server = await startPageServer()
  const tabs: Tabs = {
    server,
    async inTab(work, options = {}) {
      const { tab, giveBack } = await lend(options)
      try {
        const result = await work(tab)
        expect(await tab.context().cookies(), 'what the next tab would find').to.deep.equal([])
        await giveBack()
        return result
      } catch (error) {
        await tab.close()
        throw error
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
  await closePages()
  await stopServers()
}
