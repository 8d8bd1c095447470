// Logins to the console in chromium: the button that signs in at auth-bridge, and the form for a token.
import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { CORE, startCli, stopAll } from '../cli/run-cli.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { closePages, launchBrowser, watchFaults } from '../support/browser.ts'
import { type IdentityProvider, startIdentityProvider, stopIdentityProviders } from '../support/identity-provider.ts'

const TOKEN = 'a-token-long-enough-to-be-one'
const USERS = [
  { sub: 'ann', groups: ['operators'] },
  { sub: 'eve', groups: ['staff'] },
]

const configText = (idp: IdentityProvider) => `import { defineConfig, defineTool } from '${CORE}'
export default defineConfig({
  server: { name: 'acme', version: '1.0.0' },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { all: [defineTool({ name: 'say_hello', handler: () => 'hello' })] },
  routes: { '/mcp': { toolsets: 'all', authorize: true } },
  plugins: {
    'transport-streamable': {},
    'auth-jwt': {},
    'auth-bridge': {
      provider: ${JSON.stringify(idp.options())},
      allow: { everyone: true },
      roles: { operator: { group: 'operators' } },
    },
    console: { port: 0, role: 'operator', token: '${TOKEN}' },
  },
})
`

describe('Login page of the console in chromium', () => {
  let browser: Browser
  let idp: IdentityProvider
  let origin: string

  before(async function () {
    browser = await launchBrowser(this)
    idp = await startIdentityProvider({ users: USERS })
    const running = startCli(['start'], await makeFolder({ 'mcp.config.ts': configText(idp) }))
    const [, shown = ''] = await running.printed(/Console {2}(http:\/\/127\.0\.0\.1:\d+)/)
    origin = shown
    idp.redirects.add(`${await running.listening()}/auth/callback`)
  })
  after(async () => {
    await closePages()
    await stopAll()
    await stopIdentityProviders()
    await removeFolders()
  })

  async function withPage(work: (page: Page) => Promise<void>) {
    const context = await browser.newContext()
    try {
      await work(await context.newPage())
    } finally {
      await context.close()
    }
  }

  const signIn = (page: Page) => page.getByRole('button', { name: 'Sign in' }).click()

  for (const name of ['127.0.0.1', 'localhost']) {
    it(`signs in with one click at ${name}, and logs out`, () =>
      withPage(async page => {
        const faults = watchFaults(page)
        idp.nextUser = 'ann'
        await page.goto(origin.replace('127.0.0.1', name))
        await signIn(page)
        await page.waitForSelector('text=Busiest tools')
        expect(page.url()).to.equal(`${origin}/`)
        await page.click('text=Log out')
        await page.waitForSelector('input[type=password]')
        expect(faults.filter(fault => !/net::ERR_ABORTED|status of 401/.test(fault))).to.deep.equal([])
      }))
  }

  it('refuses a user without the role', () =>
    withPage(async page => {
      idp.nextUser = 'eve'
      await page.goto(origin)
      const refused = page.waitForResponse(response => response.status() === 403)
      await signIn(page)
      expect(new URL((await refused).url()).pathname).to.equal('/console')
      await page.goto(origin)
      await page.waitForSelector('input[type=password]')
    }))

  it('refuses a wrong token, then accepts the right one', () =>
    withPage(async page => {
      await page.goto(`${origin}/calls`)
      await page.fill('input[type=password]', 'wrong')
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.waitForSelector('#login-error')
      await page.fill('input[type=password]', TOKEN)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.waitForSelector('h1 >> text=Live calls')
      expect(new URL(page.url()).pathname).to.equal('/calls')
    }))
})
