// Tests the limits of concurrent calls per session and per owner, including calls of disconnected clients.
import { expect } from 'chai'
import { type Config, defineTool } from '../../core/index.ts'
import { identifyByHeader } from '../fixtures/identify-by-header.ts'
import { eventually } from '../support/eventually.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { modern } from '../support/rpc.ts'
import { openSession, readWhole, type SessionClient } from '../support/session-client.ts'
import { openSseSession } from '../support/sse-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const puppet = createPuppet()
const FORM = { type: 'object', properties: { name: { type: 'string' } } } as const
let asked = 0
const ask = defineTool({
  name: 'ask',
  handler: async (_args, { elicit }) => {
    asked++
    await elicit({ message: 'Your name?', requestedSchema: FORM })
    return 'answered'
  },
})

const start = (sessions: NonNullable<Config['sessions']> = {}) =>
  startHost({
    toolsets: { all: [puppet.tool, ask] },
    routes: { '/': { toolsets: 'all' }, '/other': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, 'transport-sse': {}, who: identifyByHeader() },
    sessions,
  })

let names = 0
/** Calls the puppet so often, and waits until all of them run. */
async function run(client: SessionClient, count: number) {
  const calls = []
  for (let index = 0; index < count; index++) {
    const name = `running ${++names}`
    const opened = client.call('puppet', { name }, { id: name })
    calls.push({ name, opened, ...(await puppet.call(name)) })
  }
  return calls
}

const statusOf = async (client: SessionClient) => (await client.request('ping')).status

describe('concurrent call limits', () => {
  it('rejects call 33 of a session with 429 and its id until a call ends', async () => {
    const { url } = await start()
    const client = await openSession(url)
    const running = await run(client, 32)
    const refused = await client.request('ping', {}, { id: 'one more' })
    expect([refused.status, refused.message.id, refused.headers['retry-after']]).to.deep.equal([429, 'one more', '1'])
    expect((await client.send({ method: 'notifications/initialized' })).status).to.equal(202)
    // Another session of the same client has its own.
    expect(await statusOf(await openSession(url))).to.equal(200)
    running[0]?.finish('done')
    await readWhole(running[0]?.opened as (typeof running)[number]['opened'])
    expect(await statusOf(client)).to.equal(200)
    for (const { finish } of running) finish('done')
  })

  it('counts calls that await an elicitation response of a disconnected client', async () => {
    const { url } = await start({ maxCallsPerSession: 8 })
    const client = await openSession(url, { capabilities: { elicitation: {} } })
    asked = 0
    let refused = 0
    for (let count = 0; count < 100; count++) {
      const answer = await client.call('ask', { filler: 'x'.repeat(10_000) })
      if (answer.status === 429) refused++
      answer.drop()
    }
    expect([asked, refused]).to.deep.equal([8, 92])
    // Ending the session ends them.
    await client.end()
    expect(await statusOf(await openSession(url))).to.equal(200)
  })

  it('counts handlers that still run after cancellation or session end', async () => {
    const stubborn: Array<() => void> = []
    const { url } = await startHost({
      toolsets: {
        all: [
          defineTool({ name: 'stubborn', handler: () => new Promise<string>(end => stubborn.push(() => end(''))) }),
        ],
      },
      routes: { '/': { toolsets: 'all' } },
      sessions: { maxCallsPerOwner: 6, maxCallsPerSession: 2 },
    })
    let refused = 0
    for (let count = 0; count < 10; count++) {
      const client = await openSession(url).catch(() => undefined)
      if (!client) {
        refused++
        continue
      }
      for (const id of [1, 2]) {
        void client.call('stubborn', {}, { id })
        await eventually(
          'the handler runs',
          () => stubborn.length,
          running => running >= count * 2 + id,
        )
      }
      if (count % 2 === 0) await client.send({ method: 'notifications/cancelled', params: { requestId: 1 } })
      await client.end()
    }
    expect([stubborn.length, refused]).to.deep.equal([6, 7])
    for (const end of stubborn) end()
    await new Promise(resolve => setImmediate(resolve))
    expect(await statusOf(await openSession(url))).to.equal(200)
  })

  it('limits an owner (user or anonymous IP address) across sessions and routes', async () => {
    const { url } = await start({ maxCallsPerOwner: 10, maxCallsPerSession: 4 })
    const as = (user: string | undefined, path = '', localAddress = '127.0.0.1') =>
      openSession(`${url}${path}`, { localAddress, ...(user !== undefined && { headers: { 'X-User': user } }) })
    for (const [user, elsewhere] of [
      ['ada', '127.0.0.1'],
      [undefined, '127.0.0.2'],
    ] as const) {
      const sessions = [await as(user), await as(user, '/other'), await as(user)]
      const running = []
      for (const [index, count] of [4, 4, 2].entries())
        running.push(...(await run(sessions[index] as SessionClient, count)))
      const statuses = await Promise.all(sessions.map(statusOf))
      const free = await as(user === undefined ? undefined : 'bob', '', elsewhere)
      expect(statuses).to.deep.equal([429, 429, 429])
      expect(await statusOf(free)).to.equal(200)
      for (const { finish } of running) finish('done')
      await Promise.all(running.map(({ opened }) => readWhole(opened)))
      expect(await Promise.all(sessions.map(statusOf))).to.deep.equal([200, 200, 200])
    }
  })

  it('applies the owner limit to requests without a session, together with those of sessions', async () => {
    const { url } = await start({ maxCallsPerOwner: 3 })
    const call = (user: string, name: string, path = '') =>
      modern(`${url}${path}`, 'tools/call', { name: 'puppet', arguments: { name } }, { headers: { 'X-User': user } })
    const ping = (user: string) => modern(url, 'server/discover', {}, { id: 'last', headers: { 'X-User': user } })
    const calls = [call('ada', 'first'), call('ada', 'second', '/other')]
    const running = [await puppet.call('first'), await puppet.call('second')]
    const client = await openSession(url, { headers: { 'X-User': 'ada' } })
    running.push(...(await run(client, 1)))
    const refused = await ping('ada')
    expect([refused.status, refused.message.id, refused.headers.get('retry-after')]).to.deep.equal([429, 'last', '1'])
    expect([await statusOf(client), (await ping('bob')).status]).to.deep.equal([429, 200])
    for (const { finish } of running) finish('done')
    for (const { status } of await Promise.all(calls)) expect(status).to.equal(200)
    expect((await ping('ada')).status).to.equal(200)
  })

  it('admits a batch under the limit and counts each of its requests', async () => {
    const { url } = await start({ maxCallsPerSession: 3 })
    const client = await openSession(url, { revision: '2025-03-26' })
    const pings = Array.from({ length: 50 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' }))
    expect((await client.send(pings)).message).to.have.length(50)
    const running = await run(client, 3)
    expect((await client.send(pings)).status).to.equal(429)
    for (const { finish } of running) finish('done')
    await Promise.all(running.map(({ opened }) => readWhole(opened)))
    expect((await client.send(pings)).message).to.have.length(50)
  })

  it('applies the session limit to HTTP+SSE', async () => {
    const { url } = await start()
    const client = await openSseSession(url)
    const posts = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        client.post({
          id: index,
          method: 'tools/call',
          params: { name: 'puppet', arguments: { name: `sse ${index}` } },
        }),
      ),
    )
    const counted = (wanted: number) => posts.filter(({ status }) => status === wanted).length
    expect([counted(202), counted(429)]).to.deep.equal([32, 8])
    client.stream.drop()
  })
})
