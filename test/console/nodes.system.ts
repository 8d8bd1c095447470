// Tests the console in chromium: three nodes with Redis, of which one dies, and two workers.
import { join } from 'node:path'
import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { type LockChange, type NodeRow, PATHS } from '../../plugins/console/api.ts'
import { CORE, type Running, runCli, startCli, stopAll } from '../cli/run-cli.ts'
import { makeFolder, removeFolders, replaceFile } from '../config/folder.ts'
import { ask, headersIn, logIn, PAGE_HEADERS } from '../plugins/console/console-client.ts'
import { closePages, launchBrowser, watchFaults } from '../support/browser.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { modern } from '../support/rpc.ts'
import { openSession } from '../support/session-client.ts'

const TOKEN = 'console-token-of-this-test'

const configOf = (
  redis: string | undefined,
  consolePort: number,
  title = 'Acme',
) => `import { defineConfig, defineTool } from '${CORE}'
export default defineConfig({
  server: { name: 'acme', title: '${title}', version: '1.0.0' },
  http: { port: 0 },
  secrets: ['a secret that all nodes of this test share'],
  toolsets: { open: [defineTool({ name: 'say_hello', handler: () => 'hello' })] },
  routes: { '/mcp': { toolsets: 'open', stateless: ${redis === undefined} } },
  ${redis === undefined ? '' : `redis: { url: '${redis}' },`}
  plugins: {
    'transport-streamable': {},
    ${redis === undefined ? '' : `'cluster-redis': {},`}
    console: { port: ${consolePort}, token: '${TOKEN}', actions: true },
  },
})
`

let browser: Browser

