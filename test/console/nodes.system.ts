// Tests the console in chromium: three nodes with Redis, of which one dies, and two workers.
import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { CORE, startCli, stopAll } from '../cli/run-cli.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { closeBrowsers, launchBrowser, watchFaults } from '../support/browser.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { modern } from '../support/rpc.ts'
import { openSession } from '../support/session-client.ts'

const TOKEN = 'console-token-of-this-test'

const configOf = (redis: string | undefined, consolePort: number) => `import { defineConfig, defineTool } from '${CORE}'
export default defineConfig({
  server: { name: 'acme', version: '1.0.0' },
  http: { port: 0 },
  secrets: ['a secret that all nodes of this test share'],
  toolsets: { open: [defineTool({ name: 'say_hello', handler: () => 'hello' })] },
  routes: { '/mcp': { toolsets: 'open', stateless: ${redis === undefined} } },
  ${redis === undefined ? '' : `redis: { url: '${redis}' },`}
  plugins: {
    'transport-streamable': {},
    ${redis === undefined ? '' : `'cluster-redis': {},`}
    console: { port: ${consolePort}, token: '${TOKEN}' },
  },
})
`

describe('Console of several nodes in chromium', function () {
  this.timeout(240_000)
  let browser: Browser
  let redis: RedisServer

  before(async function () {
    needsRedis(this)
    browser = await launchBrowser(this)
    redis = await startRedis()
  })
  after(async () => {
    await closeBrowsers()
    await stopAll()
    await redis.remove()
    await removeFolders()
  })

  async function openPage(port: number): Promise<{ readonly page: Page; readonly faults: string[] }> {
    const page = await browser.newPage({ viewport: { width: 1_400, height: 900 } })
    const faults = watchFaults(page)
    await page.goto(`http://127.0.0.1:${port}/#t=${TOKEN}`)
    await page.waitForSelector('text=Busiest tools')
    return { page, faults }
  }
  const openScreen = (page: Page, name: string) => page.getByRole('navigation').getByRole('link', { name }).click()
  const optionsOf = (page: Page) => page.getByLabel('Node', { exact: true }).locator('option').allTextContents()

  it('shows sessions and calls of three nodes, and a node that dies', async () => {
    const ports = [await freePort(), await freePort(), await freePort()]
    const running = []
    for (const port of ports) {
      running.push(startCli(['start'], await makeFolder({ 'mcp.config.ts': configOf(redis.url, port) })))
    }
    const urls = await Promise.all(running.map(node => node.listening()))
    for (const url of urls) await openSession(`${url}/mcp`)
    let isOver = false
    const traffic = urls.map(async url => {
      while (!isOver) await modern(`${url}/mcp`, 'tools/call', { name: 'say_hello' }).catch(() => undefined)
    })

    const { page, faults } = await openPage(ports[0] as number)
    const options = await eventually(
      'all nodes',
      () => optionsOf(page),
      list => list.length === 4,
    )
    expect(options[0]).to.match(/3/)
    const names = options.slice(1).map(text => text.split(',')[0] as string)

    await openScreen(page, 'Live calls')
    for (const name of names) await page.waitForSelector(`main td >> text=${name}`)
    await openScreen(page, 'Sessions')
    for (const name of names) await page.waitForSelector(`main td >> text=${name}`)

    await page.getByLabel('Node', { exact: true }).selectOption(names[1] as string)
    await page.waitForURL(`**/sessions?node=${names[1]}`)
    await page.waitForSelector(`main td >> text=${names[0]}`, { state: 'detached' })
    await openScreen(page, 'Live calls')
    await page.waitForURL(`**/calls?node=${names[1]}`)
    await page.waitForSelector(`main td >> text=${names[1]}`)
    expect(await page.locator(`main td >> text=${names[2]}`).count()).to.equal(0)
    await page.getByLabel('Node', { exact: true }).selectOption('')

    running[2]?.child.kill('SIGKILL')
    await openScreen(page, 'Sessions')
    await page.waitForSelector('main >> text=No response')
    await eventually(
      'the dead node',
      () => optionsOf(page),
      list => list.some(text => text.includes('no response')),
    )
    isOver = true
    await Promise.all(traffic)
    // The page ends its stream when another node is selected.
    expect(faults.filter(fault => !fault.includes('net::ERR_ABORTED'))).to.deep.equal([])
  })

  it('is served by one worker, with the calls of all workers', async () => {
    const port = await freePort()
    const running = startCli(
      ['start', '--workers', '2'],
      await makeFolder({ 'mcp.config.ts': configOf(undefined, port) }),
    )
    const url = await running.listening()
    const { page, faults } = await openPage(port)
    const names = (
      await eventually(
        'both workers',
        () => optionsOf(page),
        list => list.length === 3,
      )
    ).slice(1)
    await openScreen(page, 'Live calls')
    for (const name of names.map(text => text.split(',')[0])) {
      await eventually('a call of the worker', async () => {
        // At once, because a single connection stays at one worker.
        const calls = Array.from({ length: 8 }, () => modern(`${url}/mcp`, 'tools/call', { name: 'say_hello' }))
        await Promise.all(calls)
        return page.locator(`main td >> text=${name}`).count()
      })
    }
    expect(faults).to.deep.equal([])
  })
})
