// How large the file of store-sqlite may grow, and what goes first: what is past its time, then streams that were written to
// longest ago, then of what anybody may begin what was written first.
import { chmodSync, copyFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { openDatabase } from '../../sqlite/support/sqlite.ts'
import { eventually } from '../../support/eventually.ts'
import { closeFiles, hasSqlite, newFile, openFile } from './support/sqlite-files.ts'

const MIB = 1_048_576

if (hasSqlite) {
  describe('the file of store-sqlite', function () {
    this.timeout(60_000)
    after(closeFiles)

    it('keeps to its maxSize: the streams that were written to longest ago go, and grants stay', async () => {
      const path = newFile()
      const maxSize = 4 * MIB
      const { events, grants, writer, log } = await openFile(path, { bounds: { maxSize, ttl: 3_600_000 } })
      await grants.set('granted:one', 'kept', 3_600_000)
      const message = 'x'.repeat(10_000)
      const streams = 200
      for (let stream = 0; stream < streams; stream++) {
        for (let known = 0; known < 10; known++) await events.append('session', `stream-${stream}`, message, known)
      }
      const there = await Promise.all(
        Array.from({ length: streams }, async (_, stream) => await events.after('session', `stream-${stream}`, 0)),
      )
      const first = there.findIndex(found => found?.length === 10)
      expect(statSync(path).size).to.be.at.most(maxSize)
      expect(first).to.be.within(1, streams - 20)
      expect(there.slice(first + 1).every(found => found?.length === 10)).to.equal(true)
      expect(await grants.get('granted:one')).to.equal('kept')
      expect(log.filter(({ level }) => level === 'error')).to.deep.equal([])
      await eventually('it tells its size', () => writer.bytes > MIB && writer.evicted > 0)
    })

    it('deletes what is past its time, and gives the room back', async () => {
      const path = newFile()
      const { events, grants, sessions, node } = await openFile(path, { bounds: { ttl: 1_500 } })
      const { BOUNDS_OF_SESSIONS, recordOf } = await import('./support/records.ts')
      for (let index = 0; index < 400; index++) {
        await Promise.all([
          events.append('session', `stream-${index}`, 'x'.repeat(30_000), 0),
          grants.set(`granted:${index}`, 'x'.repeat(200), 1_000),
          sessions.create(`digest-${index}`, recordOf(node), { ...BOUNDS_OF_SESSIONS, idleTimeout: 1_000 }),
        ])
      }
      const rows = await counting(path)
      await eventually(
        'all rows go',
        () => rows.count(),
        found => found === 0,
        30_000,
      )
      await eventually(
        'the file shrinks',
        () => rows.pages(),
        found => found < 1_200,
        30_000,
      )
      rows.close()
    })

    it('bounds what anybody may begin, by number and by bytes, and nothing else', async () => {
      const { grants } = await openFile(newFile(), { bounds: { pending: { entries: 20, bytes: 40_000 } } })
      await grants.set('granted:one', 'x'.repeat(50_000), 60_000)
      for (let index = 0; index < 50; index++) await grants.set(`pending:${index}`, 'login', 60_000)
      const there = async (name: string) => (await grants.get(name)) !== undefined
      const kept: number[] = []
      for (let index = 0; index < 50; index++) if (await there(`pending:${index}`)) kept.push(index)
      expect(kept).to.deep.equal(Array.from({ length: 20 }, (_, index) => 30 + index))
      await grants.set('pending:large', 'x'.repeat(30_000), 60_000)
      expect(await there('pending:large')).to.equal(true)
      expect(await there('pending:30')).to.equal(false)
      const refused = await grants.set('pending:larger', 'x'.repeat(40_000), 60_000).catch(error => error.kind)
      expect(refused).to.equal('unavailable')
      await grants.join('pending:set', 'member', 60_000, 5)
      await grants.delete('pending:large', 'pending:set')
      expect(await there('granted:one')).to.equal(true)
    })

    it('bounds a stream, by number and by bytes; its last event is kept whatever its size', async () => {
      const { events } = await openFile(newFile(), { bounds: { maxEvents: 5, maxBytes: 1_000 } })
      for (let known = 0; known < 20; known++) await events.append('session', 'many', 'short', known)
      expect(await events.after('session', 'many', 14)).to.equal(undefined)
      expect((await events.after('session', 'many', 15))?.map(({ seq }) => seq)).to.deep.equal([16, 17, 18, 19, 20])
      for (let known = 0; known < 3; known++) await events.append('session', 'large', 'x'.repeat(2_000), known)
      expect(await events.after('session', 'large', 1)).to.equal(undefined)
      expect(await events.after('session', 'large', 2)).to.have.lengthOf(1)
    })

    it('may be read by its owner alone, and so may all beside it; closed, it is one file and its lock', async () => {
      const path = newFile()
      const { grants, writer } = await openFile(path)
      await grants.set('granted:one', 'value', 60_000)
      expect(modesBeside(path)).to.deep.equal(OPEN)
      await writer.close()
      expect(readdirSync(dirname(path)).sort()).to.deep.equal(['host.db', 'host.db.lock'])
    })

    for (const [what, isKilled] of [
      ['a backup that was put back', false],
      ['what a kill left, with its log,', true],
    ] as const) {
      it(`takes from others what they may do with ${what} before anything is made beside it`, async () => {
        const path = newFile()
        const { grants, writer } = await openFile(path)
        await grants.set('granted:one', 'value', 60_000)
        if (!isKilled) await writer.close()
        const copy = newFile()
        for (const name of readdirSync(dirname(path)))
          copyFileSync(join(dirname(path), name), join(dirname(copy), name))
        for (const name of readdirSync(dirname(copy))) chmodSync(join(dirname(copy), name), 0o644)
        expect(Object.keys(modesBeside(copy))).to.have.lengthOf(isKilled ? 4 : 2)
        const again = await openFile(copy)
        expect(await again.grants.get('granted:one')).to.equal('value')
        expect(modesBeside(copy)).to.deep.equal(OPEN)
      })
    }

    it("leaves the mode of another program's database as it is", async () => {
      const path = newFile()
      const other = openDatabase(path)
      other.exec('CREATE TABLE theirs (id INTEGER)')
      other.close()
      chmodSync(path, 0o664)
      const refused = await openFile(path).catch(error => error.message)
      expect(refused).to.contain('the file is a database of another program')
      expect(modesBeside(path)['host.db']).to.equal(0o664)
    })
  })
}

/** Of a file that is open, and of all beside it. */
const OPEN = { 'host.db': 0o600, 'host.db-shm': 0o600, 'host.db-wal': 0o600, 'host.db.lock': 0o600 }

const modesBeside = (path: string): Readonly<Record<string, number>> =>
  Object.fromEntries(readdirSync(dirname(path)).map(name => [name, statSync(join(dirname(path), name)).mode & 0o777]))

/** How many rows there are that pass, and how many pages, as another reader of the file sees it. */
async function counting(path: string) {
  const { DatabaseSync } = await import('node:sqlite')
  const db = new DatabaseSync(path)
  const tables = ['sessions', 'copies', 'streams', 'events', 'grants']
  const rows = (table: string) => Number(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'])
  return {
    count: () => tables.reduce((sum, table) => sum + rows(table), 0),
    pages: () => Number(db.prepare('PRAGMA page_count').get()?.['page_count']),
    close: () => db.close(),
  }
}
