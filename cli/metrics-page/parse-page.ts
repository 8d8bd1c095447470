// Reads a metrics page in the Prometheus text format (or OpenMetrics, as far as they agree): its samples by name. What is no
// sample is counted and passed over; so are timestamps and exemplars.

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface MetricsPage {
  readonly samples: ReadonlyMap<string, readonly Sample[]>
  /** Lines that are none, as far as the page was read. */
  readonly skipped: number
}

/** Samples that are kept; ours have some thousand. */
export const MOST_SAMPLES = 200_000
/** Lines that are none: past them nothing more is read. They are more than a page of its greatest size may have. */
export const MOST_SKIPPED = 100_000
/** Empty lines and comments; more are skipped as what is no sample. */
const MOST_PASSED = 4 * MOST_SAMPLES
const MOST_LABELS = 64
/** Characters of a line. */
const MOST_LINE = 64 * 1024

const NAME = /[a-zA-Z_:][\w:]*/y
const LABEL = /\s*([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,?)/y
/** Each part is bounded: a long row of digits must not be tried in every way. */
const VALUE = /\s+([+-]?(?:Inf|NaN|(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:e[+-]?\d{1,4})?))(?=\s|$)/iy

const ESCAPED: Readonly<Record<string, string>> = { n: '\n', '\\': '\\', '"': '"' }

/** What a backslash stands before that escapes nothing stays, with the backslash. */
const unescaped = (text: string): string =>
  text.includes('\\') ? text.replace(/\\(.)/g, (all, escaped: string) => ESCAPED[escaped] ?? all) : text

function matchAt(pattern: RegExp, line: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(line)
}

/** The labels behind a `{`, and where they end; undefined where they do not. */
function readLabels(line: string, start: number): { labels: Record<string, string>; end: number } | undefined {
  const labels: Record<string, string> = Object.create(null)
  let at = start
  for (let count = 0; count <= MOST_LABELS; count++) {
    const found = matchAt(LABEL, line, at)
    if (!found) break
    const [all, name = '', value = '', comma] = found
    labels[name] = unescaped(value)
    at += all.length
    if (comma === '') break
  }
  const close = matchAt(/\s*\}/y, line, at)
  return close ? { labels, end: at + close[0].length } : undefined
}

function numberOf(text: string): number {
  const infinite = /^([+-]?)inf$/i.exec(text)
  if (infinite) return infinite[1] === '-' ? -Infinity : Infinity
  return Number(text)
}

function readSample(line: string): (Sample & { readonly name: string }) | undefined {
  const name = matchAt(NAME, line, 0)?.[0]
  if (name === undefined) return undefined
  const open = matchAt(/\s*\{/y, line, name.length)
  const read = open ? readLabels(line, name.length + open[0].length) : { labels: {}, end: name.length }
  if (!read) return undefined
  // The value may stand right behind the labels.
  const value = matchAt(VALUE, open ? `${line.slice(0, read.end)} ${line.slice(read.end)}` : line, read.end)?.[1]
  return value === undefined ? undefined : { name, labels: read.labels, value: numberOf(value) }
}

/** One after the other: a page of line breaks alone has many million. */
function* linesOf(text: string): Generator<string> {
  for (let start = 0; start <= text.length; ) {
    const found = text.indexOf('\n', start)
    const end = found === -1 ? text.length : found
    yield text.slice(start, end)
    start = end + 1
  }
}

export function parsePage(text: string): MetricsPage {
  const samples = new Map<string, Sample[]>()
  let skipped = 0
  let passed = 0
  let count = 0
  for (const whole of linesOf(text)) {
    const line = whole.trim()
    if ((line === '' || line.startsWith('#')) && passed++ < MOST_PASSED) continue
    const sample = count < MOST_SAMPLES && line.length <= MOST_LINE ? readSample(line) : undefined
    if (!sample) {
      if (++skipped === MOST_SKIPPED) break
      continue
    }
    count++
    const { name, labels, value } = sample
    const known = samples.get(name)
    if (known) known.push({ labels, value })
    else samples.set(name, [{ labels, value }])
  }
  return { samples, skipped }
}
