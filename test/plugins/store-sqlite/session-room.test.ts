// Session storage limits in the SQLite file: fair eviction, refusals and the memory of ended sessions.
import { expect } from 'chai'
import { HostError } from '../../../core/index.ts'
import type { SessionRecord } from '../../../core/transport.ts'
import { boundsOfSessions } from '../../../plugins/store-sqlite/thread/bounds.ts'
import { BOUNDS_OF_SESSIONS, recordOf } from './support/records.ts'
import { closeFiles, hasSqlite, newFile, type OpenedFile, openFile } from './support/sqlite-files.ts'

const MIB = 1_048_576
const SMALL = { maxSize: 2 * MIB }
const LARGE = 30_000

const largeRecord = (home: string, holder: string): SessionRecord => {
  const record = recordOf(home, holder)
  return { ...record, opening: { ...record.opening, headers: { 'x-pad': 'x'.repeat(LARGE) } } }
}

const create = async ({ sessions, node }: OpenedFile, digest: string, holder: string, isLarge = true) =>
  sessions.create(digest, isLarge ? largeRecord(node, holder) : recordOf(node, holder), BOUNDS_OF_SESSIONS)

const mark = async ({ sessions }: OpenedFile, digest: string, holder: string, inUse: boolean) =>
  sessions.mark([{ digest, holder, inUse, ago: 0 }], BOUNDS_OF_SESSIONS)

const isThere = async ({ sessions }: OpenedFile, digest: string) => (await sessions.timeLeft(digest)) !== undefined

/** What it was refused with. */
async function refusalOf(act: Promise<unknown>): Promise<HostError> {
  const thrown = await act.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(thrown).to.be.instanceOf(HostError)
  return thrown as HostError
}

/** What the file counts, and what there is to count. */
async function countsOf(path: string) {
  const { DatabaseSync } = await import('node:sqlite')
  const db = new DatabaseSync(path, { readOnly: true })
  const rows = (sql: string) =>
    db
      .prepare(sql)
      .all()
      .map(row => Object.values(row).join(' '))
  const found = {
    counted: [
      rows("SELECT entries, bytes FROM tallies WHERE name = 'sessions'"),
      rows("SELECT entries FROM tallies WHERE name IN ('idle', 'ended') ORDER BY name"),
      rows('SELECT holder, bytes FROM holders ORDER BY holder'),
      rows('SELECT holder, sessions, bytes FROM idle_holders ORDER BY holder'),
    ],
    there: [
      rows('SELECT count(*), coalesce(sum(size), 0) FROM sessions'),
      [...rows('SELECT count(*) FROM ended'), ...rows('SELECT count(*) FROM sessions WHERE idle_since IS NOT NULL')],
      rows('SELECT holder, sum(size) FROM sessions GROUP BY holder ORDER BY holder'),
      rows(
        'SELECT holder, count(*), sum(size) FROM sessions WHERE idle_since IS NOT NULL GROUP BY holder ORDER BY holder',
      ),
    ],
  }
  db.close()
  return found
}

