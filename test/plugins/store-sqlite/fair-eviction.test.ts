// Fair session eviction: one caller fills a small SQLite file over HTTP while another continues.
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { postOpen, readWhole } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { exchange } from '../../support/stream-exchange.ts'
import { openStreamingSession } from '../../support/streaming-session.ts'
import { closeFiles, hasSqlite, newFolder } from './support/sqlite-files.ts'

const GREEDY = '127.0.0.9'
const OTHER = '127.0.0.2'
/** Of the greedy one; each of the others opens as many as there are rounds. */
const SESSIONS = 400
const AT_ONCE = 20

const echo = defineTool({ name: 'echo', handler: () => 'echoed' })
const slowly = defineTool({
  name: 'slowly',
  async handler(_, ctx) {
    for (let part = 1; part <= 3; part++) await ctx.progress(part, 3)
    return 'done'
  },
})

/** As much as a client may leave in the record of its session. */
const LARGEST = {
  protocolVersion: '2025-11-25',
  clientInfo: { name: 'c', version: '1', title: 'i'.repeat(8_000) },
  capabilities: { experimental: { x: { y: 'c'.repeat(8_000) } } },
}

async function startSmall() {
  const { url } = await startHost(
    {
      toolsets: { all: [echo, slowly] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, health: {}, 'store-sqlite': { file: './host.db', maxSize: '4mb' } },
    },
    newFolder(),
  )
  /** The status of its `initialize`. */
  const initialize = async (localAddress: string, params: object = LARGEST, pad = 14_000) => {
    const message = { id: 1, method: 'initialize', params }
    const answer = await readWhole(postOpen(url, message, { 'X-Pad': 'h'.repeat(pad) }, { localAddress }))
    return answer.status
  }
  const readiness = async () => (await exchange(new URL('/readyz', url).href, { localAddress: OTHER })).status
  return { url, initialize, readiness }
}

const count = (found: readonly number[]) =>
  Object.fromEntries([...new Set(found)].sort().map(one => [one, found.filter(other => other === one).length]))

if (hasSqlite) {
  describe('store-sqlite: fairness between callers in a small file', () => {
    after(async () => {
      await stopHosts()
      await closeFiles()
    })

    it('opens sessions of another caller and keeps its existing session and stream', async () => {
      const { url, initialize, readiness } = await startSmall()
      const session = await openStreamingSession(url, { localAddress: OTHER })
      const idle = await openStreamingSession(url, { localAddress: OTHER })
      const stream = await session.get()
      let isOpen = true
      void stream.whole.then(() => {
        isOpen = false
      })
      const call = await session.call('slowly')
      const place = String((await call.next())?.id)
      await call.rest()
      const greedy: number[] = []
      const others: number[] = []
      const ready: number[] = []
      for (let round = 0; round < SESSIONS / AT_ONCE; round++) {
        greedy.push(...(await Promise.all(Array.from({ length: AT_ONCE }, () => initialize(GREEDY)))))
        others.push(await initialize(OTHER, { ...LARGEST, clientInfo: { name: 'c', version: '1' } }, 10))
        ready.push(await readiness())
      }
      const [again, resumed] = [await session.call('echo'), await session.get(place)]
      expect(count(others)).to.deep.equal({ 200: SESSIONS / AT_ONCE })
      expect(count(ready)).to.deep.equal({ 200: SESSIONS / AT_ONCE })
      expect(Object.keys(count(greedy)).filter(status => !['200', '429'].includes(status))).to.deep.equal([])
      expect(await again.text()).to.include('echoed')
      expect(await (await idle.call('echo')).text()).to.include('echoed')
      expect(resumed.status).to.equal(200)
      expect(JSON.stringify(await resumed.rest())).to.include('done')
      expect([stream.status, isOpen]).to.deep.equal([200, true])
    })
  })
}
