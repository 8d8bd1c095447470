// The console of `mcp-host dev` in chromium: login with the printed URL, a live call, and the explanation of a refused one.
import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { CORE, startCli, stopAll } from '../cli/run-cli.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { closePages, launchBrowser, watchFaults } from '../support/browser.ts'
import { modern } from '../support/rpc.ts'

const CONFIG = `import { defineConfig, defineTool } from '${CORE}'
export default defineConfig({
  server: { name: 'acme', version: '1.0.0' },
  http: { port: 0 },
  toolsets: {
    open: [defineTool({ name: 'say_hello', handler: () => 'hello' })],
    staff: [defineTool({ name: 'purge', handler: () => 'done' })],
  },
  routes: {
    '/mcp': { toolsets: 'open', plugins: { 'auth-jwt': false } },
    '/staff': { toolsets: 'staff', authorize: true },
  },
  plugins: { 'transport-streamable': {}, 'auth-jwt': {}, 'dev-auth-server': { users: [{ id: 'ada' }] } },
})
`

describe('Console of mcp-host dev in chromium', () => {
  let browser: Browser

  before(async function () {
    browser = await launchBrowser(this)
  })
  after(async () => {
    await closePages()
    await stopAll()
    await removeFolders()
  })

  const openScreen = (page: Page, name: string) => page.getByRole('navigation').getByRole('link', { name }).click()

  it('logs in with the printed URL, shows a call as it happens, and explains a denial', async () => {
    const running = startCli(['dev'], await makeFolder({ 'mcp.config.ts': CONFIG }))
    const [, loginUrl = ''] = await running.printed(/^ {2}Console {2}(http:\/\/127\.0\.0\.1:\d+\/#t=\S+)$/m)
    const url = await running.listening()
    const page = await browser.newPage()
    const faults = watchFaults(page)
    await page.goto(loginUrl)
    await page.waitForSelector('text=Busiest tools')
    expect(page.url()).not.to.contain('#t=')

    await openScreen(page, 'Live calls')
    await page.waitForSelector('h1 >> text=Live calls')
    expect(await page.locator('main >> text=say_hello').count()).to.equal(0)
    expect((await modern(`${url}/mcp`, 'tools/call', { name: 'say_hello' })).status).to.equal(200)
    await page.waitForSelector('main >> text=say_hello')

    expect((await modern(`${url}/staff`, 'tools/call', { name: 'purge' })).status).to.equal(401)
    await openScreen(page, 'Denials')
    await page.locator('main >> text=unauthorized').first().click()
    await page.getByRole('button', { name: 'Explain for an anonymous caller' }).click()
    const explained = page.locator('dialog[open] pre', { hasText: 'needs any signed-in user' })
    expect(await explained.textContent()).to.match(/^address +\/staff,[\s\S]*^result +401 /m)
    expect(faults).to.deep.equal([])

    // The token was for one login.
    const other = await (await browser.newContext()).newPage()
    await other.goto(loginUrl)
    await other.waitForSelector('input[name=token]')
    running.child.kill('SIGTERM')
    expect((await running.ended).code).to.equal(0)
  })
})
