// Tests subscriptions/listen of 2026-07-28 and notifications for listeners and sessions.
import { expect } from 'chai'
import { definePrompt, defineResource, defineTool, type RuntimeHost } from '../../core/index.ts'
import { definePlugin } from '../../core/internal.ts'
import { type Change, type ChangeBus, META } from '../../core/transport.ts'
import { identifyByHeader } from '../fixtures/identify-by-header.ts'
import { eventually } from '../support/eventually.ts'
import { createMemoryChangeBus } from '../support/memory-services.ts'
import { modern } from '../support/rpc.ts'
import { listen, nextMessage, openSession, readRest, readSubscription, readWhole } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import type { StreamExchange } from '../support/stream-exchange.ts'

const tool = (name: string) => defineTool({ name, handler: () => name })
const page = defineResource({ name: 'page', uri: 'test://page', handler: () => 'text' })
const family = defineResource({ name: 'family', uriTemplate: 'test://family/{member}', handler: () => 'text' })
const prompt = definePrompt({ name: 'prompt', handler: () => 'text' })

const EVERYTHING = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }

let url: string
let runtime: RuntimeHost
before(async () => {
  const started = await startHost({
    toolsets: { all: [tool('a'), page, family, prompt], other: [tool('b')] },
    routes: {
      '/': { toolsets: 'all' },
      '/other': { toolsets: 'other' },
      '/silent': { toolsets: 'all', listen: false },
      '/stateless': { toolsets: 'all', stateless: true },
      '/listening': { toolsets: 'all', stateless: true, listen: true },
    },
    plugins: { 'transport-streamable': {}, who: identifyByHeader() },
  })
  url = started.url
  runtime = started.host.runtime
})
after(stopHosts)

const open: StreamExchange[] = []
afterEach(() => {
  for (const stream of open.splice(0)) stream.drop()
})

/** An open subscription, past its acknowledgement. */
async function opened(notifications: object, options?: Parameters<typeof listen>[2], path = '/') {
  const stream = await listen(`${url}${path}`, notifications, options)
  open.push(stream)
  return { stream, acknowledged: await nextMessage(stream) }
}

const change = {
  tools() {
    runtime.tools.add(tool('more'))
    runtime.tools.remove('more')
  },
  prompts() {
    runtime.prompts.add(definePrompt({ name: 'more', handler: () => '' }))
    runtime.prompts.remove('more')
  },
}

describe('subscriptions/listen', () => {
  it('acknowledges first and adds its id to every notification', async () => {
    for (const id of [0, 7, '', 'sub-1']) {
      const { stream, acknowledged } = await opened({ ...EVERYTHING, resourceSubscriptions: ['test://page'] }, { id })
      expect(stream.headers['content-type']).to.equal('text/event-stream')
      expect(acknowledged).to.deep.equal({
        jsonrpc: '2.0',
        method: 'notifications/subscriptions/acknowledged',
        params: {
          _meta: { [META.subscriptionId]: id },
          notifications: { ...EVERYTHING, resourceSubscriptions: ['test://page'] },
        },
      })
      change.prompts()
      runtime.resourceUpdated('test://page')
      const [added, removed, updated] = [
        await nextMessage(stream),
        await nextMessage(stream),
        await nextMessage(stream),
      ]
      expect([added, removed].map(({ method }) => method)).to.deep.equal(
        Array(2).fill('notifications/prompts/list_changed'),
      )
      expect([updated.method, updated.params.uri]).to.deep.equal(['notifications/resources/updated', 'test://page'])
      expect([added, removed, updated].map(readSubscription)).to.deep.equal([id, id, id])
    }
  })

  it('sends only requested notifications', async () => {
    const { stream } = await opened({ promptsListChanged: true, toolsListChanged: false })
    change.tools()
    runtime.resourceUpdated('test://page')
    change.prompts()
    expect((await nextMessage(stream)).method).to.equal('notifications/prompts/list_changed')
  })

  it('acknowledges only resources of the route, each once', async () => {
    const none = await opened(EVERYTHING, {}, '/other')
    expect(none.acknowledged.params.notifications).to.deep.equal({ toolsListChanged: true })
    const uris = ['test://page', 'test://nothing', 'test://page', 'test://family/ann']
    const some = await opened({ resourceSubscriptions: uris, somethingNew: true })
    expect(some.acknowledged.params.notifications).to.deep.equal({
      resourceSubscriptions: ['test://page', 'test://family/ann'],
    })
    runtime.resourceUpdated('test://nothing')
    runtime.resourceUpdated('test://family/ann')
    expect((await nextMessage(some.stream)).params.uri).to.equal('test://family/ann')
    expect((await opened({})).acknowledged.params.notifications).to.deep.equal({})
    expect((await opened({ resourceSubscriptions: [] })).acknowledged.params.notifications).to.deep.equal({})
  })

  it('notifies only of changes in toolsets of its route', async () => {
    const { stream } = await opened(EVERYTHING)
    runtime.tools.add(tool('elsewhere'), { toolset: 'other' })
    runtime.tools.remove('elsewhere', { toolset: 'other' })
    runtime.prompts.add(definePrompt({ name: 'here', handler: () => '' }), { toolset: 'all' })
    expect((await nextMessage(stream)).method).to.equal('notifications/prompts/list_changed')
    runtime.prompts.remove('here', { toolset: 'all' })
  })

  it('notifies sessions and listeners, each listener with its own id', async () => {
    const session = await (await openSession(url)).get()
    open.push(session)
    const [one, two] = [await opened(EVERYTHING, { id: 'one' }), await opened(EVERYTHING, { id: 'two' })]
    change.tools()
    expect(readSubscription(await nextMessage(one.stream))).to.equal('one')
    expect(readSubscription(await nextMessage(two.stream))).to.equal('two')
    expect(await nextMessage(session)).to.deep.equal({
      jsonrpc: '2.0',
      method: 'notifications/tools/list_changed',
      params: {},
    })
  })

  it('rejects missing or invalid `notifications` with -32602 and the request id', async () => {
    const filters = [
      ...[undefined, null, 'all', ['toolsListChanged'], { toolsListChanged: 'yes' }, { promptsListChanged: 1 }],
      ...[{ resourceSubscriptions: 'test://page' }, { resourceSubscriptions: [5] }],
      { resourceSubscriptions: Array.from({ length: 1_001 }, (_, index) => `test://family/${index}`) },
    ]
    for (const notifications of filters) {
      const { message } = await readWhole(listen(url, notifications, { id: 'bad' }))
      expect([message.error?.code, message.id], JSON.stringify(notifications)?.slice(0, 60)).to.deep.equal([
        -32602,
        'bad',
      ])
    }
  })

  it('rejects more than 100 streams of one caller with 429 and Retry-After until one ends', async () => {
    const headers = { 'X-User': 'ada' }
    const streams: StreamExchange[] = []
    for (let count = 0; count < 100; count++) streams.push((await opened({}, { headers })).stream)
    const refused = await readWhole(listen(url, {}, { headers, id: 'one more' }))
    expect([refused.status, refused.message.error.code, refused.message.id]).to.deep.equal([429, -32600, 'one more'])
    expect(Number(refused.headers['retry-after'])).to.be.greaterThan(0)
    await opened({}, { headers: { 'X-User': 'bob' } })
    await opened({})
    streams[0]?.drop()
    const listenAgain = () => listen(url, {}, { headers })
    const again = await eventually('room for another one', listenAgain, ({ status }) => status !== 429)
    open.push(again)
    expect((await nextMessage(again)).method).to.equal('notifications/subscriptions/acknowledged')
  })

  it('is rejected in a session', async () => {
    const { message } = await (await openSession(url)).request('subscriptions/listen', { notifications: {} })
    expect(message.error.code).to.equal(-32601)
  })
})

