// Draws the chart of a run: the cost of a request for mcp-host and other servers, as multiples of Koa.
// The SVG supports light and dark mode and has no fonts or scripts.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { RowResult } from './measure-row.ts'
import { computeMultiples } from './report.ts'
import type { Results } from './results.ts'
import { computeSpread, formatNumber, median, type Spread } from './spread.ts'
import { MAX_OTHER_LOAD } from './targets.ts'

/** Rows in the chart, with their titles. */
const ROW_TITLES: Readonly<Record<string, string>> = {
  'tools/call': 'tools/call, 2026-07-28',
  'tools/call in a session': 'tools/call in a session, 2025-11-25',
  'tools/call of 2025-11-25, stateless': 'tools/call without a session, 2025-11-25',
  'tools/list': 'tools/list of 100 tools, 2026-07-28',
}
const SHOP_TITLE = 'TM Dev Lab v2: 50 users, tools that use Redis and an HTTP API (multiples of mcp-host)'
/** Not an MCP server, but the limit of the runtime. */
const EXCLUDED = ['node:http']

const WIDTH = 776
const [LEFT, RIGHT] = [250, 610]
const [HEADER_HEIGHT, LINE_HEIGHT, GROUP_HEIGHT] = [64, 22, 40]

interface Bar {
  readonly name: string
  readonly ours: boolean
  readonly cost: number
  readonly multiple: Spread
  readonly perSecond?: number
}

const toXml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

function createBars({ measured }: RowResult): Bar[] {
  const [baseline] = measured
  if (baseline === undefined) return []
  return measured
    .filter(({ name }) => !EXCLUDED.includes(name))
    .map(one => ({
      name: one.name.replace(/^ours/, 'mcp-host'),
      ours: one.name.startsWith('ours'),
      cost: computeSpread(one.rounds.map(({ cost }) => cost)).median,
      multiple: computeSpread(computeMultiples(one, baseline)),
    }))
    .sort((one, other) => one.multiple.median - other.multiple.median)
}

function createShopBars(measures: Results['measures']): Bar[] {
  const figures = measures.find(({ name }) => name === 'shop')?.figures ?? []
  const valuesOf = (name: string, what: string) =>
    figures.find(figure => figure.what === `${name}: ${what}`)?.values ?? []
  const names = figures.flatMap(({ what }) =>
    what.endsWith(': CPU for each') ? [what.slice(0, -': CPU for each'.length)] : [],
  )
  const [host = ''] = names
  return names
    .map(name => {
      const costs = valuesOf(name, 'CPU for each')
      const multiple = computeSpread(
        costs.map((cost, index) => cost / (valuesOf(host, 'CPU for each')[index] ?? Number.NaN)),
      )
      const perSecond = median(valuesOf(name, 'requests'))
      return { name: name.replace(/^ours/, 'mcp-host'), ours: name === host, cost: median(costs), multiple, perSecond }
    })
    .sort((one, other) => one.multiple.median - other.multiple.median)
}

const round = (value: number) => Math.round(value * 10) / 10

function drawBar(bar: Bar, y: number, maxMultiple: number): string {
  const toX = (multiple: number) => round(LEFT + ((RIGHT - LEFT) * multiple) / maxMultiple)
  const { median, lowest, highest } = bar.multiple
  const middle = y + 8
  const perSecond = bar.perSecond === undefined ? '' : `, ${Math.round(bar.perSecond).toLocaleString('en')}/s`
  return [
    `<text x="${LEFT - 10}" y="${y + 12}" class="${bar.ours ? 'name end' : 'end'}">${toXml(bar.name)}</text>`,
    `<rect class="${bar.ours ? 'ours' : 'bar'}" x="${LEFT}" y="${y}" width="${round(toX(median) - LEFT)}" height="16" rx="2"/>`,
    `<path class="spread" d="M${toX(lowest)} ${middle}H${toX(highest)}M${toX(lowest)} ${y + 4}v8M${toX(highest)} ${y + 4}v8"/>`,
    `<text x="${Math.max(toX(median), toX(highest)) + 8}" y="${y + 12}" class="note">${formatNumber(median)} x, ${formatNumber(bar.cost)} µs${perSecond}</text>`,
  ].join('\n  ')
}

