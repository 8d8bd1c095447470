// Tests `mcp-host proxy` processes with the protected example: a shared login, further scopes, and messages without a
// browser.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as StdioClientTransportV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { expect } from 'chai'
import type { Host } from '../../core/host.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { initialize, meta } from '../plugins/transport-stdio/stdio-client.ts'
import { Browser } from '../support/form-browser.ts'
import { startProtectedExample } from '../support/protected-example.ts'
import { type FakeBrowser, startFakeBrowser, stopFakeBrowsers } from './fake-browser.ts'
import { endRelays, openProxy } from './proxy-client.ts'
import { cliCommand, runCli, stopAll } from './run-cli.ts'

describe('mcp-host proxy with a protected server', () => {
  let host: Host
  let url: string
  let browser: FakeBrowser
  let home: string
  let env: Record<string, string>

  const ends = (...more: string[]) => {
    const [command = '', ...args] = cliCommand(['proxy', url, ...more])
    return { command, args, env, cwd: home, stderr: 'pipe' as const }
  }

  before(async () => {
    host = await startProtectedExample()
    url = `${host.url}/`
    browser = await startFakeBrowser(address => new Browser(address.origin).allow(address, 'ada'))
    home = await makeFolder({})
    env = { ...(process.env as Record<string, string>), ...browser.env, MCP_HOST_HOME: home, MCP_HOST_TOKEN_KEY: '' }
  })
  after(async () => {
    await endRelays()
    await stopAll()
    await stopFakeBrowsers()
    await host.close({ grace: 0 })
    await removeFolders()
  })

  it('logs in once for three processes that start at the same time, and again for a required scope', async () => {
    const clients = Array.from({ length: 3 }, (_, index) => {
      // Who tries the newest revision first has a process of its own for that, whose stderr nobody sees.
      return new Client({ name: `desktop ${index}`, version: '1' }, { versionNegotiation: { mode: 'legacy' } })
    })
    const told: string[] = []
    await Promise.all(
      clients.map(async client => {
        const transport = new StdioClientTransport(ends())
        transport.stderr?.on('data', chunk => told.push(String(chunk)))
        await client.connect(transport, { timeout: 120_000 })
      }),
    )
    const answers = await Promise.all(clients.map(client => client.callTool({ name: 'current_time', arguments: {} })))
    expect(answers.every(({ isError }) => !isError)).to.equal(true)
    expect(browser.opened).to.have.length(1)
    const [opened] = browser.opened
    expect(told.join('')).to.include(url).and.include(`${opened?.href}`)

    // Two of them want more at once.
    const both = await Promise.all(
      clients.slice(0, 2).map(client => client.callTool({ name: 'clear_cache', arguments: {} }, { timeout: 120_000 })),
    )
    expect(both.map(({ isError }) => isError ?? false)).to.deep.equal([false, false])
    const scopes = browser.opened.map(address => address.searchParams.get('scope'))
    expect(browser.opened).to.have.length(2)
    expect(scopes.at(-1)).to.include('mcp.admin')
    await Promise.all(clients.map(client => client.close()))

    const files = await readdir(join(home, 'tokens'))
    const { stdout: token } = await runCli(['token', url], home, env)
    for (const file of files) {
      expect(await readFile(join(home, 'tokens', file), 'latin1')).to.not.include(token.trim())
    }
    expect(files.some(name => name.endsWith('.login.json'))).to.equal(true)
  })

  it('serves the official client of SDK 1 with the existing login', async () => {
    const before = browser.opened.length
    const client = new ClientV1({ name: 'desktop', version: '1' }, { capabilities: {} })
    await client.connect(new StdioClientTransportV1(ends()))
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).to.include('current_time')
    expect((await client.callTool({ name: 'current_time', arguments: {} })).isError ?? false).to.equal(false)
    expect(browser.opened).to.have.length(before)
    await client.close()
  })

  it('uses --callback-path for a separate profile', async () => {
    const before = browser.opened.length
    const client = new ClientV1({ name: 'desktop', version: '1' }, { capabilities: {} })
    await client.connect(new StdioClientTransportV1(ends('--profile', 'other', '--callback-path', '/back/here')))
    expect((await client.listTools()).tools.map(({ name }) => name)).to.include('current_time')
    await client.close()
    const redirects = browser.opened
      .slice(before)
      .map(address => new URL(address.searchParams.get('redirect_uri') ?? ''))
    expect(redirects.map(({ pathname }) => pathname)).to.deep.equal(['/back/here'])
  })

  it('prints the login command without a browser, for both eras', async () => {
    for (const values of [{}, { 'no-browser': true }]) {
      const client = await openProxy(url, values)
      const answers = [await initialize(client), await client.request(1, 'tools/list', meta())]
      for (const { error } of answers) {
        expect(error?.message).to.include(url)
        expect(error?.data).to.include({ reason: 'interaction_required' })
      }
    }
  })
})
