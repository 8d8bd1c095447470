// Faults of the SQLite file at run time: 503 with Retry-After, one log message, and automatic recovery.
import { renameSync, rmSync, writeFileSync } from 'node:fs'
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
  describe('store-sqlite: run-time faults', () => {
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
        expect(String(told[0]?.['fix'])).to.include('free space')
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
      ['the file is deleted', (path: string) => rmSync(path)],
      // In one step: while the files of a folder are deleted one after the other, a check can find it read-only.
      ['the folder of the file is renamed', (path: string) => renameSync(dirname(path), `${dirname(path)}.gone`)],
      ['the file is replaced by a backup', (path: string) => renameSync(`${path}.backup`, path)],
      ['the lock is deleted', (path: string) => rmSync(`${path}.lock`)],
    ] as const) {
      it(`refuses everything after ${what}, until the host restarts`, async () => {
        const path = newFile()
        const files = [await openFile(path), await openFile(path)]
        const [file] = files as [OpenedFile, OpenedFile]
        await file.grants.set('granted:one', 'kept', 60_000)
        const { DatabaseSync } = await import('node:sqlite')
        const shell = new DatabaseSync(path)
        shell.exec(`VACUUM INTO '${path}.backup'`)
        shell.close()
        act(path)
        for (const one of files) {
          await isInTrouble(one, 'deleted or replaced')
          await refusalOf(one.grants.get('granted:one'))
          expect(String(errorsOf(one)[0]?.['fix'])).to.include('restart')
          expect(errorsOf(one)).to.have.length(1)
        }
        for (const one of files) await one.writer.close()
        const again = await openFile(path)
        await again.grants.set('granted:two', 'value', 60_000)
        expect(await again.grants.get('granted:two')).to.equal('value')
      })
    }

    it('continues when a renamed file is back', async () => {
      const path = newFile()
      const file = await openFile(path)
      await file.grants.set('granted:one', 'kept', 60_000)
      renameSync(path, `${path}.old`)
      await isInTrouble(file, 'deleted or replaced')
      renameSync(`${path}.old`, path)
      await isWell(file)
      expect(await file.grants.get('granted:one')).to.equal('kept')
    })

    it('refuses everything on a damaged file', async () => {
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
    })
  })
}
