import { once } from 'node:events'
import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect } from 'chai'
import { HANDSHAKE_REVISIONS, META, MODERN_REVISION } from '../../core/transport.ts'
import { journey, PAGES, waits } from '../fixtures/journey-toolset.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const INFO = { name: 'official', version: '1.0.0' }
const text = (value: string) => [{ type: 'text', text: value }]

function expectProgress(progress: readonly unknown[]) {
  expect(progress).to.deep.equal([1, 2, 3].map(step => ({ progress: step, total: 3, message: `step ${step}` })))
}

/** What both generations of the client do alike, one call after the other. */
function describeCommonJourney(clientOf: () => Client | OldClient) {
  it('lists tools with their annotations and schemas', async () => {
    const { tools } = await clientOf().listTools()
    expect(tools.map(({ name }) => name)).to.deep.equal([
      'count',
      'fail',
      'greet',
      'interview',
      'route_me',
      'wait',
      'weigh',
    ])
    const greet = tools.find(({ name }) => name === 'greet')
    expect(greet?.annotations).to.deep.equal({ readOnlyHint: true })
    expect(greet?.inputSchema.required).to.deep.equal(['name'])
    expect(tools.find(({ name }) => name === 'weigh')?.outputSchema).to.include({ type: 'object' })
  })

  it('pages through a resource list and returns each resource once', async () => {
    const client = clientOf()
    const uris: string[] = []
    const sizes: number[] = []
    // The newer client reads every page by itself unless it is given a cursor.
    for (let cursor: string | undefined; sizes.length === 0 || cursor !== undefined; ) {
      const page = await client.listResources(cursor === undefined ? {} : { cursor })
      uris.push(...page.resources.map(({ uri }) => uri))
      sizes.push(page.resources.length)
      cursor = page.nextCursor
    }
    expect(new Set(uris)).to.have.property('size', PAGES)
    expect(uris).to.have.length(PAGES)
    expect(sizes).to.deep.equal(client instanceof Client ? [PAGES] : [500, 1])
  })

  it('calls a tool for text', async () => {
    const result = await clientOf().callTool({ name: 'greet', arguments: { name: 'Ada' } })
    expect(result.content).to.deep.equal(text('Hello, Ada!'))
  })

  it('calls a tool with structured content that matches the output schema', async () => {
    const result = await clientOf().callTool({ name: 'weigh', arguments: { kilograms: 2 } })
    expect(result.structuredContent).to.deep.equal({ grams: 2_000 })
  })

  it('returns invalid arguments and tool failures as error results without exception text', async () => {
    const wrong = await clientOf().callTool({ name: 'greet', arguments: {} })
    expect(wrong.isError).to.equal(true)
    expect(JSON.stringify(wrong.content)).to.match(/name.*required|required.*name|name.*missing|missing.*name/i)
    const failed = await clientOf().callTool({ name: 'fail' })
    expect(failed).to.deep.include({ content: text('fail failed'), isError: true })
  })

  it('reports an unknown tool as a protocol error', async () => {
    expect(await rejectionOf(clientOf().callTool({ name: 'nope' }))).to.include({ code: -32602 })
  })

  it('reads a resource and a resource template', async () => {
    const page = await clientOf().readResource({ uri: 'pages://7' })
    expect(page.contents).to.deep.equal([{ uri: 'pages://7', text: 'text of page 7' }])
    const { resourceTemplates } = await clientOf().listResourceTemplates()
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).to.deep.equal(['cities://{country}/{city}'])
    const { contents } = await clientOf().readResource({ uri: 'cities://at/Linz' })
    expect(contents).to.deep.equal([
      { uri: 'cities://at/Linz', mimeType: 'application/json', text: '{"country":"at","city":"Linz"}' },
    ])
  })

  it('lists and gets prompts', async () => {
    const { prompts } = await clientOf().listPrompts()
    expect(prompts).to.deep.equal([
      { name: 'summary', description: 'Asks for a summary.', arguments: [{ name: 'topic', required: true }] },
    ])
    const { messages } = await clientOf().getPrompt({ name: 'summary', arguments: { topic: 'trees' } })
    expect(messages).to.deep.equal([{ role: 'user', content: { type: 'text', text: 'Summarize trees.' } }])
  })

  it('completes prompt arguments and template variables', async () => {
    const ofPrompt = await clientOf().complete({
      ref: { type: 'ref/prompt', name: 'summary' },
      argument: { name: 'topic', value: 'tr' },
    })
    expect(ofPrompt.completion.values).to.deep.equal(['trees', 'trains'])
    const ofTemplate = await clientOf().complete({
      ref: { type: 'ref/resource', uri: 'cities://{country}/{city}' },
      argument: { name: 'city', value: 'Bad' },
      context: { arguments: { country: 'de' } },
    })
    expect(ofTemplate.completion.values).to.deep.equal(['Badville', 'Badburg of de'])
  })
}

describe('@modelcontextprotocol/client with version negotiation on a default route', () => {
  const asked: string[] = []
  const logged: unknown[] = []
  let client: Client

  before(async () => {
    const { url } = await startHost({ toolsets: { journey }, routes: { '/mcp': { toolsets: 'journey' } } })
    const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} }
    client = new Client(INFO, { capabilities, versionNegotiation: { mode: 'auto' } })
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
    client.setNotificationHandler('notifications/message', ({ params }) => void logged.push(params))
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

  it('mirrors annotated parameters into accepted headers', async () => {
    await client.listTools()
    const { content } = await client.callTool({ name: 'route_me', arguments: { region: 'Zürich' } })
    expect(content).to.deep.equal(text('Zürich'))
  })

  it('gets progress while the call runs, in order', async () => {
    const progress: unknown[] = []
    const { content } = await client.callTool({ name: 'count' }, { onprogress: report => void progress.push(report) })
    expect(content).to.deep.equal(text('counted'))
    expectProgress(progress)
  })

  it('receives log messages only at the requested level', async () => {
    logged.length = 0
    await client.callTool({ name: 'count' })
    await client.callTool({ name: 'count', _meta: { [META.logLevel]: 'warning' } })
    await client.callTool({ name: 'count', _meta: { [META.logLevel]: 'info' } })
    expect(logged).to.deep.equal([{ level: 'info', data: { counted: 3 }, logger: 'counter' }])
  })

  it('answers elicitation, then sampling and roots in one round', async () => {
    const { structuredContent } = await client.callTool({ name: 'interview' })
    expect(structuredContent).to.deep.equal({
      action: 'accept',
      content: { name: 'Grace' },
      folders: ['file:///home/grace'],
      model: 'a model',
    })
    expect(asked[0]).to.equal('Who are you?')
    expect(asked.slice(1).sort()).to.deep.equal(['roots', 'sample 10'])
  })

  it('cancels a call through its abort signal', async () => {
    const controller = new AbortController()
    const [waiting, aborted] = [once(waits, 'waiting'), once(waits, 'aborted')]
    const call = rejectionOf(client.callTool({ name: 'wait' }, { signal: controller.signal }))
    await waiting
    controller.abort(new Error('enough'))
    await aborted
    expect(await call).to.be.an('error')
  })
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
    expectProgress(progress)
  })

  it('gets a readable tool error when a tool needs elicitation', async () => {
    const { content, isError } = await client.callTool({ name: 'interview' })
    expect(isError).to.equal(true)
    expect(JSON.stringify(content)).to.match(/cannot receive requests on a stateless route/)
  })
})
