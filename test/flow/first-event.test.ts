import { expect } from 'chai'
import { createMemoryEventStore, type MemoryLimits } from '../../core/sessions/memory-event-store.ts'
import { identifyByHeader } from '../fixtures/identify-by-header.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { storeWith } from '../support/store-plugin.ts'
import type { ReadEvent } from '../support/stream-exchange.ts'
import { openStreamingSession, type StreamingSession } from '../support/streaming-session.ts'

const puppet = createPuppet()
const ANN = { 'X-User': 'ann' }
const routes = { '/': { toolsets: 'all' }, '/other': { toolsets: 'all' } }

/** A host whose event store has these bounds, and the test's time. */
async function start(bounds: Partial<MemoryLimits> = {}) {
  const time = { now: 0 }
  const store = storeWith(createMemoryEventStore(bounds, () => time.now))
  const plugins = { 'transport-streamable': {}, identify: identifyByHeader(), store }
  const { url } = await startHost({ toolsets: { all: [puppet.tool] }, routes, plugins })
  return { url, time }
}

after(stopHosts)

let named = 0
async function begin(session: StreamingSession, ...words: string[]) {
  const name = `placed call ${++named}`
  const opening = session.call('puppet', { name }, name)
  const call = await puppet.call(name)
  const say = (word: string) => call.ctx.log('info', word)
  for (const word of words) say(word)
  return { call, opening, say }
}

const said = (events: readonly ReadEvent[]) => events.flatMap(({ message }) => message?.params?.data ?? [])
const saying =
  (word: string) =>
  ({ message }: ReadEvent) =>
    message?.params?.data === word

describe('first event of a stream', () => {
  let url: string
  before(async () => {
    ;({ url } = await start())
  })

  it('has an id and retry without a message for 2025-11-25, on POST and GET', async () => {
    const session = await openStreamingSession(url)
    const { call, opening } = await begin(session, 'one')
    const [stream, own] = [await opening, await session.get()]
    for (const first of [await stream.next(), await own.next()]) {
      expect(first).to.include({ data: '', event: undefined })
      expect(first?.id).to.match(/^[\w-]{16}\.0$/)
      expect(first?.retry).to.be.a('number').greaterThan(0)
    }
    own.drop()
    call.finish('done')
    const others = await stream.rest()
    expect(others.map(({ retry }) => retry)).to.deep.equal([undefined, undefined])
  })

  for (const revision of ['2025-06-18', '2025-03-26', '2024-11-05']) {
    it(`is a message with an id and without retry for ${revision}`, async () => {
      const session = await openStreamingSession(url, { revision })
      const own = await session.get()
      const { call, opening, say } = await begin(session, 'one')
      const stream = await opening
      call.ctx.host.tools.add({ ...puppet.tool, name: `new in ${revision}` })
      const [first, change] = [await stream.next(), await own.next()]
      for (const event of [first, change]) {
        expect(event?.id).to.match(/^[\w-]{16}\.1$/)
        expect([event?.retry, event?.event]).to.deep.equal([undefined, 'message'])
      }
      own.drop()
      stream.drop()
      say('two')
      call.finish('done')
      const resumed = await (await session.get(first?.id)).rest()
      expect(said(resumed)).to.deep.equal(['two'])
      expect(resumed.at(-1)?.message.result.content[0].text).to.equal('done')
    })
  }
})

