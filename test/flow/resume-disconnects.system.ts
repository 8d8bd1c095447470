// Tests the store reads caused by clients that repeatedly resume a 4 MB stream and disconnect, with each event store.
import { expect } from 'chai'
import type { Context } from 'mocha'
import { openStreams } from '../../core/http/sse.ts'
import { defineTool } from '../../core/index.ts'
import { MAX_PAGES, MAX_PAGES_PER_OWNER, PAGE_BYTES } from '../../core/sessions/event-store.ts'
import { createMemoryEventStore } from '../../core/sessions/memory-event-store.ts'
import { MAX_OPEN_GETS } from '../../core/transport.ts'
import { clusterRedis } from '../../plugins/cluster-redis/index.ts'
import { storeSqlite } from '../../plugins/store-sqlite/index.ts'
import { HAS_SQLITE } from '../sqlite/support/sqlite.ts'
import { eventually } from '../support/eventually.ts'
import { createGate } from '../support/gate.ts'
import { type Metered, meteredStore } from '../support/metered-store.ts'
import { needsRedis, startRedis, stopRedis } from '../support/redis-server.ts'
import { startHost, stopHosts, type TestConfig } from '../support/start-host.ts'
import { storeWith } from '../support/store-plugin.ts'
import type { StreamExchange } from '../support/stream-exchange.ts'
import { openStreamingSession, type StreamingSession } from '../support/streaming-session.ts'
import { storeFile } from '../support/test-store.ts'

/** Of one message, and messages of a stream: a page has room for five. */
const SIZE = 50_000
const MESSAGES = 80
const ROUNDS = 3
const GETS = 20
/** Callers, told apart by their addresses. */
const OWNERS = 6

/** Says much, then waits until it may answer. */
function createPour() {
  const gate = createGate()
  const tool = defineTool({
    name: 'pour',
    input: { type: 'object', properties: { messages: { type: 'integer' }, waits: { type: 'boolean' } } },
    async handler({ messages, waits }: { messages: number; waits: boolean }, { progress }) {
      for (let index = 1; index <= messages; index++) {
        await progress(index, messages, 'x'.repeat(SIZE))
        await new Promise(resolve => setImmediate(resolve))
      }
      if (waits) await gate.opened
      return 'done'
    },
  })
  return { tool, finish: () => gate.open() }
}

interface Store {
  needs(context: Context): void
  /** `sections`: what the config has beside its plugins. */
  make(): Promise<{ readonly sections?: Partial<TestConfig>; readonly plugin: Metered }>
}

const STORES: Readonly<Record<string, Store>> = {
  memory: {
    needs: () => undefined,
    make: async () => ({ plugin: meteredStore(storeWith(createMemoryEventStore({ bytes: 2 * MESSAGES * SIZE }))) }),
  },
  ...(HAS_SQLITE && {
    'store-sqlite': {
      needs: () => undefined,
      make: async () => ({ plugin: meteredStore(storeSqlite({ file: storeFile(), maxBytes: '8mb' })) }),
    },
  }),
  'cluster-redis': {
    needs: needsRedis,
    make: async () => ({
      sections: { redis: { url: (await startRedis()).url } } as Partial<TestConfig>,
      plugin: meteredStore(clusterRedis({ maxBytes: '8mb' })),
    }),
  },
}

async function start({ make }: Store) {
  const { sections, plugin } = await make()
  const pour = createPour()
  const { url } = await startHost({
    ...sections,
    toolsets: { all: [pour.tool] },
    routes: { '/': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, 'store-metered': plugin.plugin },
  })
  return { url, meter: plugin.meter, finish: pour.finish }
}

/** Calls the tool; the place before its first message. */
async function pour(session: StreamingSession, messages: number, waits: boolean): Promise<string> {
  const call = await session.call('pour', { messages, waits })
  const said = await call.until(({ message }) => message?.params?.progress === messages)
  if (waits) call.drop()
  else await call.rest()
  const [stream] = (said[0]?.id ?? '').split('.')
  return `${stream}.0`
}

