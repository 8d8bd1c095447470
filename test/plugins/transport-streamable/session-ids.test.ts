import { expect } from 'chai'
import { defineResource, defineTool } from '../../../core/index.ts'
import { definePlugin } from '../../../core/internal.ts'
import type { ConfiguredPlugin } from '../../../core/plugin.ts'
import type { EventStore } from '../../../core/sessions/event-store.ts'
import { createMemoryEventStore } from '../../../core/sessions/memory-event-store.ts'
import { identifyByHeader } from '../../fixtures/identify-by-header.ts'
import {
  initialize,
  nextMessage,
  openSession,
  postMessage,
  type SessionClient,
  sendRequest,
} from '../../support/session-client.ts'
import { type StartedHost, startHost, stopHosts } from '../../support/start-host.ts'

const stored: string[] = []

/** An event store in memory that notes which session it is asked for. */
function notedStore(): ConfiguredPlugin {
  const memory = createMemoryEventStore()
  const store: EventStore = {
    append: memory.append,
    after(session, stream, seq) {
      stored.push(session)
      return memory.after(session, stream, seq)
    },
    drop: memory.drop,
  }
  return definePlugin({
    options: { type: 'object', additionalProperties: false, properties: {} },
    setup: host => host.provide('eventStore', store),
  })()
}

const secret = defineTool({
  name: 'secret',
  handler(_args, { progress }) {
    progress(1, 2, 'words of ada')
    return 'words of ada'
  },
})
const diary = defineResource({ name: 'diary', uri: 'note://diary', handler: () => 'dear diary' })

let started: StartedHost
let url: string
let ada: SessionClient
before(async () => {
  started = await startHost({
    toolsets: { all: [secret, diary], other: [secret] },
    routes: {
      '/': { toolsets: 'all' },
      '/other': { toolsets: 'all' },
      '/t/:category?': { toolsets: ':category', default: ['all'] },
    },
    plugins: { 'transport-streamable': {}, who: identifyByHeader(), noted: notedStore(), health: {} },
  })
  url = started.url
  ada = await openSession(url, { headers: { 'X-User': 'ada' } })
})
after(stopHosts)

const PING = { id: 9, method: 'ping' }
const LAST_EVENT = { 'Last-Event-ID': 'abcdefghijk.0' }

/** The four ways to name a session, each with its status. */
async function everyWay(at: string, headers: Record<string, string>) {
  const get = { Accept: 'text/event-stream' }
  return [
    await postMessage(at, PING, headers),
    await postMessage(at, { method: 'notifications/initialized' }, headers),
    await sendRequest(at, 'GET', { ...get, ...headers }),
    await sendRequest(at, 'GET', { ...get, ...headers, ...LAST_EVENT }),
    await sendRequest(at, 'DELETE', headers),
  ]
}

const CODES = { 403: -32000, 404: -32001 }

async function expectEverywhere(status: 403 | 404, at: string, headers: Record<string, string>) {
  for (const answer of await everyWay(at, headers)) {
    expect([answer.status, answer.message.error.code], answer.text).to.deep.equal([status, CODES[status]])
    // What clients in the field recover on; a path that is wrong says something else.
    if (status === 404) expect(answer.message.error.message).to.match(/^Session not found/)
    expect(answer.text).not.to.include('ada')
    expect(answer.headers['mcp-session-id']).to.equal(undefined)
  }
}

const expectAlive = async (client: SessionClient) =>
  expect((await client.request('ping')).message.result, 'the session lives on').to.deep.equal({})

