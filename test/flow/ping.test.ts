import { expect } from 'chai'
import { defineResource, defineTool } from '../../core/index.ts'
import { MAX_BATCH } from '../../core/mcp/client-limits.ts'
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
  it('rejects subscription 1,001 of a session and accepts it after an unsubscribe', async () => {
    const { url } = await startHost(config)
    const client = await openSession(url, { revision: '2025-03-26' })
    const message = (id: number, method = 'resources/subscribe') => ({
      jsonrpc: '2.0',
      id,
      method,
      params: { uri: `test://${id}` },
    })
    const send = async (id: number, method?: string) => (await client.send(message(id, method))).message
    for (let first = 0; first < 1_000; first += MAX_BATCH) {
      const { messages } = await client.send(Array.from({ length: MAX_BATCH }, (_, index) => message(first + index)))
      expect(messages.flat().map(({ result }) => result)).to.deep.equal(Array(MAX_BATCH).fill({}))
    }
    expect((await send(1_000)).error.message).to.include('at most 1000 resources')
    expect((await send(5)).error, 'one that is watched already').to.equal(undefined)
    await send(5, 'resources/unsubscribe')
    expect((await send(1_000)).error).to.equal(undefined)
  })
})