describe('subscriptions/listen per route', () => {
  const promised = async (path: string) =>
    (await modern(`${url}${path}`, 'server/discover')).message.result.capabilities

  it('is available on routes with sessions unless `listen: false`', async () => {
    expect(await promised('/')).to.deep.include({ tools: { listChanged: true }, prompts: { listChanged: true } })
    expect((await promised('/')).resources).to.deep.equal({ listChanged: true, subscribe: true })
    expect((await promised('/silent')).tools).to.deep.equal({})
    const refused = await readWhole(listen(`${url}/silent`, {}))
    expect([refused.status, refused.message.error.code]).to.deep.equal([404, -32601])
  })

  it('is unavailable with `stateless: true` unless `listen: true`', async () => {
    expect(await promised('/stateless')).to.deep.include({ tools: {}, resources: {}, prompts: {} })
    const refused = await readWhole(listen(`${url}/stateless`, {}))
    expect([refused.status, refused.message.error.code]).to.deep.equal([404, -32601])
    expect((await promised('/listening')).tools).to.deep.equal({ listChanged: true })
    const { stream } = await opened({ toolsListChanged: true }, {}, '/listening')
    change.tools()
    expect((await nextMessage(stream)).method).to.equal('notifications/tools/list_changed')
  })
})

describe('change bus', () => {
  it('delivers changes of other nodes to listeners and sessions', async () => {
    const memory = createMemoryChangeBus()
    const published: Change[] = []
    const bus: ChangeBus = {
      publish: change => void published.push(change),
      subscribe: memory.subscribe,
    }
    const shared = definePlugin({
      options: { type: 'object', additionalProperties: false, properties: {} },
      setup: host => host.provide('changeBus', bus),
    })
    const { url, host } = await startHost({
      toolsets: { all: [page] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, shared: shared() },
    })
    const listener = await listen(url, { resourceSubscriptions: ['test://page'] })
    await nextMessage(listener)
    const client = await openSession(url)
    await client.request('resources/subscribe', { uri: 'test://page' })
    const session = await client.get()
    host.runtime.resourceUpdated('test://page')
    expect(published).to.deep.equal([{ kind: 'resource', uri: 'test://page' }])
    memory.publish({ kind: 'resource', uri: 'test://page' })
    for (const stream of [listener, session]) expect((await nextMessage(stream)).params.uri).to.equal('test://page')
    await client.end()
    expect(await readRest(session)).to.deep.equal([])
  })
})
