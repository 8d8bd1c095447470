// Tests simulated power cuts of store-sqlite: acknowledged data survives, and ended sessions and streams stay ended.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { closeFiles, openFile } from '../plugins/store-sqlite/support/sqlite-files.ts'
import { bundledFile } from '../support/compiled.ts'
import { createSeededRandom } from '../support/seeded-random.ts'
import { type Acknowledged, findLosses } from './support/acknowledged.ts'
import { createRecorded, cutOften, needsCompiler, type Recorded, writeFiles } from './support/power-cut.ts'
import { HAS_SQLITE, integrityOf } from './support/sqlite.ts'

const PROGRAM = bundledFile('test/sqlite/support/store-program.ts')
const SEED = Number(process.env['SEED'] ?? 20_261_123)
const RUNS = 2
const CUTS = Number(process.env['CUTS'] ?? 10)

async function workUntilKilled(recorded: Recorded, killAt: number): Promise<Acknowledged[]> {
  const env: NodeJS.ProcessEnv = { ...process.env, ...recorded.env(killAt) }
  const args = [PROGRAM, join(recorded.folder, 'host.db'), env['POWER_CUT_LOG'] ?? '']
  // A file: what it says may be more than fits into a pipe that is not read.
  const told = join(recorded.folder, '../told')
  const output = openSync(told, 'w')
  const child = spawn(process.execPath, args, { env, detached: true, stdio: ['ignore', output, 'inherit'] })
  await once(child, 'close')
  closeSync(output)
  expect(child.signalCode).to.equal('SIGKILL')
  return readFileSync(told, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line))
}

if (HAS_SQLITE) {
  describe('store-sqlite after a power cut', () => {
    before(function () {
      needsCompiler(this)
    })
    after(closeFiles)

    it('loses no acknowledged data and restores nothing that ended', async () => {
      const random = createSeededRandom(SEED)
      const counts = { damaged: 0, checked: 0 }
      const lost: string[] = []
      for (let run = 0; run < RUNS; run++) {
        const recorded = createRecorded()
        const told = await workUntilKilled(recorded, 1_000 + random.below(2_000))
        await cutOften(recorded.records(), CUTS, random, async (files, place) => {
          const folder = join(recorded.folder, '../found')
          writeFiles(folder, files)
          const before = told.filter(({ at }) => at <= place)
          const file = join(folder, 'host.db')
          const opened = await openFile(file)
          const losses = await findLosses(opened, before)
          await opened.writer.close()
          counts.checked += losses.checked
          lost.push(...losses.lost.map(one => `run ${run}, cut at ${place}: ${one}`))
          if (integrityOf(file) !== 'ok') counts.damaged++
        })
        recorded.remove()
      }
      expect(lost.slice(0, 20)).to.deep.equal([])
      expect(counts.damaged).to.equal(0)
      expect(counts.checked).to.be.greaterThan(1_000)
    })
  })
}
