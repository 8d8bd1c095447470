// Tests the official clients with three nodes behind nginx with round-robin load balancing.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import * as types from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import { MODERN_REVISION } from '../../core/transport.ts'
import { type Balanced, needsDeployment, startBalanced, stopBalanced } from '../cluster/support/balanced-deployment.ts'
import { createRemotePuppet, type RemotePuppet } from '../cluster/support/remote-puppet.ts'
import { type CuttingProxy, startCuttingProxy } from '../support/cutting-proxy.ts'
import {
  describeElicitation,
  describeResumption,
  describeSessionJourney,
  listenTo,
  type Traveller,
} from '../support/v1-journey.ts'

// Its transports' types do not hold under exactOptionalPropertyTypes.
type Transport = Parameters<OldClient['connect']>[0]

const CONFIG = 'test/cluster/support/journey.config.ts'
const text = (value: string) => [{ type: 'text', text: value }]

let balanced: Balanced
let puppet: RemotePuppet

before(async function () {
  needsDeployment(this)
  balanced = await startBalanced({ config: CONFIG })
  puppet = createRemotePuppet(balanced.nodes)
})
after(stopBalanced)

/** Expects that each node has served requests since. */
function expectAllServed(before: ReadonlyMap<number, number>) {
  const served = [...balanced.nginx.counts()].map(([port, count]) => count - (before.get(port) ?? 0))
  expect(Math.min(...served)).to.be.at.least(1)
}

function createTraveller(): Traveller {
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
  const client = new OldClient({ name: 'official', version: '1.0.0' }, { capabilities })
  puppet.forget()
  return { client, puppet, heard: listenTo(client, types, true) }
}

describe('@modelcontextprotocol/sdk 1.32 over Streamable HTTP, load balanced over three nodes', () => {
  let traveller: Traveller
  let proxy: CuttingProxy
  let transport: OldTransport
  let counts: Map<number, number>
  before(async () => {
    counts = balanced.nginx.counts()
    traveller = createTraveller()
    proxy = await startCuttingProxy(balanced.url)
    transport = new OldTransport(new URL('/mcp', proxy.url))
    await traveller.client.connect(transport as Transport)
  })
  after(async () => {
    await traveller?.client.close()
    await proxy?.stop()
  })

  describeSessionJourney(() => traveller)
  describeElicitation(() => traveller)
  describeResumption(
    () => traveller,
    () => proxy.cutAll(),
  )

  it('ends its session; every node then rejects the session id', async () => {
    const { sessionId } = transport
    await transport.terminateSession()
    const headers = { Accept: 'text/event-stream', 'Mcp-Session-Id': String(sessionId) }
    for (const { url } of balanced.nodes) expect((await fetch(`${url}/mcp`, { headers })).status).to.equal(404)
  })

  it('uses every node', () => expectAllServed(counts))
})

describe('@modelcontextprotocol/sdk 1.32 over HTTP+SSE, load balanced over three nodes', () => {
  let traveller: Traveller
  let counts: Map<number, number>
  before(async () => {
    counts = balanced.nginx.counts()
    traveller = createTraveller()
    await traveller.client.connect(new SSEClientTransport(new URL('/mcp/sse', balanced.url)) as Transport)
  })
  after(() => traveller?.client.close())

  describeSessionJourney(() => traveller)
  describeElicitation(() => traveller)
  it('uses every node', () => expectAllServed(counts))
})

describe('@modelcontextprotocol/client 2, load balanced over three nodes', () => {
  for (const [what, path, revision] of [
    ['version negotiation', '/modern', MODERN_REVISION],
    ['with a session', '/modern', '2025-11-25'],
  ] as const) {
    describe(what, () => {
      let client: Client
      let counts: Map<number, number>
      const asked: string[] = []
      before(async () => {
        counts = balanced.nginx.counts()
        const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} }
        const modern = revision === MODERN_REVISION && { versionNegotiation: { mode: 'auto' as const } }
        client = new Client({ name: 'official', version: '2.0.0' }, { capabilities, ...modern })
        client.setRequestHandler('elicitation/create', ({ params }) => {
          asked.push(params.message)
          return { action: 'accept' as const, content: { name: 'Grace' } }
        })
        client.setRequestHandler('sampling/createMessage', ({ params }) => {
          asked.push(`sample ${params.maxTokens}`)
          return { role: 'assistant' as const, content: { type: 'text' as const, text: 'Hello.' }, model: 'a model' }
        })
        client.setRequestHandler('roots/list', () => {
          asked.push('roots')
          return { roots: [{ uri: 'file:///home/grace' }] }
        })
        await client.connect(new StreamableHTTPClientTransport(new URL(path, balanced.url)))
      })
      after(() => client?.close())

      it(`negotiates ${revision}`, () => expect(client.getNegotiatedProtocolVersion()).to.equal(revision))

      it('lists and calls tools, reads resources and gets prompts', async () => {
        expect((await client.listTools()).tools.map(({ name }) => name)).to.include.members(['greet', 'interview'])
        const { contents } = await client.readResource({ uri: 'pages://7' })
        expect(contents).to.deep.equal([{ uri: 'pages://7', text: 'text of page 7' }])
        expect((await client.getPrompt({ name: 'summary', arguments: { topic: 'trees' } })).messages).to.have.length(1)
        for (let call = 0; call < 6; call++) {
          const { content } = await client.callTool({ name: 'greet', arguments: { name: `Ada ${call}` } })
          expect(content).to.deep.equal(text(`Hello, Ada ${call}!`))
        }
      })

      it('receives progress in order while the call runs', async () => {
        const steps: unknown[] = []
        const onprogress = ({ progress }: { progress: number }) => void steps.push(progress)
        expect((await client.callTool({ name: 'count' }, { onprogress })).content).to.deep.equal(text('counted'))
        expect(steps).to.deep.equal([1, 2, 3])
      })

      it('answers elicitation at any node', async () => {
        const { structuredContent } = await client.callTool({ name: 'interview' })
        expect(structuredContent).to.deep.equal({
          action: 'accept',
          content: { name: 'Grace' },
          folders: ['file:///home/grace'],
          model: 'a model',
        })
        expect(asked.sort()).to.deep.equal(['Who are you?', 'roots', 'sample 10'])
      })

      it('uses every node', () => expectAllServed(counts))
    })
  }
})

describe('examples/scaling with its nginx.conf', () => {
  let example: Balanced
  before(async () => {
    example = await startBalanced({ config: 'examples/scaling/mcp.config.ts' })
  })

  it('serves a session at every node and passes health checks', async () => {
    const client = new OldClient({ name: 'official', version: '1.0.0' })
    await client.connect(new OldTransport(new URL('/mcp', example.url)) as Transport)
    for (let call = 0; call < 6; call++) {
      const { isError } = await client.callTool({ name: 'current_time', arguments: { zones: ['Europe/Vienna'] } })
      expect(isError).to.not.equal(true)
    }
    for (const { url } of example.nodes) expect((await fetch(`${url}/health`)).status).to.equal(200)
    await client.close()
    expect(Math.min(...example.nginx.counts().values())).to.be.at.least(2)
  })
})
