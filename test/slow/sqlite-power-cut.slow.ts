// Tests simulated power cuts of hosts with store-sqlite: sessions and events that clients received survive.
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { at } from '../cluster/support/nodes.ts'
import { createRecorded, cutOften, needsCompiler, writeFiles } from '../sqlite/support/power-cut.ts'
import { HAS_SQLITE } from '../sqlite/support/sqlite.ts'
import { startWorkersProcess } from '../sqlite/support/workers-process.ts'
import { concurrentIt } from '../support/concurrent-it.ts'
import { freePort } from '../support/free-port.ts'
import { createSeededRandom } from '../support/seeded-random.ts'
import { openSession, type SessionClient } from '../support/session-client.ts'

const SEED = Number(process.env['SEED'] ?? 20_261_123)
const CLIENTS = 6
const EVENTS = 30
const CALLS = 3
const CUTS = 6
const CONFIG = 'test/sqlite/power.config.ts'

interface Told {
  readonly at: number
  readonly session: SessionClient
  /** Of a stream: the id of an event, and what progress it told; 0: the first one, which tells nothing. */
  readonly event?: { readonly id: string; readonly stream: string; readonly progress: number }
  readonly ended?: 'asked' | 'done'
}

/** One client: calls, each read to its end, and a session beside that is ended. */
async function work(url: string, now: () => number, told: Told[]) {
  const session = await openSession(`${url}/mcp`)
  told.push({ at: now(), session })
  for (let call = 0; call < CALLS; call++) {
    const stream = await session.call('stream', { events: EVENTS, pace: 2 })
    for (let event = await stream.next(); event; event = await stream.next()) {
      const id = String(event.id)
      const progress = event.message?.params?.progress ?? (event.message ? EVENTS + 1 : 0)
      told.push({ at: now(), session, event: { id, stream: id.split('.')[0] ?? '', progress } })
    }
    const brief = await openSession(`${url}/mcp`)
    told.push({ at: now(), session: brief })
    told.push({ at: now(), session: brief, ended: 'asked' })
    await brief.end()
    told.push({ at: now(), session: brief, ended: 'done' })
  }
}

interface Counts {
  cuts: number
  sessions: number
  ended: number
  streams: number
  events: number
  lost: string[]
}

/** What comes after an event must be the ones that follow it, each once, and end with the answer or with `node-lost`. */
async function checkStream(url: string, told: readonly Told[], counts: Counts) {
  const [first] = told
  if (!first?.event) return
  const known = Math.max(...told.map(({ event }) => event?.progress ?? 0))
  const stream = await at(`${url}/mcp`, first.session).get({ 'Last-Event-ID': first.event.id })
  counts.streams++
  counts.events += told.length
  if (stream.status !== 200) {
    counts.lost.push(`a stream whose ${told.length} events were seen: ${stream.status} ${await stream.text()}`)
    return
  }
  const found: number[] = []
  for (let event = await stream.next(); event; event = await stream.next()) {
    const { params, result, error } = event.message ?? {}
    if (params) found.push(params.progress)
    else if (result) found.push(EVENTS + 1)
    else if (error && error.data?.reason !== 'node-lost') counts.lost.push(`answered ${JSON.stringify(error)}`)
  }
  const wanted = found.map((_, index) => (first.event ? first.event.progress + index + 1 : 0))
  if (found.join() !== wanted.join()) counts.lost.push(`after ${first.event.progress} came ${found}`)
  if (first.event.progress + found.length < known) counts.lost.push(`seen to ${known}, and there to ${found.at(-1)}`)
}

async function checkAll(url: string, told: readonly Told[], counts: Counts) {
  const sessions = new Map(told.map(({ session }) => [session.id, session]))
  const ended = new Map(told.flatMap(({ session, ended }) => (ended ? [[session.id, ended]] : [])))
  for (const [id, session] of sessions) {
    const { status } = await at(`${url}/mcp`, session).request('ping')
    counts.sessions++
    if (ended.get(id) === 'done') {
      counts.ended++
      if (status !== 404) counts.lost.push(`a session that was ended answers ${status}`)
    } else if (status !== 200 && !ended.has(id)) counts.lost.push(`a session answers ${status}`)
  }
  const streams = new Map<string, Told[]>()
  for (const one of told) {
    if (one.event) streams.set(one.event.stream, [...(streams.get(one.event.stream) ?? []), one])
  }
  for (const events of streams.values()) await checkStream(url, events, counts)
}

if (HAS_SQLITE) {
  describe('store-sqlite: power cut of a host', () => {
    before(function () {
      needsCompiler(this)
    })
    const it = concurrentIt()

    for (const workers of [undefined, 2]) {
      it(`with ${workers ?? 'no'} workers loses no session and no event that a client received`, async () => {
        const random = createSeededRandom(SEED)
        const recorded = createRecorded()
        const told: Told[] = []
        const STORE_FILE = join(recorded.folder, 'host.db')
        const settings = { config: CONFIG, ...(workers && { workers }) } as const
        const host = await startWorkersProcess({
          ...settings,
          port: await freePort(),
          env: { ...recorded.env(), STORE_FILE },
        })
        const since = recorded.now()
        await Promise.all(Array.from({ length: CLIENTS }, () => work(host.url, recorded.now, told)))
        await host.kill()
        const counts: Counts = { cuts: 0, sessions: 0, ended: 0, streams: 0, events: 0, lost: [] }
        const check = async (files: ReadonlyMap<string, Buffer>, place: number) => {
          const folder = join(realpathSync(recorded.folder), '../found')
          writeFiles(folder, files)
          const env = { STORE_FILE: join(folder, 'host.db') }
          const again = await startWorkersProcess({ ...settings, port: await freePort(), env })
          const before = told.filter(({ at }) => at <= place)
          counts.cuts++
          await checkAll(again.url, before, counts)
          await again.kill()
        }
        try {
          await cutOften(recorded.records(), CUTS, random, check, since)
        } finally {
          recorded.remove()
        }
        const { lost, ...others } = counts
        console.log(`      seed ${SEED}: ${JSON.stringify({ ...others, lost: lost.length })}`)
        expect(lost.slice(0, 10)).to.deep.equal([])
        expect(counts.events).to.be.greaterThan(100)
      })
    }
  })
}
