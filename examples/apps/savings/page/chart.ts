// A chart of bars in SVG: for each year what was paid in, and what came on top.

export interface Year {
  year: number
  paid: number
  total: number
}

const SVG = 'http://www.w3.org/2000/svg'
const WIDTH = 640
const HEIGHT = 240
const GAP = 0.2

function element(name: string, attributes: Record<string, string | number>, text?: string): SVGElement {
  const made = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value))
  if (text !== undefined) made.textContent = text
  return made
}

export function draw(years: readonly Year[]): SVGElement {
  const last = years.at(-1)
  const name = last ? `Savings of ${last.year} years: ${last.total} at the end, ${last.paid} paid in` : 'No savings'
  const chart = element('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': name })
  const highest = Math.max(1, ...years.map(({ paid, total }) => Math.max(paid, total)))
  const step = WIDTH / Math.max(1, years.length)
  for (const [index, { year, paid, total }] of years.entries()) {
    const x = index * step + (step * GAP) / 2
    const bar = (kind: string, from: number, to: number) => {
      const top = HEIGHT - (Math.max(from, to) / highest) * HEIGHT
      const height = (Math.abs(to - from) / highest) * HEIGHT
      return element('rect', { class: kind, x, y: top, width: step * (1 - GAP), height })
    }
    const group = element('g', { class: 'year' })
    group.append(element('title', {}, `Year ${year}: ${total}, paid in ${paid}`), bar('paid', 0, Math.min(paid, total)))
    group.append(bar(total < paid ? 'loss' : 'gain', paid, total))
    chart.append(group)
  }
  return chart
}
