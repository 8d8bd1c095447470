// Tests stream resumption after random disconnects under load. Seeded: `SEED=7 npx mocha
// 'test/slow/disconnects.slow.ts'`.
import { expect } from 'chai'
import { defineResource, defineTool } from '../../core/index.ts'
import { type Cutter, type CuttingProxy, startCuttingProxy } from '../support/cutting-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { createSeededRandom } from '../support/seeded-random.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import type { ReadEvent, StreamExchange } from '../support/stream-exchange.ts'
import { openStreamingSession, type StreamingSession } from '../support/streaming-session.ts'

const DISCONNECTS = 300
const CALLERS = 12
const LISTENERS = 3
const EVENTS = 40
/** Maximum calls of a run with too few disconnects. */
const MOST_CALLS = 1_500

const SEED = Number(process.env['SEED'] ?? 20_261_121)
const random = createSeededRandom(SEED)

const WATCHED = 'load://watched'
const counts = { calls: 0, events: 0, duplicates: 0, missing: 0, disordered: 0, refused: 0, changes: 0 }

const pause = (choice: number) =>
  new Promise<void>(resolve =>
    choice === 0 ? setTimeout(resolve, 1) : choice === 1 ? setImmediate(resolve) : resolve(),
  )

const burst = defineTool({
  name: 'burst',
  async handler(_args, { log, host }) {
    for (let index = 0; index < EVENTS; index++) {
      log('info', { index, filler: 'x'.repeat(random.below(400)) })
      if (random.below(20) === 0) {
        host.resourceUpdated(WATCHED)
        counts.changes++
      }
      await pause(random.below(3))
    }
    return 'done'
  },
})

/** Cuts some connections: one that resumes anywhere, another once its client has an id to come back with. JSON passes. */
function cutter(request: string): Cutter {
  const resumes = /^last-event-id:/im.test(request)
  let budget = random.below(6) === 0 ? Number.POSITIVE_INFINITY : random.below(6_000)
  let seen = ''
  return bytes => {
    if (!resumes && !/event-stream[\s\S]*\n\n/.test(seen)) {
      seen += bytes.toString('latin1')
      return undefined
    }
    budget -= bytes.length
    return budget > 0 ? undefined : Math.max(0, bytes.length + budget)
  }
}

/** Comes back until a stream is there. A connection that broke is still open on the host until it hears of that. */
async function comeBack(session: StreamingSession, lastEventId: string | undefined): Promise<StreamExchange> {
  const stream = await eventually('a stream to come back to', async () => {
    const got = await session.get(lastEventId).catch(() => undefined)
    if (got?.status === 409) counts.refused++
    return got?.status === 409 ? undefined : got
  })
  if (stream?.status !== 200) throw new Error(`coming back: ${stream?.status} ${await stream?.text()}`)
  return stream
}

/** Reads a stream to its end, however often it breaks. The first time it is given, then resumed. */
async function readWhole(session: StreamingSession, first: StreamExchange, isLast: (event: ReadEvent) => boolean) {
  const events: ReadEvent[] = []
  let lastId: string | undefined
  for (let stream = first; ; stream = await comeBack(session, lastId)) {
    for (const event of await stream.until(isLast)) {
      lastId = event.id ?? lastId
      if (event.message === undefined) continue
      events.push(event)
      if (isLast(event)) {
        stream.drop()
        return events
      }
    }
  }
}

/** Holds ordinals against 0, 1, 2, ... up to `expected`. */
function count(ordinals: readonly number[], expected: number) {
  const distinct = new Set(ordinals)
  counts.events += ordinals.length
  counts.duplicates += ordinals.length - distinct.size
  counts.missing += expected - distinct.size
  counts.disordered += ordinals.filter((ordinal, index) => index > 0 && ordinal < (ordinals[index - 1] ?? 0)).length
}

async function callUntil(enough: () => boolean, url: string) {
  const session = await openStreamingSession(url)
  while (!enough()) {
    const stream = await session.call('burst')
    const events = await readWhole(session, stream, ({ message }) => message?.result !== undefined)
    counts.calls++
    const answers = events.filter(({ message }) => message.result).map(() => 0)
    const logged = events.filter(({ message }) => message.params).map(({ message }) => message.params.data.index)
    count(logged, EVENTS)
    count(answers, 1)
  }
}

/** Watches a resource on the session's own stream, until it is told that the list of tools changed. */
async function listen(url: string): Promise<{ readonly changes: () => Promise<number[]> }> {
  const session = await openStreamingSession(url)
  await (await session.request('resources/subscribe', { uri: WATCHED })).whole
  const stream = await comeBack(session, undefined)
  const reading = readWhole(session, stream, ({ message }) => message?.method === 'notifications/tools/list_changed')
  return {
    changes: async () => (await reading).map(({ id }) => Number(id?.split('.')[1]) - 1).slice(0, -1),
  }
}

describe('stream resumption: random disconnects under load', () => {
  let proxy: CuttingProxy
  after(async () => {
    await proxy.stop()
    await stopHosts()
  })

  it('delivers every event exactly once and in order', async () => {
    const watched = defineResource({ name: 'watched', uri: WATCHED, handler: () => 'text' })
    const { host, url } = await startHost({
      toolsets: { load: [burst, watched] },
      routes: { '/': { toolsets: 'load' } },
    })
    proxy = await startCuttingProxy(url, { cutter })
    const enough = () => proxy.cuts >= DISCONNECTS || counts.calls >= MOST_CALLS
    const listeners = await Promise.all(Array.from({ length: LISTENERS }, () => listen(proxy.url)))
    await Promise.all(Array.from({ length: CALLERS }, () => callUntil(enough, proxy.url)))
    host.runtime.tools.add(defineTool({ name: 'the_end', handler: () => '' }))
    for (const { changes } of listeners) count(await changes(), counts.changes)

    console.log(`      seed ${SEED}, disconnects ${proxy.cuts},`, counts)
    expect(proxy.cuts).to.be.at.least(DISCONNECTS)
    expect(counts.events).to.equal(counts.calls * (EVENTS + 1) + LISTENERS * counts.changes)
    expect(counts).to.include({ duplicates: 0, missing: 0, disordered: 0 })
  })
})
