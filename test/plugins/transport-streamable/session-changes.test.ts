import { expect } from 'chai'
import { definePrompt, defineResource, defineTool, type RuntimeHost } from '../../../core/index.ts'
import { legacy } from '../../support/rpc.ts'
import { initialize, nextMessage, openSession, type SessionSettings } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const tool = (name: string) => defineTool({ name, handler: () => name })
const page = defineResource({ name: 'page', uri: 'test://page', handler: () => 'text' })
const family = defineResource({ name: 'family', uriTemplate: 'test://family/{member}', handler: () => 'text' })
const prompt = definePrompt({ name: 'prompt', handler: () => 'text' })
const change = defineTool({
  name: 'change',
  handler(_args, { host }) {
    host.resourceUpdated('test://page')
    return 'changed'
  },
})

let url: string
let runtime: RuntimeHost
before(async () => {
  const started = await startHost({
    toolsets: { all: [tool('a'), page, family, prompt, change], other: [tool('b')], tools: [tool('c')] },
    routes: {
      '/': { toolsets: 'all' },
      '/other': { toolsets: 'other' },
      '/t/:category': { toolsets: ':category' },
      '/stateless': { toolsets: 'all', stateless: true },
    },
  })
  url = started.url
  runtime = started.host.runtime
})
after(stopHosts)

/** A session with its stream; `heard` is the next thing it is told. */
async function openHearing(path = '/', settings?: SessionSettings) {
  const client = await openSession(`${url}${path}`, settings)
  const stream = await client.get()
  const heard = async () => {
    const { method, params } = await nextMessage(stream)
    return [method.replace('notifications/', ''), params]
  }
  return { client, heard }
}
const UPDATED = ['resources/updated', { uri: 'test://page' }]

describe('Change notifications of a session', () => {
  it('are declared by initialize for existing features, but not on a stateless route', async () => {
    const capabilitiesAt = async (path: string) => (await initialize(`${url}${path}`)).message.result.capabilities
    expect(await capabilitiesAt('/')).to.deep.equal({
      logging: {},
      prompts: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      tools: { listChanged: true },
    })
    expect(await capabilitiesAt('/other')).to.deep.equal({ logging: {}, tools: { listChanged: true } })
    const { message } = await legacy(`${url}/stateless`, 'initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'c', version: '1' },
    })
    expect(message.result.capabilities).to.deep.equal({ prompts: {}, resources: {}, tools: {} })
  })

  for (const revision of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']) {
    it(`send list_changed to a ${revision} session, and the lists match`, async () => {
      const { client, heard } = await openHearing('/', { revision })
      const added = tool(`new-${revision}`)
      runtime.tools.add(added)
      expect(await heard()).to.deep.equal(['tools/list_changed', {}])
      expect((await client.request('tools/call', { name: added.name })).message.result.isError).to.equal(undefined)
      runtime.tools.remove(added.name)
      expect(await heard()).to.deep.equal(['tools/list_changed', {}])
      expect((await client.request('tools/call', { name: added.name })).message.error.code).to.equal(-32602)
      runtime.prompts.add(definePrompt({ name: 'later', handler: () => '' }))
      expect(await heard()).to.deep.equal(['prompts/list_changed', {}])
      runtime.prompts.remove('later')
      await heard()
      runtime.resources.add(defineResource({ name: 'later', uri: 'test://later', handler: () => '' }))
      expect(await heard()).to.deep.equal(['resources/list_changed', {}])
      runtime.resources.remove('test://later')
      await client.end()
    })
  }

  it('are sent only to sessions with the changed toolset', async () => {
    const [all, other, category] = [await openHearing(), await openHearing('/other'), await openHearing('/t/other')]
    runtime.tools.add(tool('more'), { toolset: 'other' })
    runtime.prompts.add(definePrompt({ name: 'mark', handler: () => '' }))
    for (const { heard } of [other, category]) {
      expect(await heard()).to.deep.equal(['tools/list_changed', {}])
      expect(await heard()).to.deep.equal(['prompts/list_changed', {}])
    }
    expect(await all.heard()).to.deep.equal(['prompts/list_changed', {}])
    runtime.tools.remove('more', { toolset: 'other' })
    runtime.prompts.remove('mark')
  })

  it('are not sent for changes before the stream was opened', async () => {
    const [client, other] = [await openSession(url), await openHearing()]
    runtime.tools.add(tool('early'))
    // A shared bus delivers changes later.
    expect(await other.heard()).to.deep.equal(['tools/list_changed', {}])
    const stream = await client.get()
    runtime.resources.add(defineResource({ name: 'late', uri: 'test://late', handler: () => '' }))
    expect((await nextMessage(stream)).method).to.equal('notifications/resources/list_changed')
    runtime.tools.remove('early')
    runtime.resources.remove('test://late')
  })
})

