// Three nodes behind nginx, which gives each request to the next of them whoever sends it: the official clients'
// journeys pass as with one node, and nothing of one user is another's.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import * as types from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import { MODERN_REVISION } from '../../core/transport.ts'
import { type Balanced, needsDeployment, startBalanced, stopBalanced } from '../cluster/support/balanced.ts'
import { createRemotePuppet, type RemotePuppet } from '../cluster/support/remote-puppet.ts'
import { type CuttingProxy, startCuttingProxy } from '../support/cutting-proxy.ts'
import { describeResumption, describeSessionJourney, listenTo, type Traveller } from '../support/v1-journey.ts'

// Its transports' types do not hold under exactOptionalPropertyTypes.
type Transport = Parameters<OldClient['connect']>[0]

const CONFIG = 'test/cluster/support/journey.config.ts'
const text = (value: string) => [{ type: 'text', text: value }]

let balanced: Balanced
let puppet: RemotePuppet

before(async function () {
  this.timeout(120_000)
  needsDeployment(this)
  balanced = await startBalanced({ config: CONFIG })
  puppet = createRemotePuppet(balanced.nodes)
})
after(stopBalanced)

/** Prints what each node served since, and expects that to be something. */
function expectAllServed(what: string, before: ReadonlyMap<number, number>) {
  const served = [...balanced.nginx.counts()].map(([port, count]) => count - (before.get(port) ?? 0))
  console.log(`      ${what}: requests ${served.map((count, at) => `node ${at + 1}: ${count}`).join(', ')}`)
  expect(Math.min(...served)).to.be.at.least(1)
}

function createTraveller(): Traveller {
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
  const client = new OldClient({ name: 'official', version: '1.0.0' }, { capabilities })
  puppet.forget()
  return { client, puppet, heard: listenTo(client, types, true) }
}

function describeElicitation(traveller: () => Traveller) {
  it('answers what a tool asks of the user: a form, then a page to visit', async () => {
    const { client, heard } = traveller()
    heard.asked.length = 0
    const { content } = await client.callTool({ name: 'ask_the_user' })
    expect(content).to.deep.equal(text('{"name":"Ada","consent":"accept"}'))
    expect(heard.asked).to.deep.equal(['form: Who are you?', 'url: Please consent.'])
  })
}

describe('@modelcontextprotocol/sdk 1.32 over streamable HTTP, through nginx to three nodes', () => {
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

  it('ends its session, and every node refuses its id afterwards', async () => {
    const { sessionId } = transport
    await transport.terminateSession()
    const headers = { Accept: 'text/event-stream', 'Mcp-Session-Id': String(sessionId) }
    for (const { url } of balanced.nodes) expect((await fetch(`${url}/mcp`, { headers })).status).to.equal(404)
  })

  it('was served by every node', () => expectAllServed('SDK 1.32', counts))
})

describe('@modelcontextprotocol/sdk 1.32 over HTTP with SSE, through nginx to three nodes', () => {
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
  it('was served by every node', () => expectAllServed('SDK 1.32, SSE', counts))
})

describe('@modelcontextprotocol/client 2, through nginx to three nodes', () => {
  for (const [what, path, revision] of [
    ['negotiating by itself', '/modern', MODERN_REVISION],
    ['in a session', '/modern', '2025-11-25'],
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

      it(`speaks ${revision}`, () => expect(client.getNegotiatedProtocolVersion()).to.equal(revision))

      it('lists, reads, gets and calls', async () => {
        expect((await client.listTools()).tools.map(({ name }) => name)).to.include.members(['greet', 'interview'])
        const { contents } = await client.readResource({ uri: 'pages://7' })
        expect(contents).to.deep.equal([{ uri: 'pages://7', text: 'text of page 7' }])
        expect((await client.getPrompt({ name: 'summary', arguments: { topic: 'trees' } })).messages).to.have.length(1)
        for (let call = 0; call < 6; call++) {
          const { content } = await client.callTool({ name: 'greet', arguments: { name: `Ada ${call}` } })
          expect(content).to.deep.equal(text(`Hello, Ada ${call}!`))
        }
      })

      it('gets progress while the call runs, in order', async () => {
        const steps: unknown[] = []
        const onprogress = ({ progress }: { progress: number }) => void steps.push(progress)
        expect((await client.callTool({ name: 'count' }, { onprogress })).content).to.deep.equal(text('counted'))
        expect(steps).to.deep.equal([1, 2, 3])
      })

      it('answers what a tool asks, at whatever node its answer lands', async () => {
        const { structuredContent } = await client.callTool({ name: 'interview' })
        expect(structuredContent).to.deep.equal({
          action: 'accept',
          content: { name: 'Grace' },
          folders: ['file:///home/grace'],
          model: 'a model',
        })
        expect(asked.sort()).to.deep.equal(['Who are you?', 'roots', 'sample 10'])
      })

      it('was served by every node', () => expectAllServed(`SDK 2, ${what}`, counts))
    })
  }
})

describe('examples/scaling, through its nginx.conf', () => {
  let example: Balanced
  before(async function () {
    this.timeout(120_000)
    example = await startBalanced({ config: 'examples/scaling/mcp.config.ts' })
  })

  it('serves a session at every node, and says that it is well', async () => {
    const client = new OldClient({ name: 'official', version: '1.0.0' })
    await client.connect(new OldTransport(new URL('/mcp', example.url)) as Transport)
    for (let call = 0; call < 6; call++) {
      const { isError } = await client.callTool({ name: 'current_time', arguments: { zones: ['Europe/Vienna'] } })
      expect(isError).to.not.equal(true)
    }
    for (const { url } of example.nodes) expect((await fetch(`${url}/health`)).status).to.equal(200)
    await client.close()
    console.log(`      requests: ${example.describeCounts()}`)
    expect(Math.min(...example.nginx.counts().values())).to.be.at.least(2)
  })
})
