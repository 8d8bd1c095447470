// Several processes on one SQLite file: shared writes, exclusion of other hosts, kills and live backups.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'chai'
import { StartError } from '../../../core/plugin.ts'
import { bundledFile } from '../../support/compiled.ts'
import { eventually } from '../../support/eventually.ts'
import { closeFiles, hasSqlite, newFile, openFile } from './support/sqlite-files.ts'

const PROGRAM = bundledFile('test/plugins/store-sqlite/support/writing-process.ts')
const KILLS = 2
/** The last events of each stream; a file keeps a thousand. */
const LOOKED_AT = 200
const children = new Set<ChildProcess>()

interface WritingProcess {
  readonly child: ChildProcess
  /** The last number of each stream that it was told is stored. */
  readonly told: ReadonlyMap<string, number>
  readonly count: number
  readonly failure: string | undefined
}

function startWriting(file: string, name: string, hostId: string): WritingProcess {
  const child = fork(PROGRAM, [file, name, hostId], { execArgv: [] })
  children.add(child)
  const told = new Map<string, number>()
  let count = 0
  let failure: string | undefined
  child.on('message', (message: { stream?: string; seq?: number; failed?: string }) => {
    failure = message.failed ?? failure
    if (message.stream === undefined) return
    count++
    told.set(message.stream, message.seq ?? 0)
  })
  return {
    child,
    told,
    get count() {
      return count
    },
    get failure() {
      return failure
    },
  }
}

async function kill({ child }: WritingProcess) {
  const ended = once(child, 'close')
  child.kill('SIGKILL')
  await ended
  children.delete(child)
}

const writes = (writing: WritingProcess, count: number) =>
  eventually(
    `it has written ${count}`,
    () => writing.failure ?? writing.count,
    found => typeof found === 'number' && found >= count,
  )

if (hasSqlite) {
  describe('store-sqlite: several processes', () => {
    after(async () => {
      for (const child of children) child.kill('SIGKILL')
      await closeFiles()
    })

    it(`keep every acknowledged event through ${KILLS} kills`, async () => {
      const file = newFile()
      const hostId = 'one host'
      const beside = await openFile(file, { hostId })
      for (let round = 0; round < KILLS; round++) {
        const both = ['a', 'b'].map(name => startWriting(file, `${name}${round}`, hostId))
        for (const writing of both) await writes(writing, 300)
        const [victim, survivor] = both as [WritingProcess, WritingProcess]
        await kill(victim)
        await writes(survivor, survivor.count + 100)
        await kill(survivor)
        for (const [index, { told }] of both.entries()) {
          const name = `${'ab'[index]}${round}`
          for (const [stream, seq] of told) {
            const from = Math.max(0, seq - LOOKED_AT)
            const found = (await beside.events.after(name, stream, from)) ?? []
            expect(found.length).to.be.at.least(seq - from)
            for (const event of found) expect(event.message).to.equal(`${name} ${stream} ${event.seq}`)
          }
        }
      }
      await beside.writer.close()
      const { DatabaseSync } = await import('node:sqlite')
      const db = new DatabaseSync(file)
      expect(Object.values(db.prepare('PRAGMA integrity_check').get() ?? {})).to.deep.equal(['ok'])
      db.close()
    })

    it('of another host are refused until the last process of the first ends', async () => {
      const file = newFile()
      const theirs = startWriting(file, 'theirs', 'their host')
      await writes(theirs, 10)
      const refused = await openFile(file, { hostId: 'our host' }).catch((error: unknown) => error)
      expect(refused).to.be.instanceOf(StartError)
      const { message } = refused as StartError
      expect(message).to.include(file).and.to.include('another host').and.to.include('their host')
      const more = await openFile(file, { hostId: 'their host' })
      await kill(theirs)
      expect(await openFile(file, { hostId: 'our host' }).catch(error => error.constructor.name)).to.equal('StartError')
      await more.writer.close()
      const ours = await openFile(file, { hostId: 'our host' })
      expect((await ours.events.shared?.state('theirs', '0'))?.last).to.be.at.least(theirs.told.get('0') ?? 1)
      const late = await openFile(file, { hostId: 'their host' }).catch((error: Error) => error.message)
      expect(late).to.include('our host')
    })

    it('can be backed up while they write, as documented', async () => {
      const file = newFile()
      const writing = startWriting(file, 'a', 'one host')
      await writes(writing, 200)
      const { DatabaseSync } = await import('node:sqlite')
      const shell = new DatabaseSync(file)
      const before = new Map(writing.told)
      shell.exec(`VACUUM INTO '${file}.backup'`)
      shell.close()
      await writes(writing, writing.count + 100)
      await kill(writing)
      const copy = await openFile(`${file}.backup`, { hostId: 'another' })
      for (const [stream, seq] of before) {
        expect((await copy.events.shared?.state('a', stream))?.last).to.be.at.least(seq)
      }
    })

    it('that ended are not alive, so that their requests can run again after the next start', async () => {
      const { BOUNDS_OF_SESSIONS, recordOf } = await import('./support/records.ts')
      const file = newFile()
      const before = await openFile(file, { hostId: 'before' })
      await before.sessions.create('digest', recordOf(before.node), BOUNDS_OF_SESSIONS)
      await before.sessions.enter('digest', { version: 1, requests: [7], from: [] }, BOUNDS_OF_SESSIONS)
      await before.writer.close()
      const after = await openFile(file, { hostId: 'after' })
      const from = [before.node]
      const entered = await after.sessions.enter('digest', { version: 0, requests: [7], from }, BOUNDS_OF_SESSIONS)
      expect([entered.kind, 'record' in entered && entered.record?.home]).to.deep.equal(['entered', before.node])
    })
  })
}
