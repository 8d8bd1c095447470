// Faults of the SQLite file at run time: 503 with Retry-After, one log message, and automatic recovery.
import { copyFileSync, existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { HostError } from '../../../core/index.ts'
import { eventually } from '../../support/eventually.ts'
import { mountSmall, unmount } from '../../support/small-disk.ts'
import { BOUNDS_OF_SESSIONS, recordOf } from './support/records.ts'
import { closeFiles, hasSqlite, newFile, newFolder, type OpenedFile, openFile } from './support/sqlite-files.ts'

/** What it rejects with. */
async function refusalOf(act: unknown): Promise<HostError> {
  const thrown = await Promise.resolve(act).then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(thrown).to.be.instanceOf(HostError)
  const error = thrown as HostError
  expect([error.kind, error.status, error.headers]).to.deep.equal(['unavailable', 503, { 'Retry-After': '2' }])
  return error
}

const errorsOf = ({ log }: OpenedFile) => log.filter(({ level }) => level === 'error')

const append = async ({ events }: OpenedFile, known: number) =>
  events.append('session', 'stream', 'x'.repeat(20_000), known)

const isInTrouble = ({ writer }: OpenedFile, word: string) =>
  eventually(
    `trouble: ${word}`,
    () => writer.trouble,
    trouble => trouble?.includes(word),
  )

const isWell = ({ writer }: OpenedFile) =>
  eventually(
    'no trouble',
    () => writer.trouble ?? 'none',
    found => found === 'none',
  )

if (hasSqlite) {
  describe('store-sqlite: run-time faults', function () {
    this.timeout(30_000)
    after(closeFiles)

    it('refuses writes on a full disk, logs once, and recovers', async function () {
      const folder = newFolder()
      mountSmall(this, folder, 'rw', 1_024)
      try {
        const file = await openFile(join(folder, 'host.db'))
        writeFileSync(join(folder, 'filler'), Buffer.alloc(300_000))
        let kept = 0
        let refused = 0
        while (refused < 10 && kept < 10_000) {
          const stored = await append(file, kept).catch(() => undefined)
          if (stored === undefined) refused++
          else kept = stored
        }
        expect(refused).to.equal(10)
        await refusalOf(file.grants.set('granted:one', 'x'.repeat(50_000), 60_000))
        await isInTrouble(file, 'disk is full')
        expect(await file.events.after('session', 'stream', 0)).to.have.lengthOf(kept)
        rmSync(join(folder, 'filler'))
        await isWell(file)
        expect(await file.events.append('session', 'stream', 'more', kept)).to.equal(kept + 1)
        const told = errorsOf(file)
        expect(kept).to.be.above(0)
        expect(told).to.have.lengthOf(1)
        expect(String(told[0]?.['fix'])).to.include('make room')
        expect(file.log.filter(({ message }) => message?.includes('written again'))).to.have.lengthOf(1)
        await file.writer.close()
      } finally {
        unmount(folder)
      }
    })

    it('reports a full disk, and its end, without any write', async function () {
      const folder = newFolder()
      mountSmall(this, folder, 'rw', 1_024)
      try {
        const file = await openFile(join(folder, 'host.db'))
        const fill = (bytes: number) => {
          for (let size = bytes; size >= 4_096; ) {
            try {
              writeFileSync(join(folder, 'filler'), Buffer.alloc(size), { flag: 'a' })
            } catch {
              size = Math.floor(size / 2)
            }
          }
        }
        fill(65_536)
        await isInTrouble(file, 'disk is full')
        rmSync(join(folder, 'filler'))
        await isWell(file)
        expect(errorsOf(file)).to.have.lengthOf(1)
        await file.writer.close()
      } finally {
        unmount(folder)
      }
    })

    it('creates a deleted lock again, or reports another host that took it', async () => {
      const path = newFile()
      const file = await openFile(path)
      await file.grants.set('granted:one', 'kept', 60_000)
      await file.sessions.create('digest', recordOf(file.node), BOUNDS_OF_SESSIONS)
      await file.sessions.enter('digest', { version: 1, requests: [7], from: [] }, BOUNDS_OF_SESSIONS)
      rmSync(`${path}.lock`)
      await eventually('a lock', () => existsSync(`${path}.lock`))
      // What runs still runs, and nobody is told that anything was lost.
      expect(await file.grants.get('granted:one')).to.equal('kept')
      const { DatabaseSync } = await import('node:sqlite')
      const reader = new DatabaseSync(path)
      expect(reader.prepare('SELECT count(*) AS count FROM requests').get()).to.include({ count: 1 })
      reader.close()
      const refused = await openFile(path, { crew: 'another' }).catch(String)
      expect(refused).to.include('another host has the file')
      expect(errorsOf(file)).to.deep.equal([])
      rmSync(`${path}.lock`)
      const lock = new DatabaseSync(`${path}.lock`)
      lock.exec(
        "CREATE TABLE crew (name TEXT NOT NULL); INSERT INTO crew VALUES ('the first'); BEGIN; SELECT * FROM crew",
      )
      await isInTrouble(file, 'another host')
      await refusalOf(file.grants.get('granted:one'))
      lock.close()
      await isWell(file)
      expect(await file.grants.get('granted:one')).to.equal('kept')
    })

    it('refuses writes while another program locks the file, and recovers', async () => {
      const path = newFile()
      const file = await openFile(path)
      await file.grants.set('granted:one', 'kept', 60_000)
      const { DatabaseSync } = await import('node:sqlite')
      const other = new DatabaseSync(path)
      other.exec('BEGIN IMMEDIATE')
      const refusals = await Promise.all([
        refusalOf(file.grants.set('granted:one', 'lost', 60_000)),
        refusalOf(file.events.append('session', 'stream', 'lost', 0)),
      ])
      for (const { reason } of refusals) expect(reason).to.include('locked')
      expect(await file.grants.get('granted:one')).to.equal('kept')
      await isInTrouble(file, 'another program')
      other.exec('COMMIT')
      other.close()
      await isWell(file)
      expect(await file.events.append('session', 'stream', 'first', 0)).to.equal(1)
      expect(errorsOf(file)).to.have.lengthOf(1)
    })

    it('records answered requests after the file is available again', async () => {
      const path = newFile()
      const file = await openFile(path)
      await file.sessions.create('digest', recordOf(file.node), BOUNDS_OF_SESSIONS)
      const requests = Array.from({ length: 20 }, (_, index) => index)
      await file.sessions.enter('digest', { version: 1, requests, from: [] }, BOUNDS_OF_SESSIONS)
      const { DatabaseSync } = await import('node:sqlite')
      const other = new DatabaseSync(path)
      other.exec('BEGIN IMMEDIATE')
      for (const request of requests) file.sessions.leave('digest', [request])
      await isInTrouble(file, 'another program')
      expect(await file.sessions.nodeOf('digest', 7)).to.equal(file.node)
      other.exec('COMMIT')
      other.close()
      const stillThere = async () =>
        (await Promise.all(requests.map(request => file.sessions.nodeOf('digest', request)))).filter(Boolean).length
      await eventually('all requests are left', stillThere, left => left === 0)
    })

    for (const [what, act] of [
      ['deleted', (path: string) => rmSync(path)],
      ['deleted with its folder', (path: string) => rmSync(dirname(path), { recursive: true })],
      ['renamed', (path: string) => renameSync(path, `${path}.old`)],
    ] as const) {
      it(`creates a new file after the file is ${what}, and restores sessions`, async () => {
        const path = newFile()
        const file = await openFile(path)
        await file.sessions.create('digest', recordOf(file.node), BOUNDS_OF_SESSIONS)
        let returns = 0
        file.sessions.onReturn(() => {
          returns++
          const held = { requests: [], claim: undefined }
          void file.sessions.restore('digest', recordOf(file.node), held, BOUNDS_OF_SESSIONS)
        })
        act(path)
        await eventually('it returns', () => returns)
        await eventually('the session is back', () => file.sessions.timeLeft('digest'))
        expect(file.sessions.unsure).to.equal(true)
        expect(String(errorsOf(file)[0]?.['fix'])).to.include('no other program')
        const beside = await openFile(path)
        expect(await beside.sessions.timeLeft('digest')).to.be.above(0)
      })
    }

    it('moves all processes to a new file after deletion, or to a restored backup', async () => {
      const path = newFile()
      const files = await Promise.all([1, 2, 3].map(() => openFile(path)))
      const [one] = files as [OpenedFile, ...OpenedFile[]]
      await one.grants.set('granted:one', 'first', 60_000)
      const { DatabaseSync } = await import('node:sqlite')
      const shell = new DatabaseSync(path)
      shell.exec(`VACUUM INTO '${path}.backup'`)
      shell.close()
      const known = async (key: string) =>
        Promise.all(files.map(({ grants }) => grants.get(key).catch(() => 'refused')))
      const backUp = () => {
        copyFileSync(`${path}.backup`, `${path}.next`)
        renameSync(`${path}.next`, path)
      }
      for (const [act, found] of Array.from({ length: 5 }, () => [
        [() => rmSync(path), undefined] as const,
        [backUp, 'first'] as const,
      ]).flat()) {
        // Something that is in the log of the file alone.
        await Promise.all(
          files.map(({ grants }, index) => grants.set(`granted:log-${index}`, 'x'.repeat(9_000), 60_000)),
        )
        act()
        await eventually(
          'all have the other',
          () => known('granted:one'),
          all => all.every(value => value === found),
        )
        await Promise.all(files.map(({ grants }, index) => grants.set(`granted:new-${index}`, 'new', 60_000)))
        for (const index of files.keys())
          expect(await known(`granted:new-${index}`)).to.deep.equal(['new', 'new', 'new'])
        expect(await known('granted:log-0')).to.deep.equal([undefined, undefined, undefined])
      }
      await Promise.all(files.map(({ writer }) => writer.close()))
      const after = new DatabaseSync(path)
      expect(Object.values(after.prepare('PRAGMA integrity_check').get() ?? {})).to.deep.equal(['ok'])
      after.close()
    })

    it('refuses everything on a damaged file until it is replaced', async () => {
      const path = newFile()
      const file = await openFile(path)
      // More than is kept in memory of it.
      const streams = Array.from({ length: 80 }, (_, index) => `stream-${index}`)
      await Promise.all(streams.map(stream => file.events.append('session', stream, 'x'.repeat(100_000), 0)))
      await file.writer.close()
      const again = await openFile(path)
      // By another process, as it would be: to close the file here would end locks.
      const { execFileSync } = await import('node:child_process')
      const overwrite = `const d = fs.openSync(process.argv[1], 'r+'); fs.writeSync(d, Buffer.alloc(6000000, 171), 0, 6000000, 500000)`
      execFileSync(process.execPath, ['-e', overwrite, path])
      const read = async () => {
        for (const stream of streams) await again.events.after('session', stream, 0)
      }
      const look = () =>
        read().then(
          () => again.writer.trouble,
          () => again.writer.trouble,
        )
      await eventually('it is found', look)
      expect(again.writer.trouble).to.include('damaged')
      await refusalOf(again.grants.set('granted:one', 'value', 60_000))
      expect(String(errorsOf(again)[0]?.['fix'])).to.include('backup')
      rmSync(path)
      await isWell(again)
      await again.grants.set('granted:one', 'value', 60_000)
    })
  })
}
