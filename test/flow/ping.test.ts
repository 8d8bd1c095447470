import { expect } from 'chai'
import { defineResource, defineTool } from '../../core/index.ts'
import { legacy, modern } from '../support/rpc.ts'
import { nextMessage, openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

after(stopHosts)

const ping = defineTool({
  name: 'ping',
  async handler(_, ctx) {
    await ctx.ping()
    return 'answered'
  },
})
const each = defineResource({ name: 'each', uriTemplate: 'test://{id}', handler: ({ id = '' }) => id })
const config = { toolsets: { all: [ping, each] }, routes: { '/': { toolsets: 'all' } } }

describe('ctx.ping', () => {
  it('pings the client of a session on the stream of the call and awaits the response', async () => {
    const { url } = await startHost(config)
    const client = await openSession(url)
    const stream = await client.call('ping')
    const question = await nextMessage(stream)
    expect(question.method).to.equal('ping')
    await client.send({ jsonrpc: '2.0', id: question.id, result: {} })
    expect((await nextMessage(stream)).result.content[0].text).to.equal('answered')
  })

  it('resolves at once for 2026-07-28 and rejects when the client cannot be reached', async () => {
    const { url } = await startHost({ ...config, stateless: true })
    expect((await modern(url, 'tools/call', { name: 'ping' })).message.result.content[0].text).to.equal('answered')
    const { result } = (await legacy(url, 'tools/call', { name: 'ping' })).message
    expect([result.isError, result.content[0].text]).to.deep.equal([
      true,
      'The client cannot be pinged on a stateless route.',
    ])
  })
})

describe('resources/subscribe', () => {
  it('rejects subscription 1,001 of a session and accepts it after an unsubscribe', async function () {
    this.timeout(60_000)
    const { url } = await startHost(config)
    const client = await openSession(url)
    const subscribe = async (id: number, method = 'resources/subscribe') =>
      (await client.request(method, { uri: `test://${id}` })).message
    for (let id = 0; id < 1_000; id++) expect((await subscribe(id)).error).to.equal(undefined)
    expect((await subscribe(1_000)).error.message).to.include('at most 1000 resources')
    expect((await subscribe(5)).error, 'one that is watched already').to.equal(undefined)
    await subscribe(5, 'resources/unsubscribe')
    expect((await subscribe(1_000)).error).to.equal(undefined)
  })
})
