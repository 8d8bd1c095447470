// Tests `npm run hostile` with planted faults: each is detected. CI runs it against a host without faults.
import { expect } from 'chai'
import { PLANTS } from '../hostile/attacked-settings.ts'
import { type HostileReport, runHostile } from '../hostile/hostile.ts'
import { verdictsOf } from '../hostile/report.ts'
import { FAULT_KINDS } from '../hostile/tally.ts'
import { concurrentIt } from '../support/concurrent-it.ts'

const SEED = 11
/** Attacks that are over soon; one calls as others do, and one looks where nobody may. */
const QUICK = ['pipelining-patient', 'victims', 'tokens', 'documents'] as const
/** For hosts that do not answer and do not come to rest. */
const LIMITS = { answer: 3_000, settle: 8_000 }

const failed = (report: HostileReport) => verdictsOf(report).filter(({ holds }) => !holds)

describe('npm run hostile', () => {
  // Each has a host of its own, and waits most of the time until what was begun there has ended.
  const planted = concurrentIt()

  planted('detects every planted fault except a crash, each by its own verdict', async () => {
    const plants = PLANTS.filter(name => name !== 'crash')
    const report = await runHostile({ seconds: 5, seed: SEED, only: QUICK, plants, limits: LIMITS })
    const seen = failed(report)
    const kinds = ['serverError', 'internal', 'secret', 'unanswered', 'stall', 'steady', 'errorLine'] as const
    expect(seen.map(({ name }) => name)).to.include.members([
      ...kinds.map(kind => FAULT_KINDS[kind]),
      'no session, stream, listener, call or connection left',
      'descriptors back to what they were',
      'timers back to what they were',
      'heap back to baseline (within 12.0 MB)',
      'nothing runs when it is told to stop',
    ])
    const stalled = report.tally.faults.find(({ kind }) => kind === 'stall')
    expect(stalled?.rounds.join()).to.match(/[a-z-]+:\d+/)
  })

  planted('detects a crash and the rounds that ran at that time', async () => {
    const report = await runHostile({ seconds: 2, seed: SEED, only: QUICK, plants: ['crash'], limits: LIMITS })
    expect(failed(report).map(({ name }) => name)).to.include(FAULT_KINDS.crash)
    const [crash] = report.tally.faults.filter(({ kind }) => kind === 'crash')
    expect(crash?.text).to.include('planted: crash')
    expect(crash?.rounds.join()).to.match(/[a-z-]+:\d+/)
  })
})
