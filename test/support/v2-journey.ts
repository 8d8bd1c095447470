// The steps of a client of the official SDK 2.x, and those that it has in common with SDK 1.x.
import { once } from 'node:events'
import { Client } from '@modelcontextprotocol/client'
import type { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { expect } from 'chai'
import { META } from '../../core/transport.ts'
import { PAGES, waits } from '../fixtures/journey-toolset.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'

export interface ModernTraveller {
  readonly client: Client
  /** Requests that the client answered. */
  readonly asked: string[]
  /** Log messages that the client received. */
  readonly logged: unknown[]
}

/** A client that is not connected yet. It answers all requests. */
export function createModernTraveller(): ModernTraveller {
  const asked: string[] = []
  const logged: unknown[] = []
  const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} }
  const client = new Client(
    { name: 'official', version: '2.0.0' },
    { capabilities, versionNegotiation: { mode: 'auto' } },
  )
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
  return { client, asked, logged }
}

const text = (value: string) => [{ type: 'text', text: value }]

/** Progress of the tool `count`. A host in between can leave out steps, but not the last one. */
export function expectProgress(progress: readonly unknown[], isDirect: boolean): void {
  const steps = isDirect || progress.length === 3 ? [1, 2, 3] : [1, 3]
  expect(progress).to.deep.equal(steps.map(step => ({ progress: step, total: 3, message: `step ${step}` })))
}

/** The steps that the clients of both SDKs have in common. */
export function describeCommonJourney(clientOf: () => Client | OldClient): void {
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

/**
 * The steps of a client of 2026-07-28. `hasProgress`: false for stdio, because SDK 2.4 drops progress that it reads together with the
 * response.
 */
export function describeModernJourney(traveller: () => ModernTraveller, isDirect = true, hasProgress = true): void {
  it('mirrors annotated parameters into accepted headers', async () => {
    const { client } = traveller()
    await client.listTools()
    const { content } = await client.callTool({ name: 'route_me', arguments: { region: 'Zürich' } })
    expect(content).to.deep.equal(text('Zürich'))
  })

  if (hasProgress)
    it('gets progress while the call runs, in order', async () => {
      const { client } = traveller()
      const progress: unknown[] = []
      const { content } = await client.callTool({ name: 'count' }, { onprogress: report => void progress.push(report) })
      expect(content).to.deep.equal(text('counted'))
      expectProgress(progress, isDirect)
    })

  it('receives log messages only at the requested level', async () => {
    const { client, logged } = traveller()
    logged.length = 0
    await client.callTool({ name: 'count' })
    await client.callTool({ name: 'count', _meta: { [META.logLevel]: 'warning' } })
    await client.callTool({ name: 'count', _meta: { [META.logLevel]: 'info' } })
    expect(logged).to.deep.equal([{ level: 'info', data: { counted: 3 }, logger: 'counter' }])
  })

  it('answers elicitation, then sampling and roots in one round', async () => {
    const { client, asked } = traveller()
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
    const { client } = traveller()
    const controller = new AbortController()
    const [waiting, aborted] = [once(waits, 'waiting'), once(waits, 'aborted')]
    const call = rejectionOf(client.callTool({ name: 'wait' }, { signal: controller.signal }))
    await waiting
    controller.abort(new Error('enough'))
    await aborted
    expect(await call).to.be.an('error')
  })
}
