// Tests three nodes under load with two failures of each kind of chaos; `npm run chaos` runs two minutes of each.
// `SEED=7` repeats a run.
import { expect } from 'chai'
import { describeReport, runChaos } from '../cluster/chaos/chaos.ts'
import { DESCRIPTIONS } from '../cluster/chaos/failure-kinds.ts'
import { needsDeployment } from '../cluster/support/balanced-deployment.ts'
import { concurrentIt } from '../support/concurrent-it.ts'

const SECONDS = 3
const FAILURES = 2
const SEED = Number(process.env['SEED'] ?? 20_261_121)

describe('chaos: three nodes behind nginx under load', () => {
  before(function () {
    needsDeployment(this)
  })

  // Each has nodes, nginx and Redis of its own, and much of its time nothing happens but that clients wait.
  const it = concurrentIt({ atOnce: 3 })
  for (const kinds of [['forget'], ['kill'], ['pause', 'roll', 'restart', 'cut']] as const) {
    const lost = kinds[0] === 'forget' ? 'reports lost data' : 'loses nothing'
    it(`${kinds.map(kind => DESCRIPTIONS[kind]).join('; ')}: ${lost}, no duplicates`, async () => {
      const failures = FAILURES * kinds.length
      const report = await runChaos({ kinds, seconds: SECONDS, failures, seed: SEED })
      console.log(`      seed ${SEED}, ${describeReport(report)}`)
      expect(report.failures).to.be.at.least(failures)
      expect(report.faults, report.output).to.deep.equal([])
    })
  }
})
