import { expect } from 'chai'
import { definePrompt, defineResource } from '../../../core/index.ts'
import { createPuppet } from '../../support/puppet-tool.ts'
import { openSession, readWhole } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import type { StreamExchange } from '../../support/stream-exchange.ts'

const { tool: puppet, call } = createPuppet()
const pages = Array.from({ length: 501 }, (_, index) =>
  defineResource({ name: `page ${index}`, uri: `pages://${index}`, handler: () => `text ${index}` }),
)
const city = defineResource({
  name: 'city',
  uriTemplate: 'cities://{city}',
  complete: { city: value => [`${value}burg`] },
  handler: ({ city }) => (city === 'nowhere' ? (undefined as unknown as string) : `in ${city}`),
})
const poem = definePrompt({
  name: 'poem',
  arguments: { topic: { required: true, complete: () => Array.from({ length: 150 }, (_, index) => `t${index}`) } },
  handler: ({ topic }) => `On ${topic}`,
})

let url: string
before(async () => {
  const all = [puppet, ...pages, city, poem]
  ;({ url } = await startHost({ toolsets: { all }, routes: { '/': { toolsets: 'all' } } }))
})
after(stopHosts)

const textOf = async (opened: Promise<StreamExchange>) => (await readWhole(opened)).message.result.content[0].text

describe('Session requests', () => {
  it('ping returns an empty result', async () => {
    const { status, message } = await (await openSession(url)).request('ping', {}, { id: 'p' })
    expect([status, message]).to.deep.equal([200, { jsonrpc: '2.0', id: 'p', result: {} }])
  })

  it('with the id of a running request are refused until it ends', async () => {
    const client = await openSession(url)
    const stream = client.call('puppet', { name: 'first' }, { id: 1 })
    const { finish } = await call('first')
    const twice = await client.request('ping', {}, { id: 1 })
    expect([twice.message.error.code, twice.message.id]).to.deep.equal([-32600, 1])
    expect((await client.request('ping', {}, { id: '1' })).message.result, 'another id').to.deep.equal({})
    const other = await openSession(url)
    expect((await other.request('ping', {}, { id: 1 })).message.result, 'another session').to.deep.equal({})
    finish('first')
    expect(await textOf(stream)).to.equal('first')
    expect((await client.request('ping', {}, { id: 1 })).message.result).to.deep.equal({})
  })

  it('run concurrently', async () => {
    const client = await openSession(url)
    const [one, two] = [client.call('puppet', { name: 'one' }), client.call('puppet', { name: 'two' })]
    const [first, second] = [await call('one'), await call('two')]
    second.finish('2')
    expect(await textOf(two)).to.equal('2')
    first.finish('1')
    expect(await textOf(one)).to.equal('1')
  })

  it('with an unknown or newer method get -32601 on a 200, since 404 would end the session', async () => {
    const client = await openSession(url)
    for (const method of ['no/such', 'server/discover', 'subscriptions/listen', 'sampling/createMessage']) {
      const { status, message } = await client.request(method, { notifications: {} })
      expect([status, message.error.code], method).to.deep.equal([200, -32601])
    }
  })

  it('get -32002 with uri for an unknown resource, and -32602 for an unknown tool', async () => {
    const client = await openSession(url)
    for (const uri of ['pages://501', 'cities://nowhere', 'cities://a/b']) {
      const { status, message } = await client.request('resources/read', { uri })
      expect([status, message.error.code, message.error.data], uri).to.deep.equal([200, -32002, { uri }])
    }
    expect((await client.request('tools/call', { name: 'no' })).message.error.code).to.equal(-32602)
  })

  it('completion/complete returns at most 100 values with the total, for prompts and templates', async () => {
    const client = await openSession(url)
    expect(client.initialized.message.result.capabilities.completions).to.deep.equal({})
    const complete = async (ref: object, name: string, value: string) =>
      (await client.request('completion/complete', { ref, argument: { name, value } })).message
    const { completion } = (await complete({ type: 'ref/prompt', name: 'poem' }, 'topic', '')).result
    expect([completion.values.length, completion.total, completion.hasMore]).to.deep.equal([100, 150, true])
    const cities = (await complete({ type: 'ref/resource', uri: 'cities://{city}' }, 'city', 'Ham')).result
    expect(cities.completion.values).to.deep.equal(['Hamburg'])
    expect((await complete({ type: 'ref/prompt', name: 'no' }, 'topic', '')).error.code).to.equal(-32602)
    expect((await complete({ type: 'ref/prompt', name: 'poem' }, 'no', '')).error.code).to.equal(-32602)
  })

  it('paginate lists completely without duplicates, and an unknown cursor gets -32602', async () => {
    const client = await openSession(url)
    const names: string[] = []
    let cursor: string | undefined
    do {
      const { result } = (await client.request('resources/list', { ...(cursor !== undefined && { cursor }) })).message
      names.push(...result.resources.map(({ name }: { name: string }) => name))
      cursor = result.nextCursor
    } while (cursor !== undefined)
    expect(names).to.have.length(501)
    expect(new Set(names).size).to.equal(501)
    const { message } = await client.request('resources/list', { cursor: 'no cursor of ours' })
    expect(message.error.code).to.equal(-32602)
  })
})
