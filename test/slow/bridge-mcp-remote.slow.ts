// Tests mcp-remote with auth-bridge: redirect URI listener, token files, scope step-up and refresh. Installs mcp-remote
// from the registry: `npx mocha 'test/slow/*.slow.ts'`.
import { execFile } from 'node:child_process'
import { readdir, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { expect } from 'chai'
import { startFakeBrowser, stopFakeBrowsers } from '../cli/fake-browser.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { Person } from '../plugins/auth-bridge/browser-user.ts'
import { startWithScopes } from '../plugins/auth-bridge/scoped-bridge.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { stopIdentityProviders } from '../support/identity-provider.ts'
import { callAs } from '../support/protected-host.ts'
import { stopHosts } from '../support/start-host.ts'

const VERSION = '0.15.1'
/** Milliseconds for a login in the middle of a request. */
const PATIENCE = 120_000

interface Answer {
  readonly content: ReadonlyArray<{ readonly text: string }>
  readonly isError?: boolean
}

const listens = ({ port, hostname }: URL) =>
  new Promise<boolean>(resolve => {
    const socket = connect(Number(port), hostname)
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

describe(`mcp-remote ${VERSION} with auth-bridge`, () => {
  let program: string
  const clients: Client[] = []

  before(async () => {
    const folder = await makeFolder({ 'package.json': '{ "private": true }' })
    await promisify(execFile)('npm', ['install', '--no-audit', '--no-fund', `mcp-remote@${VERSION}`], { cwd: folder })
    program = join(folder, 'node_modules/mcp-remote/dist/proxy.js')
  })
  const closeAll = () => Promise.all(clients.splice(0).map(client => client.close()))
  afterEach(closeAll)
  after(async () => {
    await stopFakeBrowsers()
    await stopHosts()
    await stopIdentityProviders()
    await removeFolders()
  })

  /** A person at a machine of their own; `start` is an application that starts mcp-remote. */
  async function startDesk(accessToken: string) {
    const port = await freePort()
    const bridge = await startWithScopes(accessToken, { config: { http: { port } } })
    const person = new Person(bridge)
    // It opens the browser in the middle of a session before it listens; people take longer than that.
    const browser = await startFakeBrowser(async address => {
      const back = await person.answer(address)
      await eventually(`mcp-remote listens at ${back.host}`, () => listens(back))
      return back
    })
    const home = await makeFolder({})
    async function start(): Promise<Client> {
      const transport = new StdioClientTransport({
        command: process.execPath,
        args: [program, bridge.resource],
        env: { PATH: process.env['PATH'] ?? '', HOME: home, MCP_REMOTE_CONFIG_DIR: home, ...browser.env },
        stderr: 'pipe',
      })
      transport.stderr?.on('data', () => {})
      const client = new Client({ name: 'desktop', version: '1.0.0' })
      clients.push(client)
      await client.connect(transport as Parameters<Client['connect']>[0], { timeout: PATIENCE })
      return client
    }
    const fileOf = async (what: string) => {
      const [file = ''] = (await readdir(home, { recursive: true })).filter(name => name.endsWith(`_${what}.json`))
      return join(home, file)
    }
    const kept = async (what: string) => JSON.parse(await readFile(await fileOf(what), 'utf8'))
    const keptToken = async (): Promise<string> => (await kept('tokens')).access_token
    /** Empty while there is none. */
    const keptClient = () =>
      kept('client_info').then(
        ({ client_id }): string => client_id,
        () => '',
      )
    const loseTokens = async () => rm(await fileOf('tokens'))
    let { host } = bridge
    let replaced = 0
    /** The host stops, and another one with other secrets is there in its place. */
    async function replaceHost() {
      await host.close({ grace: 0 })
      const secrets = [`other secrets than a host had before: ${++replaced}`]
      ;({ host } = await startWithScopes(accessToken, { idp: bridge.idp, config: { http: { port }, secrets } }))
    }
    return { bridge, person, start, keptToken, keptClient, loseTokens, replaceHost }
  }

  /** The text that a tool answers; fails where that is an error. */
  async function call(client: Client, name: string): Promise<string> {
    const { isError, content } = (await client.callTool({ name }, undefined, {
      timeout: PATIENCE,
    })) as unknown as Answer
    const text = content[0]?.text ?? ''
    if (isError) throw new Error(`${name}: ${text}`)
    return text
  }

  it('signs in, lists, calls, and continues later without a new sign-in', async () => {
    const { person, start } = await startDesk('10m')
    const client = await start()
    expect((await client.listTools()).tools.map(({ name }) => name)).to.include('whoami')
    expect(await call(client, 'whoami')).to.include('"subject":"ann"')
    expect([person.asked.length, person.consents.length]).to.deep.equal([1, 1])
    await client.close()
    const later = await start()
    expect(await call(later, 'whoami')).to.include('"subject":"ann"')
    expect(person.asked).to.have.length(1)
  })

  it('requests the scope of a tool during a call', async () => {
    const { person, start } = await startDesk('10m')
    expect(await call(await start(), 'clear_all')).to.include('"subject":"ann"')
    expect(person.scopes).to.deep.equal([['read'], ['admin', 'read']])
    expect(person.consents).to.have.length(2)
  })

  it('registers again at a host that lost its registration', async () => {
    const { person, start, keptClient, loseTokens, replaceHost } = await startDesk('10m')
    await start()
    await closeAll()
    await replaceHost()
    expect(await call(await start(), 'whoami')).to.include('"subject":"ann"')
    expect(person.asked).to.have.length(2)

    // With nothing but its registration it asks whether that still holds before it opens a browser. 0.15.1 registers anew
    // then, and waits in vain for a sign-in that it takes for one under way; whoever starts it again has theirs.
    await closeAll()
    await loseTokens()
    await replaceHost()
    const before = await keptClient()
    start().catch(() => {})
    await eventually('it has registered anew', keptClient, id => id !== '' && id !== before)
    expect(person.asked).to.have.length(2)
    await closeAll()
    expect(await call(await start(), 'whoami')).to.include('"subject":"ann"')
    expect(person.asked).to.have.length(3)
  })

  it('refreshes, and asks for a new sign-in after the user revoked consent', async () => {
    const { bridge, person, start, keptToken } = await startDesk('10s')
    const client = await start()
    const first = await keptToken()
    await eventually('its token has expired', async () => (await callAs(bridge.resource, first)).status === 401)
    expect(await call(client, 'whoami')).to.include('"subject":"ann"')
    expect(await keptToken()).to.not.equal(first)
    expect(person.asked).to.have.length(1)

    expect(await person.revokeAll()).to.equal(1)
    const asksAgain = async () => {
      expect(await call(client, 'whoami')).to.include('"subject":"ann"')
      return person.consents.length === 2
    }
    await eventually('it asks again, and every call goes through', asksAgain)
    expect(person.asked).to.have.length(2)
  })
})
