import { expect } from 'chai'
import { defineResource, defineTool } from '../../core/index.ts'
import { createUnevenStore, unevenTurns } from '../support/delayed-store.ts'
import { createPuppet, type PuppetCall } from '../support/puppet-tool.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { storeWith } from '../support/store-plugin.ts'
import type { ReadEvent, StreamExchange } from '../support/stream-exchange.ts'
import { openStreamingSession, type StreamingSession } from '../support/streaming-session.ts'

const puppet = createPuppet()
const page = defineResource({ name: 'page', uri: 'test://page', handler: () => 'text' })
const toolsets = { all: [puppet.tool, page] }
const routes = { '/': { toolsets: 'all' } }

after(stopHosts)

let named = 0
/** A call whose handler the test plays: its exchange is a stream once something was said. */
async function begin(session: StreamingSession): Promise<{ call: PuppetCall; opening: Promise<StreamExchange> }> {
  const name = `call ${++named}`
  const opening = session.call('puppet', { name }, name)
  return { call: await puppet.call(name), opening }
}

const say = ({ ctx }: PuppetCall, ...words: string[]) => {
  for (const word of words) ctx.log('info', word)
}

/** What an event tells: a log message's data, the text of a result, the method of anything else. */
const told = ({ message }: ReadEvent) =>
  message === undefined ? '' : (message.params?.data ?? message.result?.content[0].text ?? message.method)
const heard = (events: readonly ReadEvent[]) => events.filter(({ message }) => message !== undefined).map(told)
const saying = (word: string) => (event: ReadEvent) => told(event) === word
const lastIdOf = (events: readonly ReadEvent[]) => events.at(-1)?.id

const STORES = {
  'the in-memory store': {},
  'a slow store': { store: storeWith(createUnevenStore(unevenTurns())) },
}