const getAll = (session: StreamingSession, place: string): Promise<StreamExchange[]> =>
  Promise.all(Array.from({ length: GETS }, () => session.get(place)))

const statuses = (answers: readonly StreamExchange[]) => {
  const of = (status: number) => answers.filter(answer => answer.status === status).length
  return [of(200), of(409)]
}

const drop = (answers: readonly StreamExchange[]) => {
  for (const answer of answers) answer.drop()
}

const messagesOf = async (answer: StreamExchange) =>
  (await answer.rest()).filter(({ message }) => message !== undefined).length

for (const [what, store] of Object.entries(STORES)) {
  describe(`resumption of a 4 MB stream with ${what}: store reads`, () => {
    before(function () {
      store.needs(this)
    })
    afterEach(stopHosts)
    after(stopRedis)

    for (const waits of [false, true]) {
      it(`bounds reads when clients disconnect while the call ${waits ? 'runs' : 'is over'}`, async () => {
        const { url, meter, finish } = await start(store)
        const session = await openStreamingSession(url)
        const place = await pour(session, MESSAGES, waits)
        await eventually('nothing is open', () => openStreams() === 0)
        const release = meter.hold()
        const first = await getAll(session, place)
        expect(statuses(first)).to.deep.equal([MAX_OPEN_GETS, GETS - MAX_OPEN_GETS])
        await eventually('it is read', () => meter.reads >= (waits ? 1 : MAX_PAGES_PER_OWNER))
        let last = first
        for (let round = 0; round < ROUNDS; round++) {
          drop(last)
          await eventually('the host has seen them go', () => openStreams() === 0)
          last = await getAll(session, place)
          const [open = 0, refused = 0] = statuses(last)
          expect(open + refused).to.equal(GETS)
          // Who waits for a turn may be gone before it has asked; of a stream that runs the last to come alone is read for.
          expect(open).to.be.at.most(MAX_OPEN_GETS - (waits ? 1 : MAX_PAGES_PER_OWNER))
        }
        drop(last)
        expect(meter.inTransit).to.be.within(1, MAX_PAGES_PER_OWNER)
        expect(meter.reads).to.equal(meter.inTransit)
        release()
        const again = await eventually(
          'there is room again',
          () => session.get(place),
          ({ status }) => status === 200,
        )
        finish()
        expect(await messagesOf(again)).to.equal(MESSAGES + 1)
        expect(meter.mostUnderWay).to.equal(MAX_PAGES_PER_OWNER)
        expect(meter.mostBytes).to.be.within(SIZE, PAGE_BYTES)
        // The whole one, and a page of each that was dropped.
        expect(meter.bytes).to.be.below((MESSAGES + 1) * (SIZE + 500) + MAX_PAGES_PER_OWNER * PAGE_BYTES)
      })
    }

    it('limits concurrent page reads per owner and in total, and delivers every stream completely', async () => {
      const { url, meter } = await start(store)
      const messages = MESSAGES / 4
      const callers = Array.from({ length: OWNERS }, async (_, index) => {
        const session = await openStreamingSession(url, { localAddress: `127.0.0.${index + 2}` })
        return { session, place: await pour(session, messages, false) }
      })
      const sessions = await Promise.all(callers)
      const release = meter.hold()
      const open = await Promise.all(
        sessions.flatMap(({ session, place }) => Array.from({ length: MAX_OPEN_GETS }, () => session.get(place))),
      )
      expect(statuses(open)).to.deep.equal([OWNERS * MAX_OPEN_GETS, 0])
      await eventually('as many are read as may be', () => meter.inTransit === MAX_PAGES)
      release()
      const found = await Promise.all(open.map(messagesOf))
      expect(new Set(found)).to.deep.equal(new Set([messages + 1]))
      expect(meter.mostUnderWay).to.equal(MAX_PAGES)
    })
  })
}