if (hasSqlite) {
  describe('store-sqlite: session storage limit', function () {
    this.timeout(60_000)
    after(closeFiles)

    it('evicts the longest idle sessions of the owner with the most bytes, and reports them', async () => {
      const file = await openFile(newFile(), { bounds: SMALL })
      for (let index = 0; index < 8; index++) {
        await create(file, `small ${index}`, 'bob', false)
        await mark(file, `small ${index}`, 'bob', false)
      }
      const told: string[] = []
      for (let index = 0; index < 60; index++) {
        await create(file, `large ${index}`, 'ada')
        told.push(...(await mark(file, `large ${index}`, 'ada', false)).map(({ digest }) => digest))
      }
      const most = Math.floor(boundsOfSessions(SMALL).owner / LARGE)
      expect(told).to.deep.equal(Array.from({ length: told.length }, (_, index) => `large ${index}`))
      expect(told.length).to.be.within(60 - most, 60 - most / 2)
      for (const digest of told) {
        expect(
          await file.sessions.enter(digest, { version: 0, requests: [], from: [] }, BOUNDS_OF_SESSIONS),
        ).to.deep.equal({
          kind: 'missing',
          ended: true,
        })
        expect(await file.sessions.end(digest, 'ada', true)).to.deep.equal([])
      }
      for (let index = 0; index < 8; index++) expect(await isThere(file, `small ${index}`)).to.equal(true)
    })

    it('keeps running, active and streaming sessions, and refuses their owner with 429', async () => {
      const file = await openFile(newFile(), { bounds: SMALL })
      const { sessions } = file
      const opened: string[] = []
      let refused: HostError | undefined
      for (let index = 0; refused === undefined; index++) {
        const digest = `large ${index}`
        const created = create(file, digest, 'ada')
        if (await created.catch(() => false)) {
          opened.push(digest)
          await mark(file, digest, 'ada', false)
          if (index % 3 === 0) await sessions.enter(digest, { version: 1, requests: [1], from: [] }, BOUNDS_OF_SESSIONS)
          else if (index % 3 === 1) await mark(file, digest, 'ada', true)
          else await sessions.claimStream(digest, 'stream')
        } else refused = await refusalOf(created)
      }
      expect(opened).to.have.lengthOf(Math.floor(boundsOfSessions(SMALL).owner / 33_700))
      expect([refused.status, refused.headers]).to.deep.equal([429, { 'Retry-After': '10' }])
      for (const digest of opened) expect(await isThere(file, digest)).to.equal(true)
      expect(await create(file, 'of another', 'bob')).to.equal(true)
      const watching = Array.from({ length: 5 }, (_, index) =>
        sessions.change('large 0', { watch: `note://${index}${'x'.repeat(8_000)}` }),
      )
      expect((await Promise.all(watching)).at(-1)).to.equal('full')
      sessions.leave('large 0', [1])
      await mark(file, 'large 0', 'ada', false)
      expect(await create(file, 'more', 'ada')).to.equal(true)
      expect(await isThere(file, 'large 0')).to.equal(false)
    })

    it('evicts in any process, and reports sessions cached in other processes', async () => {
      const path = newFile()
      const [file, other] = [await openFile(path, { bounds: SMALL }), await openFile(path, { bounds: SMALL })]
      await create(file, 'first', 'ada')
      await mark(file, 'first', 'ada', false)
      const told = []
      for (let index = 0; index < 20; index++) {
        await create(other, `large ${index}`, 'ada')
        told.push(...(await mark(other, `large ${index}`, 'ada', false)))
      }
      expect(told[0]).to.deep.equal({ digest: 'first', holder: 'ada' })
      expect(await other.sessions.end('first', 'ada', true)).to.deep.equal([file.node])
      const held = { requests: [], claim: undefined }
      const restored = file.sessions.restore('first', recordOf(file.node), held, BOUNDS_OF_SESSIONS)
      expect(await restored).to.equal(false)
    })

    it('refuses a third owner with 503 while two active owners use all space', async () => {
      const file = await openFile(newFile(), { bounds: SMALL })
      for (const holder of ['ada', 'bob', 'cem']) {
        for (let index = 0; index < 40; index++) {
          const opened = await create(file, `${holder} ${index}`, holder).catch((error: HostError) => error.status)
          if (opened === 1) continue
          expect(opened).to.equal(holder === 'cem' ? 503 : 429)
          break
        }
      }
      expect(await isThere(file, 'ada 0')).to.equal(true)
      expect(await isThere(file, 'bob 0')).to.equal(true)
    })

    it('counts watched resources and client data exactly', async () => {
      const path = newFile()
      const file = await openFile(path, { bounds: { maxSize: 64 * MIB } })
      const { sessions } = file
      const uris = ['note://a', 'note://b', `note://${'x'.repeat(1_000)}`]
      for (let step = 0; step < 400; step++) {
        const [digest, holder] = [`digest ${step % 40}`, `holder ${step % 5}`]
        const uri = String(uris[step % 3])
        if (step % 40 === step) await create(file, digest, holder, step % 2 === 0)
        else if (step % 7 === 0) await sessions.change(digest, { watch: uri })
        else if (step % 7 === 1) await sessions.change(digest, { unwatch: uri })
        else if (step % 7 === 2) await mark(file, digest, holder, step % 4 === 0)
        else if (step % 7 === 3) {
          const info = { name: 'client', version: '1', title: 'x'.repeat(step * 10) }
          await sessions.change(digest, { revision: '2025-11-25', client: { info, capabilities: {} } })
        } else if (step % 7 === 4 && step % 3 === 0) await sessions.end(digest, holder)
        else if (step % 7 === 5)
          await sessions.restore(
            digest,
            recordOf(file.node, holder),
            { requests: [], claim: undefined },
            BOUNDS_OF_SESSIONS,
          )
      }
      const { counted, there } = await countsOf(path)
      expect(counted.map(rows => [...rows].sort())).to.deep.equal(there.map(rows => [...rows].sort()))
      expect(counted[3]).to.have.length.above(1)
    })

    it('remembers a limited number of ended sessions and forgets the oldest uncached ones', async () => {
      const path = newFile()
      const [file, other] = [await openFile(path, { bounds: SMALL }), await openFile(path, { bounds: SMALL })]
      const { ended } = boundsOfSessions(SMALL)
      const copied = Array.from({ length: 20 }, (_, index) => `copied ${index}`)
      for (const digest of copied) {
        await create(file, digest, 'ada', false)
        await other.sessions.enter(digest, { version: 0, requests: [], from: [] }, BOUNDS_OF_SESSIONS)
        await file.sessions.end(digest, 'ada')
      }
      const alone = Array.from({ length: ended * 2 }, (_, index) => `alone ${index}`)
      for (let from = 0; from < alone.length; from += 50) {
        const some = alone.slice(from, from + 50)
        await Promise.all(some.map(digest => create(file, digest, 'bob', false)))
        await Promise.all(some.map(digest => file.sessions.end(digest, 'bob')))
      }
      const isKnown = async (digest: string) =>
        !(await file.sessions.restore(
          digest,
          recordOf(file.node),
          { requests: [], claim: undefined },
          BOUNDS_OF_SESSIONS,
        ))
      const { there } = await countsOf(path)
      expect(there[1]?.[0]).to.equal(String(ended))
      for (const digest of copied) expect(await isKnown(digest)).to.equal(true)
      expect([await isKnown('alone 0'), await isKnown(String(alone.at(-1)))]).to.deep.equal([false, true])
    })
  })
}
