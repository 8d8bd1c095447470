// Size limits of the store-sqlite file, the eviction order and file permissions.
import { chmodSync, copyFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { openDatabase } from '../../sqlite/support/sqlite.ts'
import { eventually } from '../../support/eventually.ts'
import { closeFiles, hasSqlite, newFile, openFile } from './support/sqlite-files.ts'

const MIB = 1_048_576

if (hasSqlite) {
  describe('store-sqlite: file limits', () => {
    after(closeFiles)

    it('evicts the least recently written streams beyond maxSize and keeps grants', async () => {
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

    it('limits the space of the sessions of one owner, whatever their sizes', async () => {
      const path = newFile()
      const maxSize = 8 * MIB
      const { sessions, node, writer } = await openFile(path, { bounds: { maxSize } })
      const { BOUNDS_OF_SESSIONS, recordOf } = await import('./support/records.ts')
      const client = {
        info: { name: 'c', version: '1', title: 'i'.repeat(8_000) },
        capabilities: { experimental: { x: { y: 'c'.repeat(8_000) } } },
      }
      const open = async (digest: string, holder: string, size: number) => {
        const { opening, ...record } = recordOf(node, holder)
        const padded = { ...record, opening: { ...opening, headers: { 'x-pad': 'x'.repeat(size) } } }
        const version = await sessions.create(digest, padded, BOUNDS_OF_SESSIONS)
        if (version !== undefined) await sessions.change(digest, { revision: '2025-11-25', client })
        return version !== undefined
      }
      let opened = 0
      for (let size = 16_000; size >= 0; size -= 2_000) {
        while (await open(`digest-${opened}`, 'ada', size)) opened++
      }
      expect(opened).to.be.within(80, 92)
      expect(writer.bytes).to.be.below(0.4 * maxSize)
      expect(await open('of-another', 'bob', 16_000)).to.equal(true)
      await sessions.end('digest-0', 'ada')
      expect(await open('next', 'ada', 0)).to.equal(true)
    })

    it('deletes expired entries and frees their space', async () => {
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

    it('creates files readable by the owner only, and leaves one file and its lock after close', async () => {
      const path = newFile()
      const { grants, writer } = await openFile(path)
      await grants.set('granted:one', 'value', 60_000)
      expect(modesBeside(path)).to.deep.equal(OPEN)
      await writer.close()
      expect(readdirSync(dirname(path)).sort()).to.deep.equal(['host.db', 'host.db.lock'])
    })

    for (const [what, isKilled] of [
      ['a restored backup', false],
      ['the files of a killed process', true],
    ] as const) {
      it(`removes permissions of other users from ${what} before it creates other files`, async () => {
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

    it("leaves the file mode of another program's database unchanged", async () => {
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
  const tables = ['records', 'sorted_sets', 'members', 'logs', 'messages']
  const rows = (table: string) => Number(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'])
  return {
    count: () => tables.reduce((sum, table) => sum + rows(table), 0),
    pages: () => Number(db.prepare('PRAGMA page_count').get()?.['page_count']),
    close: () => db.close(),
  }
}
