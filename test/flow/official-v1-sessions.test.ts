import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import * as types from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import { sessionToolset } from '../fixtures/session-toolset.ts'
import { type CuttingProxy, startCuttingProxy } from '../support/cutting-proxy.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import {
  describeElicitation,
  describeResumption,
  describeSessionJourney,
  listenTo,
  type Traveller,
} from '../support/v1-journey.ts'

// Its transports' types do not hold under exactOptionalPropertyTypes.
type Transport = Parameters<Client['connect']>[0]

async function start() {
  const puppet = createPuppet()
  const { url } = await startHost({
    toolsets: { journey: [...sessionToolset, puppet.tool] },
    routes: { '/mcp': { toolsets: 'journey' } },
    plugins: { 'transport-streamable': {}, 'transport-sse': {} },
  })
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
  const client = new Client({ name: 'official', version: '1.0.0' }, { capabilities })
  return { url, traveller: { client, puppet, heard: listenTo(client, types, true) } }
}

describe('@modelcontextprotocol/sdk 1.32 over Streamable HTTP with a session', () => {
  let traveller: Traveller
  let proxy: CuttingProxy
  let transport: StreamableHTTPClientTransport
  before(async () => {
    const started = await start()
    traveller = started.traveller
    proxy = await startCuttingProxy(started.url)
    transport = new StreamableHTTPClientTransport(new URL('/mcp', proxy.url))
    await traveller.client.connect(transport as Transport)
  })
  after(async () => {
    await traveller.client.close()
    await proxy.stop()
    await stopHosts()
  })

  it('negotiates the latest handshake version and opens a session', () => {
    expect(transport.protocolVersion).to.equal('2025-11-25')
    expect(transport.sessionId).to.be.a('string')
  })

  describeSessionJourney(() => traveller)
  describeElicitation(() => traveller)
  describeResumption(
    () => traveller,
    () => proxy.cutAll(),
  )

  it('ends its session; the host then rejects the session id', async () => {
    const { sessionId } = transport
    await transport.terminateSession()
    const headers = { Accept: 'text/event-stream', 'Mcp-Session-Id': String(sessionId) }
    expect((await fetch(`${proxy.url}/mcp`, { headers })).status).to.equal(404)
  })
})

describe('@modelcontextprotocol/sdk 1.32 over HTTP+SSE', () => {
  let traveller: Traveller
  before(async () => {
    const started = await start()
    traveller = started.traveller
    await traveller.client.connect(new SSEClientTransport(new URL('/mcp/sse', started.url)) as Transport)
  })
  after(async () => {
    await traveller.client.close()
    await stopHosts()
  })

  describeSessionJourney(() => traveller)
  describeElicitation(() => traveller)
})
