// Tests the built website in chromium: accessibility, layout, search and downloads. `npm run docs` builds it.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { extname, join } from 'node:path'
import { expect } from 'chai'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { closePages, launchBrowser, watchFaults } from '../support/browser.ts'

const DIST = join(import.meta.dirname, '../../site/dist')
const ORIGIN = 'http://site.example'
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

const PAGES = {
  home: '/',
  config: '/docs/config',
  plugin: '/docs/plugins/rate-limit',
  reference: '/reference/mcp-host/interfaces/CallContext',
  guide: '/docs/tutorials/operator',
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
}

/** The file that a web server with clean URLs serves. */
function fileOf(path: string): string | undefined {
  const files = [path, `${path}.html`, `${path}/index.html`].map(file => join(DIST, file))
  return files.find(file => existsSync(file) && statSync(file).isFile())
}

let browser: Browser
before(async function () {
  browser = await launchBrowser(this)
})
after(closePages)

/** Runs `work` in a tab that receives the files of the website, and expects no console messages or failed requests. */
async function inTab(options: BrowserContextOptions, work: (tab: Page) => Promise<void>): Promise<void> {
  const context = await browser.newContext(options)
  await context.route('**', async route => {
    const file = fileOf(new URL(route.request().url()).pathname)
    if (file === undefined) await route.fulfill({ status: 404 })
    else await route.fulfill({ body: readFileSync(file), contentType: TYPES[extname(file)] ?? 'text/plain' })
  })
  const tab = await context.newPage()
  const faults = watchFaults(tab)
  await work(tab)
  expect(faults).to.deep.equal([])
  await context.close()
}

const open = (tab: Page, path: string) => tab.goto(ORIGIN + path, { waitUntil: 'networkidle' })

const runAxe = (options: object) => `axe.run(${JSON.stringify(options)}).then(({ violations }) =>
  violations.map(({ id, nodes }) => [id, nodes.slice(0, 5).map(({ html, failureSummary }) => html.slice(0, 200) + failureSummary)]))`

/** Elements outside the window, except in parts that scroll. */
const PAGE_WIDTH = 'document.documentElement.scrollWidth'

describe('Website in chromium', () => {
  for (const width of [1280, 390])
    it(`has pages without axe violations and horizontal scroll, light and dark (${width} px)`, async () => {
      await inTab({ colorScheme: 'light', viewport: { width, height: 800 } }, async tab => {
        for (const [name, path] of Object.entries(PAGES)) {
          await tab.emulateMedia({ colorScheme: 'light' })
          await open(tab, path)
          expect(await tab.evaluate(PAGE_WIDTH), name).to.be.at.most(width)
          await tab.addScriptTag({ path: AXE })
          expect(await tab.evaluate(runAxe({})), `${name}, light`).to.deep.equal([])
          // In the dark theme of the system, VitePress adds a class, which changes only colors.
          await tab.emulateMedia({ colorScheme: 'dark' })
          await tab.waitForSelector('html.dark')
          await tab.evaluate('document.getAnimations().forEach(animation => animation.finish())')
          expect(await tab.evaluate(runAxe({ runOnly: ['color-contrast'] })), `${name}, dark`).to.deep.equal([])
        }
      })
    })

  it('ranks guides above the reference in the search', async () => {
    await inTab({ viewport: { width: 1280, height: 800 } }, async tab => {
      await open(tab, '/')
      await tab.locator('.DocSearch-Button').first().click()
      for (const term of ['session', 'rate limit', 'defineTool']) {
        await tab.locator('.search-input').fill(term)
        const results = tab.locator('.results .result')
        await results.first().waitFor()
        const paths = await results.evaluateAll(links => links.map(link => link.getAttribute('href') ?? ''))
        const isReference = paths.map(path => path.startsWith('/reference/'))
        expect(paths, term).to.not.have.lengthOf(0)
        expect(isReference[0], `${term}: ${paths[0]}`).to.equal(false)
      }
    })
  })

  it('offers the dashboard and the alert rules as downloads', async () => {
    await inTab({ viewport: { width: 1280, height: 800 } }, async tab => {
      await open(tab, '/docs/plugins/metrics')
      const links = tab.locator('a[download]')
      const paths = await links.evaluateAll(found => found.map(link => link.getAttribute('href') ?? ''))
      const files = paths.map(path => new URL(path, `${ORIGIN}/docs/plugins/metrics`).pathname)
      expect(files).to.deep.equal(['/docs/metrics/grafana-dashboard.json', '/docs/metrics/alerts.yml'])
      for (const file of files) expect(existsSync(join(DIST, file)), file).to.equal(true)
    })
  })
})
