// Tests the evaluation of benchmark rounds: spread, target verdicts and exit code, without a server.
import { expect } from 'chai'
import { isSelected, readOptions } from '../../bench/options.ts'
import { readMachineCpuSeconds } from '../../bench/other-load.ts'
import { ratio } from '../../bench/row.ts'
import { computeSpread, formatSpread, median, percentile } from '../../bench/spread.ts'
import { adjustForOtherLoad, checkTarget, checkTimeTarget, computeExitCode } from '../../bench/targets.ts'

describe('Benchmark evaluation', () => {
  it('shows the median of the rounds and their spread', () => {
    expect(computeSpread([3, 1, 2])).to.deep.equal({ median: 2, lowest: 1, highest: 3 })
    expect(median([4, 1, 2, 3])).to.equal(2.5)
    expect(median([])).to.be.NaN
    expect(formatSpread(computeSpread([1.126, 1.1, 1.2]))).to.equal('1.13 (1.10 .. 1.20)')
    expect(formatSpread(computeSpread([12_345.6]))).to.equal('12,346 (12,346 .. 12,346)')
  })

  it('computes percentiles by nearest rank', () => {
    const thousand = Array.from({ length: 1_000 }, (_, index) => 1_000 - index)
    expect([50, 99, 99.9, 100].map(hundredths => percentile(thousand, hundredths))).to.deep.equal([
      500, 990, 999, 1_000,
    ])
    expect(percentile([7], 0)).to.equal(7)
  })

  it('reports a missed target only if every round misses it', () => {
    expect(checkTarget('at most 2', [1, 2, 9], '<=', 2).verdict).to.equal('met')
    expect(checkTarget('at most 2', [1, 3, 3], '<=', 2).verdict).to.equal('unclear')
    expect(checkTarget('at most 2', [3, 3, 4], '<=', 2).verdict).to.equal('missed')
    expect(checkTarget('at least 5', [5, 6, 1], '>=', 5).verdict).to.equal('met')
    expect(checkTarget('at least 5', [4, 4, 6], '>=', 5).verdict).to.equal('unclear')
    expect(checkTarget('at least 5', [4], '>=', 5).verdict).to.equal('missed')
  })

  it('gives no verdict without measurements', () => {
    expect(checkTarget('nothing', [], '<=', 1)).to.include({ verdict: 'unmeasured', found: undefined })
    expect(checkTarget('a server was missing', [1, Number.NaN], '<=', 1).verdict).to.equal('unmeasured')
    const { value, relation, limit } = ratio('ours', 'Koa', '<=', 1.1)
    const costs = new Map([
      ['ours', 22],
      ['Koa', 20],
    ])
    expect([value(name => costs.get(name) ?? Number.NaN), relation, limit]).to.deep.equal([1.1, '<=', 1.1])
  })

  it('exits with 1 only for a clearly missed target', () => {
    const [met, unclear, missed] = [[1], [1, 3, 3], [3]].map(values => checkTarget('at most 2', values, '<=', 2))
    const unmeasured = checkTarget('at most 2', [], '<=', 2)
    if (met === undefined || unclear === undefined || missed === undefined) throw new Error('not formatTarget')
    expect(computeExitCode([])).to.equal(0)
    expect(computeExitCode([met, unclear, unmeasured])).to.equal(0)
    expect(computeExitCode([met, missed])).to.equal(1)
  })

  it('excuses a missed time target if other processes used the CPU', () => {
    const slow = checkTimeTarget('within 250 ms', [900], '<=', 250)
    expect(adjustForOtherLoad(0.05, slow).verdict).to.equal('missed')
    expect(adjustForOtherLoad(undefined, slow).verdict).to.equal('missed')
    expect(adjustForOtherLoad(0.5, slow).verdict).to.equal('busy')
    expect(computeExitCode([adjustForOtherLoad(0.5, slow)])).to.equal(0)
    expect(adjustForOtherLoad(0.5, checkTarget('bytes', [900], '<=', 250)).verdict).to.equal('missed')
    expect(adjustForOtherLoad(0.5, checkTimeTarget('within 250 ms', [90], '<=', 250)).verdict).to.equal('met')
  })

  it('counts CPU time without idle and I/O wait', () => {
    expect(readMachineCpuSeconds('cpu  100 20 30 9999 777 3 4 5 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0')).to.be.closeTo(
      1.62,
      1e-9,
    )
  })

  it('parses options and reports invalid values', () => {
    expect(readOptions([])).to.include({ seconds: 3, rounds: 3, sessions: 100_000, quick: false, chart: false })
    expect(readOptions(['--quick'])).to.include({ seconds: 1, rounds: 3, quick: true })
    expect(readOptions(['--quick', '--rounds', '7']).rounds).to.equal(7)
    expect(() => readOptions(['--rounds', 'many'])).to.throw('--rounds many: must be an integer of at least 1')
    expect(() => readOptions(['--from', 'x.json'])).to.throw('--from x.json: requires --chart')
  })

  it('selects benchmarks by part of the name', () => {
    expect(isSelected([], 'tools/call Koa')).to.equal(true)
    expect(isSelected(['tail', 'list'], 'tools/list ours')).to.equal(true)
    expect(isSelected(['tail'], 'tools/list ours')).to.equal(false)
  })
})