function drawGroup(title: string, bars: readonly Bar[], top: number): string {
  const maxMultiple = Math.max(...bars.map(({ multiple }) => multiple.highest))
  const lines = bars.map((bar, index) => drawBar(bar, top + 12 + index * LINE_HEIGHT, maxMultiple))
  return [`<text x="10" y="${top}" class="name">${toXml(title)}</text>`, ...lines].join('\n  ')
}

const STYLE = `
    text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #1f2328 }
    .title { font-size: 15px; font-weight: 600 }
    .name { font-weight: 600 }
    .end { text-anchor: end }
    .note { fill: #59636e; font-size: 12px }
    .bar { fill: #afb8c1 }
    .ours { fill: #0969da }
    .spread { stroke: #1f2328; stroke-opacity: .6; fill: none }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .note { fill: #9198a1 }
      .bar { fill: #656c76 }
      .ours { fill: #4493f8 }
      .spread { stroke: #e6edf3 }
    }
  `

/** Returns the chart as SVG. Throws if the run has none of the rows in the chart. */
export function drawChart({ rows, measures, machine, date, commit, rounds, method }: Results): string {
  const groups = Object.entries(ROW_TITLES)
    .flatMap(([name, title]) =>
      rows
        .filter(({ row }) => row === name)
        .map(result => ({ title, bars: createBars(result), others: result.others ?? 0 })),
    )
    .concat({ title: SHOP_TITLE, bars: createShopBars(measures), others: 0 })
    .filter(({ bars }) => bars.length > 1)
  if (groups.length === 0) throw new Error(`no chart: the run has none of ${Object.keys(ROW_TITLES).join('; ')}`)
  let top = HEADER_HEIGHT
  const parts = groups.map(({ title, bars }) => {
    const part = drawGroup(title, bars, top + 14)
    top += GROUP_HEIGHT + bars.length * LINE_HEIGHT
    return part
  })
  const unit = method.cpuTime ? 'CPU time' : 'wall-clock time'
  const summary = groups.map(
    ({ title, bars }) =>
      `${title}: ${bars.map(({ name, multiple }) => `${name} ${formatNumber(multiple.median)}`).join(', ')}`,
  )
  const others = Math.max(...groups.map(group => group.others))
  const busy =
    others > MAX_OTHER_LOAD ? `; other processes used up to ${Math.round(others * 100)} % of the CPU time` : ''
  const source = `${machine.cpu}, ${machine.cores} cores, Node ${machine.node.slice(1)}; ${date.slice(0, 10)}, ${commit?.slice(0, 7) ?? 'no commit'}${busy}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${top + 48}" role="img" aria-labelledby="title desc">
  <title id="title">Cost per request, as multiples of idiomatic Koa</title>
  <desc id="desc">${toXml(summary.join('. '))}.</desc>
  <style>${STYLE}</style>
  <text x="10" y="24" class="title">Cost per request</text>
  <text x="10" y="44" class="note">${unit} of the server per request, as multiples of idiomatic Koa with a constant response; lower is better</text>
  ${parts.join('\n  ')}
  <text x="10" y="${top + 18}" class="note">Median, lowest and highest of ${rounds} alternating rounds.</text>
  <text x="10" y="${top + 36}" class="note">${toXml(source)}</text>
</svg>
`
}

/** Writes docs/pictures/performance.svg and returns its path. */
export function writeChart(results: Results): string {
  const file = fileURLToPath(new URL('../docs/pictures/performance.svg', import.meta.url))
  writeFileSync(file, drawChart(results))
  return file
}
