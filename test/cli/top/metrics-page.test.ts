// The reader of metrics pages: against what prom-client writes, against anything at all, and its arithmetic.
import { expect } from 'chai'
import fc from 'fast-check'
import { Counter, Registry } from 'prom-client'
import {
  grown,
  grownHistogram,
  histogramsBy,
  quantileOf,
  resolutionOf,
  sum,
} from '../../../cli/metrics-page/figures.ts'
import { MOST_SAMPLES, MOST_SKIPPED, parsePage } from '../../../cli/metrics-page/parse-page.ts'
import { caseCount } from '../../support/thorough.ts'

const one = (line: string) => [...parsePage(line).samples.values()].flat()

describe('the reader of a metrics page', () => {
  it('reads values, labels and their escapes, and passes over times and exemplars', () => {
    expect(one('a 1')).to.deep.equal([{ labels: {}, value: 1 }])
    expect(one('a{} 1.5e-3 1795222130007')[0]?.value).to.equal(0.0015)
    expect(one('a{x="1",} +Inf')[0]?.value).to.equal(Infinity)
    expect(one('a{x="1"}-Inf')[0]?.value).to.equal(-Infinity)
    expect(one('a NaN')[0]?.value).to.be.NaN
    expect({ ...one('a{x="\\\\ \\" \\n } 2", y = "é"} 1 # {trace_id="b"} 0.5')[0]?.labels }).to.deep.equal({
      x: '\\ " \n } 2',
      y: 'é',
    })
    expect(Object.entries(one('a{__proto__="x"} 1')[0]?.labels ?? {})).to.deep.equal([['__proto__', 'x']])
  })

  for (const line of ['a', 'a b', 'a{x=1} 1', 'a{x="1} 1', 'a{x="1"', '{"a"} 1', '1a 1', 'a 1x', '<html>', '{"a":1}']) {
    it(`passes over ${line}, and counts it`, () => {
      const { samples, skipped } = parsePage(`${line}\nb 1\n`)
      expect([samples.size, skipped]).to.deep.equal([1, 1])
    })
  }

  it('reads whatever prom-client writes', async () => {
    const values = fc.uniqueArray(
      fc.tuple(fc.string({ unit: 'binary' }), fc.double({ min: 0, noNaN: true, noDefaultInfinity: true })),
      {
        selector: ([label]) => label,
        maxLength: 8,
      },
    )
    await fc.assert(
      fc.asyncProperty(values, async rows => {
        const registers = [new Registry()]
        const counter = new Counter({ name: 'a_total', help: 'help\n\\', labelNames: ['x'], registers })
        for (const [x, value] of rows) counter.inc({ x }, value)
        const page = parsePage((await registers[0]?.metrics()) ?? '')
        const read = (page.samples.get('a_total') ?? []).map(({ labels, value }) => [labels['x'], value])
        expect(read).to.deep.equal(rows.map(([x, value]) => [x, value]))
        expect(page.skipped).to.equal(0)
      }),
      { numRuns: caseCount(200, 40) },
    )
  })

  for (const [what, text] of [
    ['line breaks', '\n'.repeat(32 * 1024 * 1024)],
    ['comments', '#\n'.repeat(16 * 1024 * 1024)],
    ['lines that are no samples', '1\n'.repeat(16 * 1024 * 1024)],
  ] as const) {
    it(`reads no more than a part of a page of ${what}`, () => {
      const { samples, skipped } = parsePage(`a 1\n${text}b 1`)
      expect([[...samples.keys()], skipped]).to.deep.equal([['a'], MOST_SKIPPED])
    })
  }

  it('keeps as many samples as it may, and counts those behind them', () => {
    const { samples, skipped } = parsePage('a 1\n'.repeat(MOST_SAMPLES + 3))
    expect([samples.get('a')?.length, skipped]).to.deep.equal([MOST_SAMPLES, 3])
  })

  it('takes any text without an error', () => {
    const line = fc
      .tuple(fc.constantFrom('a', 'a{', 'a{x="', '#', ''), fc.string({ unit: 'binary' }))
      .map(parts => parts.join(''))
    fc.assert(
      fc.property(fc.array(line), lines => parsePage(lines.join('\n')).skipped <= lines.join('\n').split('\n').length),
    )
  })
})

describe('histograms of a page', () => {
  const page = parsePage(
    [
      ...['0.1 50', '1 90', '+Inf 100'].map(text => text.replace(/^(\S+) (\d+)$/, 't_bucket{tool="a",le="$1"} $2')),
      't_sum{tool="a"} 30',
      't_count{tool="a"} 100',
      't_count{tool="none"} 0',
      'other 1',
    ].join('\n'),
  )
  const all = histogramsBy(page, 't', ({ tool }) => tool)
  const [histogram] = all.values()

  it('have interpolated quantiles, except in the first bucket', () => {
    if (!histogram) throw new Error('no histogram')
    expect(quantileOf(histogram, 0.25)).to.equal(0.1)
    expect(resolutionOf(histogram)).to.equal(0.1)
    expect(quantileOf(histogram, 0.7)).to.be.closeTo(0.55, 1e-9)
    expect(quantileOf(histogram, 0.99)).to.equal(1)
    expect(quantileOf({ count: 0, sum: 0, buckets: new Map([[1, 0]]) }, 0.5)).to.equal(undefined)
    expect(quantileOf({ count: 0, sum: 0, buckets: new Map() }, 0.5)).to.equal(undefined)
  })

  it('are undefined, not zero, where the page has them not', () => {
    expect(sum(page, 'nothing')).to.equal(undefined)
    expect(sum(page, 'other')).to.equal(1)
  })

  it('never grow by less than nothing', () => {
    const counter = fc.double({ min: 0, noNaN: true, noDefaultInfinity: true })
    fc.assert(fc.property(counter, counter, (before, now) => grown(before, now) >= 0))
    if (!histogram) throw new Error('no histogram')
    const before = { count: 10, sum: 99, buckets: new Map([[0.1, 80]]) }
    const { count, sum: seconds, buckets } = grownHistogram(before, histogram)
    expect([count, seconds, ...buckets.values()]).to.deep.equal([90, 0, 0, 90, 100])
    expect(grownHistogram({ ...before, count: 1_000 }, histogram)).to.equal(histogram)
  })
})