describe('resources/subscribe', () => {
  it('sends updates of that resource only', async () => {
    const { client, heard } = await openHearing()
    expect((await client.request('resources/subscribe', { uri: 'test://page' })).message.result).to.deep.equal({})
    runtime.resourceUpdated('test://family/ann')
    runtime.resourceUpdated('test://page')
    expect(await heard()).to.deep.equal(UPDATED)
  })

  it('accepts a URI of a resource template, before the stream is open', async () => {
    const client = await openSession(url)
    await client.request('resources/subscribe', { uri: 'test://family/ann' })
    const stream = await client.get()
    runtime.resourceUpdated('test://family/bob')
    runtime.resourceUpdated('test://family/ann')
    expect((await nextMessage(stream)).params).to.deep.equal({ uri: 'test://family/ann' })
  })

  it('counts duplicates once, and reports changes made by a tool of the session', async () => {
    const { client, heard } = await openHearing()
    for (const _ of [1, 2]) await client.request('resources/subscribe', { uri: 'test://page' })
    await client.request('tools/call', { name: 'change' })
    runtime.tools.add(tool('mark'))
    expect([await heard(), await heard()]).to.deep.equal([UPDATED, ['tools/list_changed', {}]])
    runtime.tools.remove('mark')
  })

  it('ends with resources/unsubscribe, which can be repeated', async () => {
    const { client, heard } = await openHearing()
    await client.request('resources/subscribe', { uri: 'test://page' })
    for (const _ of [1, 2]) {
      const { message } = await client.request('resources/unsubscribe', { uri: 'test://page' })
      expect(message.result).to.deep.equal({})
    }
    runtime.resourceUpdated('test://page')
    runtime.tools.add(tool('mark'))
    expect(await heard()).to.deep.equal(['tools/list_changed', {}])
    runtime.tools.remove('mark')
  })

  it('answers -32002 with uri for an unknown resource, and -32602 without uri', async () => {
    const client = await openSession(url)
    const uri = 'test://nothing'
    const unknown = await client.request('resources/subscribe', { uri })
    expect([unknown.status, unknown.message.error.code]).to.deep.equal([200, -32002])
    expect(unknown.message.error.data).to.deep.equal({ uri })
    for (const method of ['resources/subscribe', 'resources/unsubscribe']) {
      for (const params of [{}, { uri: 5 }]) {
        expect((await client.request(method, params)).message.error.code).to.equal(-32602)
      }
    }
  })

  it('is limited to its session', async () => {
    const [one, other] = [await openHearing(), await openHearing()]
    await one.client.request('resources/subscribe', { uri: 'test://page' })
    runtime.resourceUpdated('test://page')
    runtime.tools.add(tool('mark'))
    expect(await other.heard()).to.deep.equal(['tools/list_changed', {}])
    expect(await one.heard()).to.deep.equal(UPDATED)
    runtime.tools.remove('mark')
  })

  it('is absent without resources, on a stateless route, and in 2026-07-28', async () => {
    const without = await openSession(`${url}/other`)
    expect((await without.request('resources/subscribe', { uri: 'x:y' })).message.error.code).to.equal(-32601)
    const params = { uri: 'test://page' }
    const stateless = await legacy(`${url}/stateless`, 'resources/subscribe', params)
    expect(stateless.message.error.code).to.equal(-32601)
  })
})