describe('Session id not signed by this host', () => {
  it('gets 404 for any altered byte, without a store access', async () => {
    const bytes = Buffer.from(ada.id, 'base64url')
    stored.length = 0
    for (let at = 0; at < bytes.length; at++) {
      const altered = Buffer.from(bytes)
      altered[at] = (altered[at] ?? 0) ^ 0x40
      const headers = { 'X-User': 'ada', 'Mcp-Session-Id': altered.toString('base64url'), ...LAST_EVENT }
      const answer = await sendRequest(url, 'GET', { Accept: 'text/event-stream', ...headers })
      expect(answer.status, `byte ${at}`).to.equal(404)
    }
    expect(stored).to.deep.equal([])
    await expectAlive(ada)
  })

  it('gets 404 with the request id on POST, GET and DELETE', async () => {
    for (const id of ['x', 'A'.repeat(76), `${ada.id.slice(0, -1)}${ada.id.endsWith('A') ? 'B' : 'A'}`, '7']) {
      await expectEverywhere(404, url, { 'X-User': 'ada', 'Mcp-Session-Id': id })
      expect((await postMessage(url, PING, { 'Mcp-Session-Id': id })).message.id).to.equal(9)
    }
    await expectAlive(ada)
  })

  it('gets 404 if another host signed it with another secret', async () => {
    const other = await startHost({
      secrets: ['another secret for tests, just as long'],
      toolsets: { all: [secret] },
      routes: { '/': { toolsets: 'all' } },
    })
    const foreign = await openSession(other.url)
    await expectEverywhere(404, url, { 'Mcp-Session-Id': foreign.id })
  })

  it('signed with an older secret is verified: 403 for another user, 404 for its owner', async () => {
    const [older, newer] = ['an older secret for tests, long enough', 'a newer secret for tests, long enough']
    const base = { toolsets: { all: [secret] }, routes: { '/': { toolsets: 'all' } } }
    const plugins = { 'transport-streamable': {}, who: identifyByHeader() }
    const before = await startHost({ ...base, plugins, secrets: [older] })
    const { id } = await openSession(before.url, { headers: { 'X-User': 'ada' } })
    const rotated = await startHost({ ...base, plugins, secrets: [newer, older] })
    await expectEverywhere(404, rotated.url, { 'X-User': 'ada', 'Mcp-Session-Id': id })
    await expectEverywhere(403, rotated.url, { 'X-User': 'bob', 'Mcp-Session-Id': id })
    const without = await startHost({ ...base, plugins, secrets: [newer] })
    await expectEverywhere(404, without.url, { 'X-User': 'bob', 'Mcp-Session-Id': id })
  })

  it('gets 404 if another host with the same secret opened the session', async () => {
    const twin = await startHost({ toolsets: { all: [secret] }, routes: { '/': { toolsets: 'all' } } })
    await expectEverywhere(404, url, { 'Mcp-Session-Id': (await openSession(twin.url)).id })
  })
})

describe('Session of a user', () => {
  it('answers 403 to another or anonymous user for every HTTP method, without content', async () => {
    stored.length = 0
    for (const who of [{ 'X-User': 'bob' }, {}, { 'X-User': 'ada', 'X-Issuer': 'https://elsewhere.example' }]) {
      await expectEverywhere(403, url, { ...who, 'Mcp-Session-Id': ada.id })
      const refused = await postMessage(url, { id: 'mine', method: 'tools/list' }, { ...who, 'Mcp-Session-Id': ada.id })
      expect(refused.message.id).to.equal('mine')
    }
    expect(stored).to.deep.equal([])
    await expectAlive(ada)
  })

  it('gives another user no events, and accepts no response, cancellation or takeover', async () => {
    const stream = await ada.get()
    await ada.request('resources/subscribe', { uri: 'note://diary' })
    const stranger = { 'X-User': 'bob', 'Mcp-Session-Id': ada.id }
    await sendRequest(url, 'GET', { Accept: 'text/event-stream', ...stranger })
    await postMessage(url, { id: 'ask-1', result: {} }, stranger)
    started.host.runtime.resourceUpdated('note://diary')
    expect((await nextMessage(stream)).params).to.deep.equal({ uri: 'note://diary' })
    stream.drop()
  })

  it("belongs to the user, independent of the token's claims and scopes", async () => {
    const answer = await ada.request('ping', {}, { headers: { 'X-Tier': 'gold' } })
    expect([answer.status, answer.message.result]).to.deep.equal([200, {}])
  })

  it('opened anonymously answers 403 to an authenticated user', async () => {
    const anonymous = await openSession(url)
    await expectEverywhere(403, url, { 'X-User': 'ada', 'Mcp-Session-Id': anonymous.id })
    await expectAlive(anonymous)
  })
})

describe('Session and its route', () => {
  it('gets 404 on another route', async () => {
    await expectEverywhere(404, `${url}/other`, { 'X-User': 'ada', 'Mcp-Session-Id': ada.id })
    await expectAlive(ada)
  })

  it('gets 404 for another route parameter or none', async () => {
    const at = await openSession(`${url}/t/all`, { headers: { 'X-User': 'ada' } })
    const mine = { 'X-User': 'ada', 'Mcp-Session-Id': at.id }
    for (const path of ['/t/other', '/t']) await expectEverywhere(404, `${url}${path}`, mine)
    await expectAlive(at)
    expect((await postMessage(`${url}/t/all/`, PING, mine)).status).to.equal(200)
  })
})

describe('Session ids of the host', () => {
  it('never appear in full in logs or health details', async () => {
    const clients = [ada, await openSession(url), await openSession(url, { revision: '2025-03-26' })]
    const [, gone] = clients
    await gone?.end()
    await gone?.request('ping')
    const health = await sendRequest(`${url}/health`, 'GET')
    expect(health.status).to.equal(200)
    expect(started.log.filter(({ message }) => message === 'refused a session of another user')).not.to.deep.equal([])
    for (const { id } of clients) {
      expect(JSON.stringify(started.log)).not.to.include(id)
      expect(health.text).not.to.include(id.slice(0, 16))
    }
  })

  it('are unique', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => initialize(url)))
    expect(new Set(answers.map(({ headers }) => headers['mcp-session-id'])).size).to.equal(20)
  })
})
