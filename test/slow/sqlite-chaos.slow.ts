// Tests store-sqlite under load while single workers and all processes are killed.
// `SEED=7`, `KILLS=40` and `WORKERS=4` change the run.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { describeReport, runChaos } from '../sqlite/chaos/chaos.ts'
import { HAS_SQLITE } from '../sqlite/support/sqlite.ts'

const SEED = Number(process.env['SEED'] ?? 20_261_123)
const KILLS = Number(process.env['KILLS'] ?? 10)
const WORKERS = Number(process.env['WORKERS'] ?? 3)

if (HAS_SQLITE) {
  describe(`store-sqlite: ${WORKERS} workers under load`, function () {
    this.timeout(600_000)
    const folder = mkdtempSync(join(tmpdir(), 'sqlite-chaos-'))
    after(() => rmSync(folder, { recursive: true, force: true }))

    it(`${KILLS} kills lose nothing and duplicate nothing`, async () => {
      const env: Record<string, string> = { STORE_FILE: join(folder, 'host.db') }
      if (process.env['REDIS_URL'] !== undefined) env['REDIS_URL'] = process.env['REDIS_URL']
      const report = await runChaos({ workers: WORKERS, kills: KILLS, seed: SEED, env })
      console.log(`      seed ${SEED}, ${describeReport(report)}`)
      expect(report.faults, report.output).to.deep.equal([])
    })
  })
}
