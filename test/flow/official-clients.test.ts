import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect } from 'chai'
import { HANDSHAKE_REVISIONS, MODERN_REVISION } from '../../core/transport.ts'
import { journey } from '../fixtures/journey-toolset.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import {
  createModernTraveller,
  describeCommonJourney,
  describeModernJourney,
  expectProgress,
  type ModernTraveller,
} from '../support/v2-journey.ts'

const text = (value: string) => [{ type: 'text', text: value }]
const INFO = { name: 'official', version: '1.0.0' }

describe('@modelcontextprotocol/client with version negotiation on a default route', () => {
  let traveller: ModernTraveller
  let client: Client

  before(async () => {
    const { url } = await startHost({ toolsets: { journey }, routes: { '/mcp': { toolsets: 'journey' } } })
    traveller = createModernTraveller()
    client = traveller.client
    await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url)))
  })
  after(async () => {
    await client.close()
    await stopHosts()
  })

  it('negotiates 2026-07-28 and receives the server info', () => {
    expect(client.getNegotiatedProtocolVersion()).to.equal(MODERN_REVISION)
    expect(client.getServerVersion()).to.deep.equal({ name: 'test-host', version: '1.2.3' })
    expect(client.getServerCapabilities()).to.have.all.keys('completions', 'logging', 'prompts', 'resources', 'tools')
  })

  describeCommonJourney(() => client)

  it('rejects an unknown cursor with -32602', async () => {
    expect(await rejectionOf(client.listResources({ cursor: 'nonsense' }))).to.include({ code: -32602 })
  })

  describeModernJourney(() => traveller)
})

describe('@modelcontextprotocol/client without a required capability', () => {
  after(stopHosts)

  it('gets -32021 with the missing capability', async () => {
    const { url } = await startHost({ toolsets: { journey }, routes: { '/': { toolsets: 'journey' } } })
    const client = new Client(INFO, { versionNegotiation: { mode: 'auto' } })
    await client.connect(new StreamableHTTPClientTransport(new URL(url)))
    const error = await rejectionOf(client.callTool({ name: 'interview' }))
    await client.close()
    expect(error).to.be.instanceOf(ProtocolError)
    expect(error).to.deep.include({ code: -32021, data: { requiredCapabilities: { elicitation: { form: {} } } } })
  })
})

describe('@modelcontextprotocol/sdk 1.x on a stateless route', () => {
  let client: OldClient

  before(async () => {
    const routes = { '/old': { toolsets: 'journey', stateless: true } }
    const { url } = await startHost({ toolsets: { journey }, routes })
    client = new OldClient(INFO)
    // Its transport's types do not hold under exactOptionalPropertyTypes.
    await client.connect(new OldTransport(new URL('/old', url)) as Parameters<OldClient['connect']>[0])
  })
  after(async () => {
    await client.close()
    await stopHosts()
  })

  it('negotiates the latest handshake version without a session', () => {
    expect(client.getServerVersion()).to.deep.equal({ name: 'test-host', version: '1.2.3' })
    expect(client.transport?.sessionId).to.equal(undefined)
    expect((client.transport as OldTransport).protocolVersion).to.equal(HANDSHAKE_REVISIONS[0])
  })

  it('pings', async () => {
    expect(await client.ping()).to.deep.equal({})
  })

  describeCommonJourney(() => client)

  it('gets progress while the call runs, in order', async () => {
    const progress: unknown[] = []
    const onprogress = (report: unknown) => void progress.push(report)
    const { content } = await client.callTool({ name: 'count' }, undefined, { onprogress })
    expect(content).to.deep.equal(text('counted'))
    expectProgress(progress, true)
  })

  it('gets a readable tool error when a tool needs elicitation', async () => {
    const { content, isError } = await client.callTool({ name: 'interview' })
    expect(isError).to.equal(true)
    expect(JSON.stringify(content)).to.match(/cannot receive requests on a stateless route/)
  })
})