describe('Last-Event-ID validation', () => {
  let url: string
  let time: { now: number }
  let session: StreamingSession
  before(async () => {
    ;({ url, time } = await start({ events: 3, lifetime: 60_000 }))
    session = await openStreamingSession(url, { headers: ANN })
  })

  /** The ids of a finished stream with these messages; all but its answer are log messages. */
  async function finishedStream(owner: StreamingSession, ...words: string[]): Promise<string[]> {
    const { call, opening } = await begin(owner, ...words)
    call.finish('done')
    return (await (await opening).rest()).map(({ id }) => String(id))
  }

  const CODES = { 400: -32600, 404: -32001 }

  async function expectRefused(owner: StreamingSession, id: string | undefined, status: 400 | 404) {
    const answer = await owner.get(id)
    const text = await answer.text()
    expect([answer.status, answer.headers['content-type']], text).to.deep.equal([
      status,
      'application/json; charset=utf-8',
    ])
    expect(JSON.parse(text).error.code).to.equal(CODES[status])
    expect(JSON.parse(text).error.message).not.to.match(/secret/)
  }

  it('rejects a malformed id with 400', async () => {
    const made = 'abcdefghijklmnop'
    for (const id of ['1', 'x', '.', made, `${made}.`, `${made}.-1`, `${'9'.repeat(40)}`, '../1']) {
      await expectRefused(session, id, 400)
    }
  })

  it('rejects an id that no stream of the session issued with 400', async () => {
    const [first = ''] = await finishedStream(session, 'secret')
    const altered = `${first[0] === 'A' ? 'B' : 'A'}${first.slice(1)}`
    for (const id of ['abcdefghijklmnop.0', 'AAAAAAAAAAAAAAAA.1', altered]) await expectRefused(session, id, 400)
  })

  it('rejects an unknown event of a known stream with 404', async () => {
    const [first = ''] = await finishedStream(session, 'secret')
    await expectRefused(session, first.replace('.0', '.3'), 404)
    await expectRefused(session, first.replace('.0', '.999999999999999'), 404)
  })

  it('rejects an id of another session of the same user with 400', async () => {
    const other = await openStreamingSession(url, { headers: ANN })
    for (const id of await finishedStream(session, 'secret')) await expectRefused(other, id, 400)
    const { call, opening } = await begin(session, 'secret')
    const running = await (await opening).until(saying('secret'))
    for (const { id } of running) await expectRefused(other, id, 400)
    call.finish('done')
  })

  it('rejects an id of a session of another user with 403', async () => {
    const ids = await finishedStream(session, 'secret')
    const answer = await session.get(ids[0], { 'X-User': 'bob' })
    expect([answer.status, await answer.text()].join(' ')).to.match(/^403 .*another user/)
    const anonymous = await session.get(ids[0], { 'X-User': '' })
    expect([anonymous.status, await anonymous.text()].join(' ')).to.match(/^403 /)
  })

  it('rejects the id with 404 on another route and after the session ended', async () => {
    const ending = await openStreamingSession(url, { headers: ANN })
    const [id] = await finishedStream(ending, 'secret')
    const elsewhere = await openStreamingSession(`${url}/other`, { headers: ANN })
    const answer = await elsewhere.get(id, { 'Mcp-Session-Id': ending.id })
    expect(answer.status).to.equal(404)
    expect((await ending.end()).status).to.equal(204)
    await expectRefused(ending, id, 404)
  })

  it('rejects the id with 404 when later events were evicted', async () => {
    const ids = await finishedStream(session, 'one', 'two', 'three')
    for (const id of ids.slice(0, 1)) await expectRefused(session, id, 404)
    const resumed = await (await session.get(ids[1])).rest()
    expect(said(resumed)).to.deep.equal(['two', 'three'])
  })

  it('rejects the id with 404 when the stream ended and its retention time passed', async () => {
    const ids = await finishedStream(session, 'one')
    time.now += 60_000
    for (const id of ids) await expectRefused(session, id, 404)
  })

  it('accepts the last event of an idle stream at any age', async () => {
    const stream = await session.get()
    const primed = await stream.next()
    stream.drop()
    time.now += 60_000
    const { call } = await begin(session)
    const quiet = await session.get(primed?.id)
    call.ctx.host.tools.add({ ...puppet.tool, name: 'later' })
    const change = await quiet.next()
    quiet.drop()
    time.now += 60_000
    const quieter = await session.get(change?.id)
    call.ctx.host.tools.remove('later')
    const next = await quieter.next()
    expect([change, next].map(event => event?.id?.split('.')[1])).to.deep.equal(['1', '2'])
    quieter.drop()
    call.finish('done')
  })
})

describe('calls that close their connection (SSE polling)', () => {
  let url: string
  before(async () => {
    ;({ url } = await start())
  })

  it('sends retry to a 2025-11-25 client, continues, and is resumed', async () => {
    const session = await openStreamingSession(url)
    const { call, opening, say } = await begin(session, 'one')
    call.ctx.disconnect(25)
    const stream = await opening
    const seen = await stream.rest()
    expect(await stream.whole).to.equal(true)
    expect([said(seen), seen.at(-1)?.retry, call.ctx.signal.aborted]).to.deep.equal([['one'], 25, false])
    say('two')
    const id = seen.findLast(event => event.id !== undefined)?.id
    const resumed = await session.get(id)
    const more = await resumed.until(saying('two'))
    call.ctx.disconnect()
    const closed = await resumed.rest()
    expect(closed.map(({ retry }) => retry)).to.deep.equal([1_000])
    call.finish('done')
    const last = await (await session.get(more.at(-1)?.id)).rest()
    expect(last.map(({ message }) => message.result.content[0].text)).to.deep.equal(['done'])
  })

  it('sends an event id even when nothing was sent before', async () => {
    const session = await openStreamingSession(url)
    const { call, opening } = await begin(session)
    call.ctx.disconnect()
    const seen = await (await opening).rest()
    expect(seen[0]?.id).to.match(/\.0$/)
    call.finish('done')
    const last = await (await session.get(seen[0]?.id)).rest()
    expect(last.map(({ message }) => message.result.content[0].text)).to.deep.equal(['done'])
  })

  it('keeps the connection open for clients without resumption support', async () => {
    const session = await openStreamingSession(url, { revision: '2025-06-18' })
    const { call, opening, say } = await begin(session, 'one')
    call.ctx.disconnect()
    say('two')
    call.finish('done')
    const events = await (await opening).rest()
    expect(said(events)).to.deep.equal(['one', 'two'])
    expect(events.at(-1)?.message.result.content[0].text).to.equal('done')
  })
})
