// Tests SDK 1.10, which supports protocol versions up to 2025-03-26 and no elicitation. Installs it from the registry:
// `npx mocha 'test/slow/*.slow.ts'`.
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type * as Types from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import { sessionToolset } from '../fixtures/session-toolset.ts'
import { type CuttingProxy, startCuttingProxy } from '../support/cutting-proxy.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { describeSessionJourney, listenTo, type Traveller } from '../support/v1-journey.ts'

const run = promisify(execFile)
type Transport = Parameters<Client['connect']>[0]

/** The parts of the old SDK that are used here have the same names and shapes as the new one's. */
interface OldSdk {
  readonly version: string
  readonly Client: typeof Client
  readonly StreamableHTTPClientTransport: typeof StreamableHTTPClientTransport
  readonly SSEClientTransport: typeof SSEClientTransport
  readonly types: typeof Types
}

let folder: string
let sdk: OldSdk

async function installOldSdk(): Promise<OldSdk> {
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  const name = 'old-sdk@npm:@modelcontextprotocol/sdk@~1.10.2'
  await run('npm', ['install', '--no-audit', '--no-fund', name], { cwd: folder })
  const root = join(folder, 'node_modules/old-sdk')
  const load = (path: string) => import(pathToFileURL(join(root, 'dist/esm', path)).href)
  const manifest = await import(pathToFileURL(join(root, 'package.json')).href, { with: { type: 'json' } })
  return {
    version: manifest.default.version,
    ...(await load('client/index.js')),
    ...(await load('client/streamableHttp.js')),
    ...(await load('client/sse.js')),
    types: await load('types.js'),
  }
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mcp-host-old-sdk-'))
  sdk = await installOldSdk()
})
after(() => rm(folder, { recursive: true, force: true }))

async function start() {
  const puppet = createPuppet()
  const { url } = await startHost({
    toolsets: { journey: [...sessionToolset, puppet.tool] },
    routes: { '/mcp': { toolsets: 'journey' } },
    plugins: { 'transport-streamable': {}, 'transport-sse': {} },
  })
  const client = new sdk.Client({ name: 'old', version: '1.0.0' }, { capabilities: { sampling: {}, roots: {} } })
  return { url, traveller: { client, puppet, heard: listenTo(client, sdk.types, false) } }
}

function describeUnasked(traveller: () => Traveller) {
  it('gets a readable tool error when a tool needs elicitation', async () => {
    const { content, isError } = await traveller().client.callTool({ name: 'ask_the_user' })
    expect(isError).to.equal(true)
    expect(JSON.stringify(content)).to.match(/elicitation/)
  })
}

describe('@modelcontextprotocol/sdk 1.10 over Streamable HTTP with a session', () => {
  let traveller: Traveller
  let proxy: CuttingProxy
  let transport: StreamableHTTPClientTransport
  before(async () => {
    const started = await start()
    traveller = started.traveller
    proxy = await startCuttingProxy(started.url)
    transport = new sdk.StreamableHTTPClientTransport(new URL('/mcp', proxy.url))
    await traveller.client.connect(transport as Transport)
  })
  after(async () => {
    await traveller.client.close()
    await proxy.stop()
    await stopHosts()
  })

  it('opens a session with protocol version 2025-03-26', () => {
    expect(transport.sessionId).to.be.a('string')
    expect(sdk.types.LATEST_PROTOCOL_VERSION).to.be.oneOf(['2024-11-05', '2025-03-26'])
  })

  describeSessionJourney(() => traveller)
  describeUnasked(() => traveller)

  it('resumes the session stream after a disconnect with missed notifications', async () => {
    const { client, puppet, heard } = traveller
    const call = client.callTool({ name: 'puppet', arguments: { name: 'lost' } })
    const { ctx, finish } = await puppet.call('lost')
    // It can only come back to a stream on which it had an event before.
    const first = heard.next('notifications/tools/list_changed')
    ctx.host.tools.remove('added')
    await first
    const second = heard.next('notifications/resources/updated')
    finish('done')
    expect((await call).content).to.deep.equal([{ type: 'text', text: 'done' }])
    await client.subscribeResource({ uri: 'journey://page' })
    proxy.cutAll()
    ctx.host.resourceUpdated('journey://page')
    expect(await second).to.deep.equal({ uri: 'journey://page' })
  })
})

describe('@modelcontextprotocol/sdk 1.10 over HTTP+SSE', () => {
  let traveller: Traveller
  before(async () => {
    const started = await start()
    traveller = started.traveller
    await traveller.client.connect(new sdk.SSEClientTransport(new URL('/mcp/sse', started.url)) as Transport)
  })
  after(async () => {
    await traveller.client.close()
    await stopHosts()
  })

  describeSessionJourney(() => traveller)
  describeUnasked(() => traveller)
})
