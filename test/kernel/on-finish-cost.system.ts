// Tests the cost of call records: functions that ran (counted by V8) and bytes allocated per call.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect } from 'chai'
import type { ObserveCost } from '../fixtures/observe-cost-host.ts'
import { compiledFile } from '../support/compiled.ts'

/** What an observer that reads nothing may add to a call, bytes; a call has some thirty thousand, the client's part too. */
const MOST_ADDED = 4_000
/** What two runs of the same may differ by. */
const NOISE = 1_500
/** A young generation that holds what a chunk of calls allocates, MB: nothing is collected while it is counted. */
const YOUNG = 128

async function costWith(observer: 'nobody' | 'idle'): Promise<ObserveCost> {
  // Code that is optimized in a thread and taken once the counting has begun is not counted.
  const flags = [
    '--expose-gc',
    '--no-concurrent-recompilation',
    `--min-semi-space-size=${YOUNG}`,
    `--max-semi-space-size=${YOUNG}`,
  ]
  const args = [...flags, compiledFile('test/fixtures/observe-cost-host.ts'), observer]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return JSON.parse(stdout)
}

const median = (values: readonly number[]): number =>
  values.toSorted((one, other) => one - other)[values.length >> 1] ?? NaN

/** Of the files that make records, the functions that ran. */
const ranIn = ({ calls }: ObserveCost) =>
  Object.fromEntries(
    Object.entries(calls).filter(([name, count]) => count > 0 && /^(?:observe|call-record) /.test(name)),
  )

describe('Cost of call records', () => {
  let nobody: ObserveCost
  let idle: ObserveCost
  before(async () => {
    ;[nobody, idle] = await Promise.all([costWith('nobody'), costWith('idle')])
  })

  it('runs no record code without observers', () => {
    const { counted } = idle
    expect(ranIn(nobody)).to.deep.equal({})
    expect(ranIn(idle), 'the counter counts').to.include({ 'call-record RequestRecord': counted })
  })

  it('allocates few bytes per call with an observer and computes fields on access only', () => {
    const [without, withOne] = [median(nobody.bytes), median(idle.bytes)]
    const added = withOne - without
    expect(added).to.be.within(-NOISE, MOST_ADDED)
    const computed = Object.keys(ranIn(idle)).filter(name => name.startsWith('call-record get '))
    expect(computed).to.deep.equal([])
  })
})
