// Tests clients that stop reading event streams: the host buffers a limited amount, closes the stream and logs it;
// resumption loses nothing.
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { MAX_PENDING } from '../../core/http/sse.ts'
import { defineResource } from '../../core/index.ts'
import { definePlugin, type Services } from '../../core/internal.ts'
import type { ChangeFeed } from '../../core/transport.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { modern, modernRequest } from '../support/rpc.ts'
import { type LogLine, type StartedHost, startHost, stopHosts } from '../support/start-host.ts'
import { exchange, type ReadEvent, type StreamExchange } from '../support/stream-exchange.ts'
import { openStreamingSession } from '../support/streaming-session.ts'

/** Each event is about so large, bytes. */
const EVENT = 8_000
/** By then a reader who does not read must have been noticed: kernels buffer some megabytes for each end. */
const MOST_EVENTS = 4_000
const FILLER = 'x'.repeat(EVENT)
/** Its updates are large, because its name is. */
const URI = `stall://${FILLER}`

const puppet = createPuppet()
let started: StartedHost
let host: Pick<Services, 'sessions'> & { readonly changes: ChangeFeed }

const stallsIn = (log: readonly LogLine[]) => log.filter(({ message }) => message?.includes('closed a stream'))

/** Sends until the host has closed the stream of a reader who stopped. Gives how often it sent. */
async function sendUntilStalled(reader: StreamExchange, send: () => void): Promise<number> {
  const before = stallsIn(started.log).length
  reader.pause()
  let sent = 0
  while (sent < MOST_EVENTS && stallsIn(started.log).length === before) {
    send()
    sent++
    await turn()
  }
  const stalls = stallsIn(started.log)
  expect(stalls, `after ${sent} events of ${EVENT} bytes`).to.have.length(before + 1)
  const waiting = Number(stalls.at(-1)?.['waiting'])
  expect(waiting)
    .to.be.greaterThan(MAX_PENDING)
    .and.at.most(MAX_PENDING + 2 * EVENT)
  return sent
}

/** What is left of a closed stream for its reader: the kernel still had some of it. */
async function readOn(reader: StreamExchange): Promise<ReadEvent[]> {
  reader.resume()
  const events = await reader.rest()
  expect(await reader.whole).to.equal(false)
  return events
}

const seqOf = ({ id }: ReadEvent) => Number(id?.split('.')[1])
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

async function expectAlive() {
  expect((await modern(started.url, 'server/discover')).status).to.equal(200)
}

before(async () => {
  const look = definePlugin<Record<never, never>>({
    options: { type: 'object', additionalProperties: false, properties: {} },
    setup(given) {
      given.onReady(() => {
        const { sessions, changesOn } = given.services
        const [route] = given.routes
        if (route) host = { sessions, changes: changesOn(route) }
      })
    },
  })
  const large = defineResource({ name: 'large', uriTemplate: 'stall://{name}', handler: () => 'text' })
  started = await startHost({
    toolsets: { all: [puppet.tool, large] },
    routes: { '/': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, 'transport-sse': {}, look: look() },
  })
})
after(stopHosts)

const update = () => started.host.runtime.resourceUpdated(URI)

describe('stalled clients of event streams', () => {
  it('session stream: closes with a log message and resumes without loss', async () => {
    const session = await openStreamingSession(started.url)
    await (await session.request('resources/subscribe', { uri: URI })).whole
    const reader = await session.get()
    const primed = await reader.next()
    const sent = (await sendUntilStalled(reader, update)) + 10
    for (let more = 0; more < 5; more++) update()
    await expectAlive()

    const read = await readOn(reader)
    const resumed = await session.get((read.at(-1) ?? primed)?.id)
    // Nor does it read the past at once.
    resumed.pause()
    for (let more = 0; more < 5; more++) update()
    await expectAlive()
    resumed.resume()
    const missed = await resumed.until(event => seqOf(event) === sent)
    resumed.drop()
    expect(missed.length).to.be.greaterThan(5)
    expect([...read, ...missed].map(seqOf)).to.deep.equal(upTo(sent))
  })

  it('call stream: the call continues, and its events and result can be resumed', async () => {
    const session = await openStreamingSession(started.url)
    const opening = session.call('puppet', { name: 'stalled' })
    const { ctx, finish } = await puppet.call('stalled')
    let said = 0
    const say = () => ctx.log('info', { number: ++said, filler: FILLER })
    say()
    const reader = await opening
    const first = await reader.until(({ message }) => message !== undefined)
    await sendUntilStalled(reader, say)
    for (let more = 0; more < 5; more++) say()
    expect(ctx.signal.aborted).to.equal(false)
    finish('done')
    await expectAlive()

    const read = [...first.slice(1), ...(await readOn(reader))]
    const again = await session.get(read.at(-1)?.id)
    const missed = await again.rest()
    const all = [...read, ...missed].map(({ message }) => message)
    expect(all.pop().result.content[0].text).to.equal('done')
    expect(all.map(message => message.params.data.number)).to.deep.equal(upTo(said))
  })

  it('HTTP+SSE: closes the stream and ends the session', async () => {
    const sessions = host.sessions.count
    const reader = await exchange(`${started.url}/sse`, { headers: { Accept: 'text/event-stream' } })
    const endpoint = new URL(String((await reader.next())?.data), started.url).href
    const tell = (message: object) =>
      exchange(endpoint, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      })
    const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'stalled', version: '1' } }
    await tell({ id: 1, method: 'initialize', params })
    await reader.next()
    await tell({ id: 2, method: 'resources/subscribe', params: { uri: URI } })
    await reader.next()
    expect(host.sessions.count).to.equal(sessions + 1)
    await sendUntilStalled(reader, update)
    await expectAlive()
    await readOn(reader)
    expect(host.sessions.count).to.equal(sessions)
    expect((await tell({ id: 3, method: 'ping' })).status).to.equal(404)
  })

  it('subscriptions/listen: closes the stream and removes the subscription', async () => {
    const subscribers = host.changes.size
    const { headers, body } = modernRequest('subscriptions/listen', {
      notifications: { resourceSubscriptions: [URI] },
    })
    const all = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json', ...headers }
    const reader = await exchange(started.url, { method: 'POST', headers: all as Record<string, string>, body })
    const acknowledged = await reader.next()
    expect(acknowledged?.message.method).to.equal('notifications/subscriptions/acknowledged')
    expect(host.changes.size).to.equal(subscribers + 1)
    await sendUntilStalled(reader, update)
    await expectAlive()
    await readOn(reader)
    expect(host.changes.size).to.equal(subscribers)
  })
})
