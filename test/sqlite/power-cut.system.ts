// Tests simulated power cuts of a small program for each `synchronous` setting of SQLite.
// test/slow/sqlite-power-cut.slow.ts tests hosts.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { createSeededRandom } from '../support/seeded-random.ts'
import { createRecorded, cutOften, Disk, needsCompiler, type Recorded, writeFiles } from './support/power-cut.ts'
import { HAS_SQLITE, integrityOf, openDatabase } from './support/sqlite.ts'

const PROGRAM = fileURLToPath(new URL('support/commit-program.ts', import.meta.url))
const SEED = Number(process.env['SEED'] ?? 20_261_123)
const COMMITS = 150
const RUNS = 3
const CUTS = 40

interface Committed {
  readonly id: number
  /** Where the log was when it was acknowledged. */
  readonly at: number
}

async function commitUntilKilled(recorded: Recorded, synchronous: string, killAt: number): Promise<Committed[]> {
  const file = join(recorded.folder, 'rows.db')
  const env: NodeJS.ProcessEnv = { ...process.env, ...recorded.env(killAt), NODE_NO_WARNINGS: '1' }
  const args = [PROGRAM, file, synchronous, env['POWER_CUT_LOG'] ?? '', String(COMMITS)]
  const child = spawn(process.execPath, args, { env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  await once(child, 'close')
  expect(child.signalCode).to.equal('SIGKILL')
  return printed
    .split('\n')
    .slice(0, -1)
    .map(line => line.split(' ').map(Number))
    .map(([id = 0, at = 0]) => ({ id, at }))
}

function idsIn(file: string): Set<unknown> {
  try {
    const database = openDatabase(file)
    const ids = new Set(
      database
        .prepare('SELECT id FROM rows')
        .all()
        .map(({ id }) => id),
    )
    database.close()
    return ids
  } catch {
    return new Set()
  }
}

/** What was found after cuts of a program that commits with this setting. */
async function countCuts(synchronous: string) {
  const random = createSeededRandom(SEED)
  const counts = { damaged: 0, acknowledged: 0, lost: 0 }
  for (let run = 0; run < RUNS; run++) {
    const recorded = createRecorded()
    try {
      const committed = await commitUntilKilled(recorded, synchronous, 100 + random.below(250))
      await cutOften(recorded.records(), CUTS, random, (files, place) => {
        const folder = join(recorded.folder, '../found')
        writeFiles(folder, files)
        const file = join(folder, 'rows.db')
        const acknowledged = committed.filter(({ at }) => at <= place)
        const ids = idsIn(file)
        if (integrityOf(file) !== 'ok') counts.damaged++
        counts.acknowledged += acknowledged.length
        counts.lost += acknowledged.filter(({ id }) => !ids.has(id)).length
      })
    } finally {
      recorded.remove()
    }
  }
  return counts
}

if (HAS_SQLITE) {
  describe('SQLite commits after a power cut', () => {
    before(function () {
      needsCompiler(this)
    })

    it('synchronous = FULL loses no commit', async () => {
      const { damaged, lost, acknowledged } = await countCuts('FULL')
      expect(acknowledged).to.be.greaterThan(COMMITS)
      expect([damaged, lost]).to.deep.equal([0, 0])
    })

    it('synchronous = NORMAL loses commits without corruption', async () => {
      const { damaged, lost } = await countCuts('NORMAL')
      expect(lost).to.be.greaterThan(0)
      expect(damaged).to.equal(0)
    })

    it('synchronous = OFF loses commits and corrupts the file', async () => {
      const { damaged, lost } = await countCuts('OFF')
      expect(lost).to.be.greaterThan(0)
      expect(damaged).to.be.greaterThan(0)
    })
  })
}

describe('simulated disk', () => {
  const random = createSeededRandom(SEED)
  const record = { name: 'a', offset: 0, data: Buffer.alloc(0), end: 0 }
  const contents = (disk: Disk) =>
    new Set(Array.from({ length: 500 }, () => disk.cut(random).get('a')?.toString() ?? 'no file'))

  it('keeps synced data and an arbitrary part of the rest', () => {
    const disk = new Disk()
    disk.do({ ...record, kind: 'write', data: Buffer.from('1111') })
    expect([...contents(disk)].sort()).to.deep.equal(['\0\x0011', '11', '1111', 'no file'])
    disk.do({ ...record, kind: 'sync' })
    expect([...contents(disk)]).to.deep.equal(['1111'])
    disk.do({ ...record, kind: 'write', data: Buffer.from('2222') })
    disk.do({ ...record, kind: 'truncate', offset: 2 })
    const found = contents(disk)
    expect([...found]).to.include.members(['1111', '2222', '11', '22', '1122', '2211'])
  })

  it('keeps or loses a removed file until its folder is synced', () => {
    const disk = new Disk()
    disk.do({ ...record, kind: 'write', data: Buffer.from('1') })
    disk.do({ ...record, kind: 'sync' })
    disk.do({ ...record, kind: 'remove' })
    expect([...contents(disk)].sort()).to.deep.equal(['1', 'no file'])
    disk.do({ ...record, name: '', kind: 'sync' })
    expect([...contents(disk)]).to.deep.equal(['no file'])
  })
})
