// The steps of a client of the official SDK 1.x in a session, the same for every version and transport.
import { once } from 'node:events'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type * as Types from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { eventually } from './eventually.ts'
import { createGate } from './gate.ts'
import type { Puppet } from './puppet-tool.ts'

export interface Traveller {
  readonly client: Client
  /** Controls the tool `puppet`. */
  readonly puppet: Pick<Puppet, 'call'>
  /** Requests and notifications that the client received. */
  readonly heard: Heard
}

/** Notifications by method, and requests, in order. */
export interface Heard {
  readonly asked: string[]
  next(method: string): Promise<unknown>
}

const text = (value: string) => [{ type: 'text', text: value }]

/** Responds to the host's requests and records its notifications. `types` is the client's own version. */
export function listenTo(client: Client, types: typeof Types, elicits: boolean): Heard {
  const asked: string[] = []
  const events = new EventTarget()
  const schemas = [
    types.LoggingMessageNotificationSchema,
    types.ResourceUpdatedNotificationSchema,
    types.ToolListChangedNotificationSchema,
  ]
  for (const schema of schemas) {
    client.setNotificationHandler(schema, ({ method, params }) => {
      events.dispatchEvent(new CustomEvent(method, { detail: params }))
    })
  }
  client.setRequestHandler(types.CreateMessageRequestSchema, ({ params }) => {
    asked.push(`sample ${params.maxTokens}`)
    return { role: 'assistant', content: { type: 'text', text: 'Hello.' }, model: 'a model' }
  })
  client.setRequestHandler(types.ListRootsRequestSchema, () => {
    asked.push('roots')
    return { roots: [{ uri: 'file:///home/ada' }] }
  })
  if (elicits) {
    client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => {
      asked.push(`${params.mode ?? 'form'}: ${params.message}`)
      return params.mode === 'url' ? { action: 'accept' } : { action: 'accept', content: { name: 'Ada' } }
    })
  }
  const next = async (method: string) => {
    const [event] = await once(events, method)
    return (event as CustomEvent).detail
  }
  return { asked, next }
}