for (const [what, plugins] of Object.entries(STORES)) {
  describe(`stream resumption, with ${what}`, () => {
    let url: string
    let session: StreamingSession
    before(async () => {
      ;({ url } = await startHost({ toolsets, routes, plugins: { 'transport-streamable': {}, ...plugins } }))
      session = await openStreamingSession(url)
    })

    it('replays missed events of a running call and ends after its result', async () => {
      const { call, opening } = await begin(session)
      say(call, 'one', 'two', 'three')
      const stream = await opening
      const seen = await stream.until(saying('one'))
      stream.drop()
      say(call, 'four')
      const resumed = await session.get(lastIdOf(seen))
      const missed = await resumed.until(saying('four'))
      say(call, 'five')
      call.finish('done')
      const rest = await resumed.rest()
      expect(heard([...missed, ...rest])).to.deep.equal(['two', 'three', 'four', 'five', 'done'])
      expect(await resumed.whole).to.equal(true)
      const ids = [...seen, ...missed, ...rest].map(({ id }) => id)
      expect(new Set(ids)).to.have.length(ids.length)
    })

    it('delivers the result of a call that finished while disconnected', async () => {
      const { call, opening } = await begin(session)
      say(call, 'one')
      const stream = await opening
      const seen = await stream.until(saying('one'))
      stream.drop()
      await stream.whole
      say(call, 'two')
      call.finish('done')
      const resumed = await session.get(lastIdOf(seen))
      expect([resumed.status, resumed.headers['content-type']]).to.deep.equal([200, 'text/event-stream'])
      expect(heard(await resumed.rest())).to.deep.equal(['two', 'done'])
      expect(await resumed.whole).to.equal(true)
    })

    it('replays from every event id repeatedly', async () => {
      const { call, opening } = await begin(session)
      say(call, 'one', 'two', 'three')
      call.finish('done')
      const events = await (await opening).rest()
      expect(events).to.have.length(5)
      for (const [index, { id }] of [...events.entries(), ...events.entries()]) {
        const resumed = await (await session.get(id)).rest()
        expect(resumed, `from event ${index}`).to.deep.equal(events.slice(index + 1))
      }
    })

    it('replays only the events of the same stream', async () => {
      const [mine, other] = [await begin(session), await begin(session)]
      const own = await session.get()
      const primed = await own.next()
      say(mine.call, 'mine 1')
      say(other.call, 'other 1')
      const seen = await (await mine.opening).until(saying('mine 1'))
      const others = await (await other.opening).until(saying('other 1'))
      for (const stream of [await mine.opening, await other.opening, own]) stream.drop()
      say(mine.call, 'mine 2')
      say(other.call, 'other 2')
      mine.call.ctx.host.resourceUpdated('test://page')
      mine.call.ctx.host.tools.add(defineTool({ name: `new for ${what}`, handler: () => 'new' }))
      mine.call.finish('mine done')
      other.call.finish('other done')
      expect(heard(await (await session.get(lastIdOf(seen))).rest())).to.deep.equal(['mine 2', 'mine done'])
      expect(heard(await (await session.get(lastIdOf(others))).rest())).to.deep.equal(['other 2', 'other done'])
      const resumed = await session.get(primed?.id)
      expect(told((await resumed.next()) as ReadEvent)).to.equal('notifications/tools/list_changed')
      resumed.drop()
    })

    it('replays missed notifications of the session stream and continues', async () => {
      const other = await openStreamingSession(url)
      await (await other.request('resources/subscribe', { uri: 'test://page' })).whole
      const { call } = await begin(other)
      const stream = await other.get()
      const seen = [await stream.next()].flatMap(event => event ?? [])
      stream.drop()
      await stream.whole
      call.ctx.host.resourceUpdated('test://page')
      call.ctx.host.tools.add(defineTool({ name: `added for ${what}`, handler: () => 'new' }))
      const resumed = await other.get(lastIdOf(seen))
      const missed = await resumed.until(saying('notifications/tools/list_changed'))
      expect(heard(missed)).to.deep.equal(['notifications/resources/updated', 'notifications/tools/list_changed'])
      call.ctx.host.tools.remove(`added for ${what}`)
      expect(told((await resumed.next()) as ReadEvent)).to.equal('notifications/tools/list_changed')
      resumed.drop()
      call.finish('done')
    })

    it('replays an elicitation request, and its response reaches the call', async () => {
      const asked = await openStreamingSession(url, { capabilities: { roots: {} } })
      const { call, opening } = await begin(asked)
      say(call, 'one')
      const stream = await opening
      const seen = await stream.until(saying('one'))
      stream.drop()
      await stream.whole
      const roots = call.ctx.roots()
      const resumed = await asked.get(lastIdOf(seen))
      const [question] = await resumed.until(saying('roots/list'))
      await asked.tell({ id: question?.message.id, result: { roots: [{ uri: 'file:///home' }] } })
      expect((await roots).roots).to.deep.equal([{ uri: 'file:///home' }])
      call.finish('done')
      expect(heard(await resumed.rest())).to.deep.equal(['done'])
    })

    it('ends without a result when the call was cancelled while disconnected', async () => {
      const { call, opening } = await begin(session)
      say(call, 'one')
      const stream = await opening
      const seen = await stream.until(saying('one'))
      stream.drop()
      say(call, 'two')
      const params = { requestId: `call ${named}` }
      await (await session.tell({ method: 'notifications/cancelled', params })).whole
      expect(heard(await (await session.get(lastIdOf(seen))).rest())).to.deep.equal(['two'])
    })

    it('delivers to the latest connection; the previous one stays open and silent', async () => {
      const { call, opening } = await begin(session)
      say(call, 'one')
      const first = await opening
      const seen = await first.until(saying('one'))
      const [second, third] = [await session.get(lastIdOf(seen)), await session.get(lastIdOf(seen))]
      say(call, 'two')
      expect(heard(await third.until(saying('two')))).to.deep.equal(['two'])
      call.finish('done')
      expect(heard(await third.rest())).to.deep.equal(['done'])
      expect([heard(await first.rest()), heard(await second.rest())]).to.deep.equal([[], []])
      expect(await Promise.all([first.whole, second.whole])).to.deep.equal([true, true])
    })

    it('resumes every stream of a client that lost all its connections', async () => {
      const calls = await Promise.all(Array.from({ length: 6 }, () => begin(session)))
      const ids = await Promise.all(
        calls.map(async ({ call, opening }) => {
          say(call, 'one')
          const stream = await opening
          const seen = await stream.until(saying('one'))
          stream.drop()
          return lastIdOf(seen)
        }),
      )
      const streams = await Promise.all([session.get(), ...ids.map(id => session.get(id))])
      expect(streams.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 200, 200, 200])
      for (const { call } of calls) call.finish('done')
      const [own, ...resumed] = streams
      expect(await Promise.all(resumed.map(async stream => heard(await stream.rest())))).to.deep.equal(
        calls.map(() => ['done']),
      )
      own?.drop()
    })
  })
}
