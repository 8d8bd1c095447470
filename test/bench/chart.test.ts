// Tests the chart and tables of a benchmark run with fixed results, without a server.
import { expect } from 'chai'
import { drawChart } from '../../bench/chart.ts'
import type { RowResult } from '../../bench/measure-row.ts'
import { formatMeasure, formatRows, formatTargets } from '../../bench/report.ts'
import type { Results } from '../../bench/results.ts'
import { checkTarget } from '../../bench/targets.ts'

const measured = (name: string, costs: readonly number[]) => ({
  name,
  rounds: costs.map(cost => ({ requests: 1_000, requestsPerSecond: 10_000, cost, warmUpCosts: [] })),
  peakRss: 80e6,
})

const row: RowResult = {
  row: 'tools/call',
  measured: [
    measured('Koa', [20, 40]),
    measured('node:http', [10, 20]),
    measured('a peer, <1> & "more"', [100, 240]),
    measured('ours, 1 tool', [22, 42]),
  ],
  targets: [
    checkTarget('ours, 1 tool / Koa <= 1.1', [1.1, 1.05], '<=', 1.1),
    checkTarget('other / Koa >= 9', [], '>=', 9),
  ],
  yardstick: true,
  absent: ['a server'],
}

const results: Results = {
  date: '2026-11-23T01:02:03.000Z',
  commit: '0123456789abcdef',
  machine: { cpu: 'A processor', cores: 2, memory: 8e9, node: 'v20.20.2', platform: 'linux x64' },
  method: { pinned: true, cpuTime: true },
  quick: false,
  seconds: 3,
  rounds: 2,
  rows: [row],
  measures: [],
}

describe('Benchmark chart', () => {
  const svg = drawChart(results)

  it('has a bar for each server in order of cost, without the runtime limit', () => {
    const names = [...svg.matchAll(/class="(?:name )?end">([^<]+)</g)].map(([, name]) => name)
    expect(names).to.deep.equal(['Koa', 'mcp-host, 1 tool', 'a peer, &lt;1> &amp; &quot;more&quot;'])
    expect(svg.match(/class="ours"/g)).to.have.length(1)
  })

  it('compares servers per round and shows the cost of each', () => {
    // 100 / 20 and 240 / 40, not the medians divided.
    expect(svg).to.include('5.50 x, 170 µs')
    expect(svg).to.include('1.00 x, 30.0 µs')
  })

  it('supports light and dark mode and screen readers without external resources', () => {
    expect(svg).to.include('prefers-color-scheme: dark')
    expect(svg).to.match(/role="img" aria-labelledby="title desc"[\s\S]*<title id="title">[\s\S]*<desc id="desc">/)
    expect(svg).not.to.match(/<script|<image|@import|@font-face|href=|url\(/)
  })

  it('names the source of its figures', () => {
    expect(svg).to.include('A processor, 2 cores, Node 20.20.2; 2026-11-23, 0123456<')
    const busy = drawChart({ ...results, rows: [{ ...row, others: 0.5 }] })
    expect(busy).to.include('0123456; other processes used up to 50 % of the CPU time<')
  })

  it('is well-formed XML', () => {
    const open = [...svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)].reduce<string[]>((path, [, closes, name, empty]) => {
      if (closes) expect(path.pop()).to.equal(name)
      else if (!empty) path.push(name ?? '')
      return path
    }, [])
    expect(open).to.deep.equal([])
    expect(svg).not.to.match(/NaN|undefined|Infinity/)
  })

  it('has the public workload with requests per second, as multiples of this host', () => {
    const figures = [
      { what: 'ours: requests', unit: '/s', values: [4000, 4200] },
      { what: 'ours: CPU for each', unit: 'µs', values: [250, 200] },
      { what: 'a peer: requests', unit: '/s', values: [1000, 1000] },
      { what: 'a peer: CPU for each', unit: 'µs', values: [1000, 1000] },
    ]
    const shop = drawChart({ ...results, measures: [{ name: 'shop', figures, targets: [], notes: [], others: 0 }] })
    expect(shop).to.include('TM Dev Lab v2')
    // 1000 / 250 and 1000 / 200.
    expect(shop).to.include('4.50 x, 1,000 µs, 1,000/s')
    expect(shop).to.include('1.00 x, 225 µs, 4,100/s')
  })

  it('is not drawn without results', () => {
    expect(() => drawChart({ ...results, rows: [{ ...row, row: 'another' }] })).to.throw(
      'no chart: the run has none of',
    )
  })
})

describe('Benchmark report', () => {
  it('shows cost ratios with spread and names missing servers', () => {
    const lines = formatRows([row]).split('\n')
    expect(lines[4]).to.match(
      /ours, 1 tool +tools\/call +32\.0 \(22\.0 \.\. 42\.0\) +1\.08 \(1\.05 \.\. 1\.10\) +10,000 +80 MB/,
    )
    expect(lines.at(-1)).to.equal('tools/call: a server is not installed')
  })

  it('lists every target with its result', () => {
    const measure = {
      name: 'start',
      figures: [{ what: 'it listens', unit: 'ms', values: [300, 310, 305] }],
      targets: [checkTarget('it listens within 250 ms', [300, 310, 305], '<=', 250)],
      notes: ['a note'],
      others: 0.42,
    }
    const [, met, unmeasured, missed] = formatTargets([row], [measure]).split('\n')
    expect(met).to.match(/^tools\/call +ours, 1 tool \/ Koa <= 1\.1 +1\.08 \(1\.05 \.\. 1\.10\) +met$/)
    expect(unmeasured).to.match(/not measured$/)
    expect(missed).to.match(/^start +it listens within 250 ms +305 \(300 \.\. 310\) +MISSED$/)
    expect(formatMeasure(measure).split('\n')).to.deep.equal([
      'start',
      '  it listens  305 (300 .. 310) ms',
      '  a note',
      '  other processes used 42 % of the CPU time',
    ])
  })
})