/** The steps of every client in a session. A host in between can leave out progress, but not the last step. */
export function describeSessionJourney(traveller: () => Traveller, isDirect = true): void {
  it('receives the server info and capabilities', () => {
    const { client } = traveller()
    expect(client.getServerVersion()).to.deep.equal({ name: 'test-host', version: '1.2.3' })
    expect(client.getServerCapabilities()).to.deep.include({
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      logging: {},
    })
  })

  it('pings, lists, reads resources, gets prompts and completes', async () => {
    const { client } = traveller()
    expect(await client.ping()).to.deep.equal({})
    expect((await client.listTools()).tools.map(({ name }) => name)).to.include.members([
      'ask_the_model',
      'greet',
      'puppet',
    ])
    expect((await client.listResources()).resources.map(({ uri }) => uri)).to.deep.equal(['journey://page'])
    const { contents } = await client.readResource({ uri: 'journey://page' })
    expect(contents).to.deep.equal([{ uri: 'journey://page', text: 'text of the page' }])
    const { messages } = await client.getPrompt({ name: 'summary', arguments: { topic: 'trees' } })
    expect(messages).to.deep.equal([{ role: 'user', content: { type: 'text', text: 'Summarize trees.' } }])
    const ref = { type: 'ref/prompt' as const, name: 'summary' }
    const { completion } = await client.complete({ ref, argument: { name: 'topic', value: 'tra' } })
    expect(completion.values).to.deep.equal(['trains'])
  })

  it('calls a tool and gets an error for an unknown one', async () => {
    const { client } = traveller()
    const { content } = await client.callTool({ name: 'greet', arguments: { name: 'Ada' } })
    expect(content).to.deep.equal(text('Hello, Ada!'))
    expect(await rejectionOf(client.callTool({ name: 'nope' }))).to.include({ code: -32602 })
  })

  it('receives progress in order and log messages of the configured level', async () => {
    const { client, heard, puppet } = traveller()
    await client.setLoggingLevel('warning')
    const logged = heard.next('notifications/message')
    const steps: number[] = []
    const three = createGate()
    const onprogress = ({ progress }: { progress: number }) => {
      steps.push(progress)
      if (progress === 3) three.open()
    }
    const answer = client.callTool({ name: 'puppet', arguments: { name: 'counting' } }, undefined, { onprogress })
    const { ctx, finish } = await puppet.call('counting')
    for (const step of [1, 2, 3]) ctx.progress(step, 3)
    ctx.log('notice', 'too small to hear')
    ctx.log('warning', { counted: 3 }, 'counter')
    // The client drops its progress handler as soon as it has read the response.
    await three.opened
    finish('counted')
    expect((await answer).content).to.deep.equal(text('counted'))
    if (isDirect || steps.includes(2)) expect(steps).to.deep.equal([1, 2, 3])
    else expect(steps).to.deep.equal([1, 3])
    expect(await logged).to.deep.equal({ level: 'warning', data: { counted: 3 }, logger: 'counter' })
  })

  it('answers sampling and roots requests', async () => {
    const { client, heard } = traveller()
    heard.asked.length = 0
    const { content } = await client.callTool({ name: 'ask_the_model' })
    expect(content).to.deep.equal(text('{"folders":["file:///home/ada"],"model":"a model"}'))
    expect(heard.asked.sort()).to.deep.equal(['roots', 'sample 10'])
  })

  it('receives resource updates until it unsubscribes', async () => {
    const { client, heard } = traveller()
    await client.subscribeResource({ uri: 'journey://page' })
    const update = heard.next('notifications/resources/updated')
    await client.callTool({ name: 'edit_page' })
    expect(await update).to.deep.equal({ uri: 'journey://page' })
    await client.unsubscribeResource({ uri: 'journey://page' })
    const told = Promise.race([
      heard.next('notifications/resources/updated'),
      heard.next('notifications/tools/list_changed'),
    ])
    await client.callTool({ name: 'edit_page' })
    await client.callTool({ name: 'add_tool' })
    // The list change arrives on the same stream, after the position of a resource update.
    expect(await told).to.not.have.property('uri')
    const isListed = async () => (await client.listTools()).tools.some(({ name }) => name === 'added')
    // Several hosts in between read the lists of their server one after the other.
    if (isDirect) expect(await isListed()).to.equal(true)
    else await eventually('the tool is listed', isListed)
  })

  it('cancels a call and aborts the signal of the handler', async () => {
    const { client, puppet } = traveller()
    const controller = new AbortController()
    const call = rejectionOf(
      client.callTool({ name: 'puppet', arguments: { name: 'cancelled' } }, undefined, { signal: controller.signal }),
    )
    const { ctx } = await puppet.call('cancelled')
    const aborted = once(ctx.signal, 'abort')
    controller.abort(new Error('enough'))
    await aborted
    expect(await call).to.be.an('error')
  })
}

/** The steps of a client that supports elicitation. */
export function describeElicitation(traveller: () => Traveller): void {
  it('answers form elicitation and URL elicitation', async () => {
    const { client, heard } = traveller()
    heard.asked.length = 0
    const { content } = await client.callTool({ name: 'ask_the_user' })
    expect(content).to.deep.equal([{ type: 'text', text: '{"name":"Ada","consent":"accept"}' }])
    expect(heard.asked).to.deep.equal(['form: Who are you?', 'url: Please consent.'])
  })
}

/** The steps of a client whose connections break during a call. */
export function describeResumption(traveller: () => Traveller, cutAll: () => void): void {
  it('resumes after a disconnect with missed progress, result and notifications', async () => {
    const { client, puppet, heard } = traveller()
    const steps: number[] = []
    const one = createGate()
    const onprogress = ({ progress }: { progress: number }) => {
      steps.push(progress)
      one.open()
    }
    const answer = client.callTool({ name: 'puppet', arguments: { name: 'resumed' } }, undefined, { onprogress })
    const { ctx, finish } = await puppet.call('resumed')
    ctx.progress(1)
    await one.opened
    const changed = heard.next('notifications/tools/list_changed')
    cutAll()
    ctx.progress(2)
    ctx.host.tools.remove('added')
    ctx.progress(3)
    finish('done')
    expect((await answer).content).to.deep.equal(text('done'))
    expect(steps).to.deep.equal([1, 2, 3])
    await changed
  })
}