before(async function () {
  browser = await launchBrowser(this)
})
after(async () => {
  await closePages()
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

describe('Console of several nodes in chromium', () => {
  const nodes: { readonly port: number; readonly folder: string; readonly running: Running }[] = []
  let redis: RedisServer
  let urls: string[]
  let page: Page
  let faults: string[]
  let options: string[]
  let names: string[]

  /** Three nodes, and the console of the first. */
  before(async function () {
    needsRedis(this)
    redis = await startRedis()
    for (const port of [await freePort(), await freePort(), await freePort()]) {
      const folder = await makeFolder({ 'mcp.config.ts': configOf(redis.url, port) })
      nodes.push({ port, folder, running: startCli(['start'], folder) })
    }
    urls = await Promise.all(nodes.map(({ running }) => running.listening()))
    ;({ page, faults } = await openPage(nodes[0]?.port as number))
    options = await eventually(
      'all nodes',
      () => optionsOf(page),
      list => list.length === 4,
    )
    names = options.slice(1).map(text => text.split(',')[0] as string)
  })
  after(async () => {
    await page?.close()
    await stopAll()
    await redis.remove()
  })

  // The page ends its stream when another node is selected.
  const expectNoFaults = () => expect(faults.filter(fault => !fault.includes('net::ERR_ABORTED'))).to.deep.equal([])

  it('reloads all nodes, and keeps the result of each on the page', async () => {
    const texts = nodes.map(({ port }, index) => configOf(redis.url, port, index === 1 ? 'Acme' : 'Acme 2'))
    texts[1] = (texts[1] as string).replace("toolsets: 'open'", "toolsets: 'planted-toolset'")
    for (const [index, { folder }] of nodes.entries()) {
      await replaceFile(join(folder, 'mcp.config.ts'), texts[index] as string)
    }
    await openScreen(page, 'Config')
    const sent: string[] = []
    page.on('request', request => request.method() === 'POST' && sent.push(request.url()))
    await page.getByRole('button', { name: 'Reload all nodes' }).click()
    await page.waitForSelector('dialog.confirm')
    expect(sent, 'before the confirmation').to.deep.equal([])
    await page.click('dialog.confirm >> button.main')
    const list = page.getByRole('region', { name: 'Reload by node' })
    await list.waitFor()
    await page.waitForSelector('dialog', { state: 'detached' })
    const lines = await list.getByRole('listitem').allTextContents()
    expect(lines).to.have.length(3)
    for (const name of names) expect(lines.filter(line => line.includes(name))).to.have.length(1)
    expect(lines.filter(line => line.includes('planted-toolset'))).to.have.length(1)
    expect(lines.filter(line => line.startsWith('Failed'))).to.have.length(1)
    for (const [index, { running }] of nodes.entries()) {
      await running.logged(index === 1 ? /"code":"MH3101"/ : /"code":"MH3103"/)
      await running.logged(index === 1 ? /"code":"MH3609".*"failed"/ : /"code":"MH3609".*"ok"/)
    }
    await openScreen(page, 'Overview')
    await page.waitForSelector('text=Busiest tools')
    await openScreen(page, 'Config')
    await list.waitFor()
    expect(await list.getByRole('listitem').allTextContents()).to.deep.equal(lines)
    expectNoFaults()
  })

  it('shows sessions and calls of three nodes, and a node that dies', async () => {
    for (const url of urls) await openSession(`${url}/mcp`)
    expect(options[0]).to.match(/3/)

    /** Calls every node until the page shows calls of these nodes. */
    const showsCalls = (...shown: string[]) =>
      eventually('calls of the nodes', async () => {
        await Promise.all(urls.map(url => modern(`${url}/mcp`, 'tools/call', { name: 'say_hello' })))
        const counts = shown.map(name => page.locator(`main td >> text=${name}`).count())
        return (await Promise.all(counts)).every(count => count > 0)
      })

    await openScreen(page, 'Live calls')
    await showsCalls(...names)
    await openScreen(page, 'Sessions')
    for (const name of names) await page.waitForSelector(`main td >> text=${name}`)

    await page.getByLabel('Node', { exact: true }).selectOption(names[1] as string)
    await page.waitForURL(`**/sessions?node=${names[1]}`)
    await page.waitForSelector(`main td >> text=${names[0]}`, { state: 'detached' })
    await openScreen(page, 'Live calls')
    await page.waitForURL(`**/calls?node=${names[1]}`)
    await showsCalls(names[1] as string)
    expect(await page.locator(`main td >> text=${names[2]}`).count()).to.equal(0)
    await page.getByLabel('Node', { exact: true }).selectOption('')

    nodes[2]?.running.child.kill('SIGKILL')
    await openScreen(page, 'Sessions')
    await page.waitForSelector('main >> text=No response')
    await eventually(
      'the dead node',
      () => optionsOf(page),
      list => list.some(text => text.includes('no response')),
    )
    expectNoFaults()
  })
})

describe('Console of two workers', () => {
  let port: number
  let folder: string
  let running: Running
  let url: string

  before(async () => {
    port = await freePort()
    folder = await makeFolder({ 'mcp.config.ts': configOf(undefined, port) })
    expect((await runCli(['lock'], folder)).code).to.equal(0)
    await replaceFile(join(folder, 'mcp.config.ts'), configOf(undefined, port).replace('say_hello', 'greet'))
    running = startCli(['start', '--workers', '2'], folder)
    url = await running.listening()
  })
  after(stopAll)

  it('is served by one worker, with the calls of all workers', async () => {
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
        const calls = Array.from({ length: 8 }, () => modern(`${url}/mcp`, 'tools/call', { name: 'greet' }))
        await Promise.all(calls)
        return page.locator(`main td >> text=${name}`).count()
      })
    }
    expect(faults).to.deep.equal([])
  })

  it('explains access, compares with the lock file, and reloads all workers', async () => {
    const origin = `http://127.0.0.1:${port}`
    const headers = { ...PAGE_HEADERS, ...headersIn(await logIn(origin, TOKEN)) }
    const get = async (path: string) => (await ask(`${origin}${path}`, { headers })).body
    const post = async (path: string, body: object) =>
      (await ask(`${origin}${path}`, { method: 'POST', headers, body })).body

    const { lock } = await get(PATHS.surface)
    expect(lock.state).to.equal('changed')
    expect(lock.changes.map(({ name }: LockChange) => name)).to.have.members(['greet', 'say_hello'])
    const { lines } = await post(PATHS.explain, { path: '/mcp', caller: {} })
    expect(lines.join('\n')).to.include('greet')
    const { file, keys } = await get(PATHS.config)
    expect(file).to.equal(join(folder, 'mcp.config.ts'))
    expect(keys['http.port']).to.deep.include({ isDefault: false, restart: false })

    const before = (await get(PATHS.nodes)).nodes.map(({ pid }: NodeRow) => pid)
    const reloaded = await post(PATHS.reload, { confirm: true })
    expect(reloaded).to.include({ ok: true })
    // One worker for all.
    expect(reloaded.nodes).to.have.length(1)
    await running.logged(/"code":"MH3103"/)
    const pid = await eventually('the console of a new worker', async () => {
      const login = await logIn(origin, TOKEN).catch(() => undefined)
      if (login?.status !== 200) return undefined
      const path = `${PATHS.overview}?node=${encodeURIComponent(login.body.node)}`
      return (await ask(origin + path, { headers: headersIn(login) })).body.pid
    })
    expect(pid).to.be.a('number')
    expect(before).not.to.include(pid)
  })
})
