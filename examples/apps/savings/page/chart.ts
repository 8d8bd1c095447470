// Draws a bar chart in SVG with axes and a legend: the deposits of each year, and the interest or loss.

export interface Year {
  year: number
  paid: number
  total: number
}

const SVG = 'http://www.w3.org/2000/svg'
const WIDTH = 480
const HEIGHT = 280
/** The area of the bars, without axis labels. */
const PLOT = { left: 72, right: 472, top: 28, bottom: 236 }
const GAP = 0.2
const MAX_YEAR_LABELS = 10

type Attributes = Record<string, string | number>

function element(name: string, attributes: Attributes, text?: string): SVGElement {
  const created = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, String(value))
  if (text !== undefined) created.textContent = text
  return created
}

/** Returns a round distance for axis ticks: 1, 2, 2.5 or 5 times a power of ten. */
function tickStep(highest: number): number {
  const min = highest / 4
  const power = 10 ** Math.floor(Math.log10(min))
  return ([1, 2, 2.5, 5, 10].find(factor => factor * power >= min) ?? 10) * power
}

const createMoneyFormat = (currency: string, options: Intl.NumberFormatOptions = {}) =>
  new Intl.NumberFormat('en', { style: 'currency', currency, ...options })

function axes(years: readonly Year[], step: number, ticks: number, currency: string): SVGElement[] {
  const short = createMoneyFormat(currency, { notation: 'compact', minimumFractionDigits: 0, maximumFractionDigits: 1 })
  const toY = (tick: number) => PLOT.bottom - ((PLOT.bottom - PLOT.top) * tick) / ticks
  const amounts = Array.from({ length: ticks + 1 }, (_, tick) => [
    element('line', { class: 'grid', x1: PLOT.left, x2: PLOT.right, y1: toY(tick), y2: toY(tick) }),
    element('text', { x: PLOT.left - 8, y: toY(tick) + 4, 'text-anchor': 'end' }, short.format(tick * step)),
  ]).flat()
  const every = Math.ceil(years.length / MAX_YEAR_LABELS)
  const width = (PLOT.right - PLOT.left) / Math.max(1, years.length)
  const labels = years.flatMap(({ year }, index) =>
    year % every === 0 || years.length <= MAX_YEAR_LABELS
      ? element(
          'text',
          { x: PLOT.left + (index + 0.5) * width, y: PLOT.bottom + 18, 'text-anchor': 'middle' },
          `${year}`,
        )
      : [],
  )
  const middle = (PLOT.left + PLOT.right) / 2
  return [
    ...amounts,
    ...labels,
    element('text', { x: 0, y: 14 }, `Amount (${currency})`),
    element('text', { x: middle, y: HEIGHT - 4, 'text-anchor': 'middle' }, 'End of year'),
  ]
}

function legend(hasLoss: boolean): HTMLElement {
  const list = document.createElement('ul')
  list.className = 'legend'
  const kinds = { paid: 'Deposits', ...(hasLoss ? { loss: 'Loss' } : { gain: 'Interest' }) }
  for (const [kind, text] of Object.entries(kinds)) {
    const item = document.createElement('li')
    const swatch = element('svg', { viewBox: '0 0 1 1', class: 'swatch', 'aria-hidden': 'true' })
    swatch.append(element('rect', { class: kind, width: 1, height: 1 }))
    item.append(swatch, text)
    list.append(item)
  }
  return list
}

export function draw(years: readonly Year[], currency: string): Node {
  const money = createMoneyFormat(currency)
  const last = years.at(-1)
  const name = last
    ? `Savings after ${last.year} years: ${money.format(last.total)}, of which ${money.format(last.paid)} are deposits`
    : 'No savings'
  const chart = element('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': name })
  const highest = Math.max(1, ...years.map(({ paid, total }) => Math.max(paid, total)))
  const step = tickStep(highest)
  const ticks = Math.ceil(highest / step)
  chart.append(...axes(years, step, ticks, currency))
  const width = (PLOT.right - PLOT.left) / Math.max(1, years.length)
  const toHeight = (amount: number) => (amount / (step * ticks)) * (PLOT.bottom - PLOT.top)
  for (const [index, { year, paid, total }] of years.entries()) {
    const x = PLOT.left + (index + GAP / 2) * width
    const bar = (kind: string, from: number, to: number) => {
      const y = PLOT.bottom - toHeight(Math.max(from, to))
      return element('rect', { class: kind, x, y, width: width * (1 - GAP), height: toHeight(Math.abs(to - from)) })
    }
    const group = element('g', { class: 'year' })
    const text = `Year ${year}: ${money.format(total)}, deposits ${money.format(paid)}`
    group.append(element('title', {}, text), bar('paid', 0, Math.min(paid, total)))
    group.append(bar(total < paid ? 'loss' : 'gain', paid, total))
    chart.append(group)
  }
  const picture = document.createDocumentFragment()
  picture.append(chart, legend(last !== undefined && last.total < last.paid))
  return picture
}
