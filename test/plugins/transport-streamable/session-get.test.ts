import { mock } from 'node:test'
import { expect } from 'chai'
import { KEEP_ALIVE_INTERVAL } from '../../../core/http/sse.ts'
import { defineResource, defineTool } from '../../../core/index.ts'
import { eventually } from '../../support/eventually.ts'
import { createPuppet } from '../../support/puppet-tool.ts'
import { nextMessage, openSession, type SessionClient, sendRequest } from '../../support/session-client.ts'
import { type StartedHost, startHost, stopHosts } from '../../support/start-host.ts'

const { tool: puppet, call } = createPuppet()
const page = defineResource({ name: 'page', uri: 'test://page', handler: () => 'text' })
const echo = defineTool({ name: 'echo', handler: () => 'hi' })

let started: StartedHost
let url: string
before(async () => {
  started = await startHost({ toolsets: { all: [puppet, page, echo] }, routes: { '/': { toolsets: 'all' } } })
  url = started.url
})
after(stopHosts)

/** A session that watches the page. */
async function openWatching(revision?: string): Promise<SessionClient> {
  const client = await openSession(url, revision === undefined ? {} : { revision })
  await client.request('resources/subscribe', { uri: 'test://page' })
  return client
}

/** A GET, once the host has seen that another one's connection is gone. */
const getOnceFree = (client: SessionClient) =>
  eventually(
    'a GET that is not refused',
    () => client.get(),
    ({ status }) => status !== 409,
  )

const update = () => started.host.runtime.resourceUpdated('test://page')
const UPDATED = 'notifications/resources/updated'

describe('GET stream of a session', () => {
  it('opens immediately, before any message', async () => {
    const client = await openSession(url)
    const { status, headers, drop } = await client.get()
    expect(status).to.equal(200)
    expect(headers['content-type']).to.equal('text/event-stream')
    expect(headers['cache-control']).to.include('no-cache')
    expect(headers['mcp-session-id']).to.equal(client.id)
    drop()
  })

  it('refuses an Accept header without event streams with 406', async () => {
    const client = await openSession(url)
    for (const accept of ['application/json', 'text/event-stream;q=0', 'application/xhtml+xml, image/*']) {
      const refused = await client.get({ Accept: accept })
      expect(refused.status, accept).to.equal(406)
    }
    for (const accept of [
      undefined,
      'text/event-stream',
      'TEXT/Event-Stream',
      '*/*',
      'text/*;q=0.1, application/json',
    ]) {
      const stream = await client.get({ Accept: accept })
      expect(stream.status, accept).to.equal(200)
      stream.drop()
      await stream.whole
    }
  })

  it('answers 400 without a session id, 404 to an unknown one, 400 to an unsupported version', async () => {
    const accept = { Accept: 'text/event-stream' }
    const statusOf = async (headers: Record<string, string>) =>
      (await sendRequest(url, 'GET', { ...accept, ...headers })).status
    expect(await statusOf({})).to.equal(400)
    expect(await statusOf({ 'Mcp-Session-Id': 'unknown' })).to.equal(404)
    const { id } = await openSession(url)
    expect(await statusOf({ 'Mcp-Session-Id': id, 'MCP-Protocol-Version': 'v999' })).to.equal(400)
  })

  it('delivers messages without a related request, and never a response', async () => {
    const client = await openWatching()
    const stream = await client.get()
    const running = client.call('puppet', { name: 'beside' })
    const { ctx, finish } = await call('beside')
    ctx.progress(1)
    await nextMessage(await running)
    finish('answer')
    expect((await nextMessage(await running)).result.content[0].text).to.equal('answer')
    expect((await client.request('tools/call', { name: 'echo' })).status).to.equal(200)
    update()
    expect((await nextMessage(stream)).method).to.equal(UPDATED)
    stream.drop()
  })

  it('starts with an event with id and without data in 2025-11-25 only', async () => {
    const primed = await openWatching()
    const first = await (await primed.get()).next()
    expect(first?.id).to.be.a('string')
    expect([first?.data, first?.message, first?.retry]).to.deep.equal(['', undefined, 1_000])
    const older = await openWatching('2025-06-18')
    const stream = await older.get()
    update()
    expect((await stream.next())?.message.method).to.equal(UPDATED)
    await Promise.all([primed.end(), older.end()])
  })

  it('sends a keep-alive comment every 15 seconds, on idle streams too', async () => {
    const client = await openSession(url)
    mock.timers.enable({ apis: ['setInterval'] })
    try {
      const streams = [await client.get(), await client.get()]
      mock.timers.tick(KEEP_ALIVE_INTERVAL * 2)
      await client.end()
      expect(KEEP_ALIVE_INTERVAL).to.equal(15_000)
      for (const stream of streams) expect((await stream.text()).match(/^: .*$/gm)).to.have.length(2)
    } finally {
      mock.timers.reset()
    }
  })
})

describe('Second GET stream', () => {
  it('takes over new messages, and the older stream stays open and silent', async () => {
    const client = await openWatching('2025-06-18')
    const older = await client.get()
    update()
    expect((await nextMessage(older)).method).to.equal(UPDATED)
    const newer = await client.get()
    update()
    expect((await nextMessage(newer)).method).to.equal(UPDATED)
    started.host.runtime.tools.add(defineTool({ name: 'later', handler: () => '' }))
    expect((await nextMessage(newer)).method).to.equal('notifications/tools/list_changed')
    // Received here, because a store that several processes share can deliver it to the next test.
    started.host.runtime.tools.remove('later')
    expect((await nextMessage(newer)).method).to.equal('notifications/tools/list_changed')
    newer.drop()
    await client.end()
    expect(await older.rest()).to.deep.equal([])
    expect(await older.whole, 'it was open until the session ended').to.equal(true)
  })

  it('is one of at most three: a fourth gets 409 until one closes', async () => {
    const client = await openWatching()
    const streams = [await client.get(), await client.get(), await client.get()]
    const refused = await client.get()
    expect(refused.status).to.equal(409)
    expect(JSON.parse(await refused.text()).error.code).to.equal(-32000)
    streams[0]?.drop()
    const again = await getOnceFree(client)
    expect(again.status).to.equal(200)
    update()
    expect((await nextMessage(again)).method).to.equal(UPDATED)
    await client.end()
  })

  it('counts only for its own session', async () => {
    const [one, other] = [await openSession(url), await openSession(url)]
    for (let count = 0; count < 3; count++) await one.get()
    expect((await other.get()).status).to.equal(200)
    await Promise.all([one.end(), other.end()])
  })

  it('leaves an older stream open after many reconnects', async () => {
    const client = await openWatching()
    mock.timers.enable({ apis: ['setInterval'] })
    try {
      const oldest = await client.get()
      for (let count = 0; count < 3; count++) {
        const brief = await getOnceFree(client)
        brief.drop()
      }
      const newest = await getOnceFree(client)
      update()
      expect((await nextMessage(newest)).method).to.equal(UPDATED)
      mock.timers.tick(KEEP_ALIVE_INTERVAL)
      await client.end()
      expect(await oldest.text()).to.match(/^: keep-alive$/m)
    } finally {
      mock.timers.reset()
    }
  })
})
