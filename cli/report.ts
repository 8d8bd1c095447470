// `mcp-host report`: calls, latency, refusals and legacy protocol use, from access logs and audits.
import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { printable } from '../client/text.ts'
import { errorText } from '../core/http/errors.ts'
import { type CommandValues, defineCommand } from './command.ts'
import { type CommandContext, usage } from './context.ts'
import { forEachLine } from './report/log-lines.ts'
import { type Report, Tally, type Window } from './report/tally.ts'
import { reportText } from './report/text.ts'
import { jsonText } from './text.ts'

const OPTIONS = {
  since: { value: '<when>', help: 'Start: a duration ago (30m, 24h, 7d) or a time (2026-11-22T15:00Z)' },
  until: { value: '<when>', help: 'End, in the same format' },
  top: { value: '<n>', help: 'Rows per table [10]' },
  json: { help: 'Print JSON' },
} as const

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
const DAY = 86_400_000

function readTime(option: string, given: string, now: number): number {
  const [, amount, unit = ''] = /^(\d{1,6}(?:\.\d+)?)([smhdw])$/.exec(given) ?? []
  const size = UNITS[unit]
  if (amount !== undefined && size !== undefined) return now - Number(amount) * size
  const time = /^\d{4}-\d\d-\d\d/.test(given) ? Date.parse(given) : Number.NaN
  if (!Number.isNaN(time)) return time
  throw usage(`--${option} is not a time: give a duration such as 24h or 7d, or a time such as 2026-11-22T15:00Z`)
}

function readWindow({ since, until }: CommandValues<typeof OPTIONS>, now: number): Window {
  const window = {
    since: since === undefined ? -Infinity : readTime('since', since, now),
    until: until === undefined ? Infinity : readTime('until', until, now),
    future: now + DAY,
  }
  if (window.since >= window.until) throw usage('--since is not before --until: swap them')
  return window
}

function readTop(given = '10'): number {
  const max = Number(given)
  if (Number.isInteger(max) && max >= 1 && max <= 1_000) return max
  throw usage('--top must be a number from 1 to 1000')
}

const LOG_FILE = /\.(?:log|jsonl)(?:[.-][\w.-]*)?$/

async function expandFolders(sources: readonly string[], cwd: string): Promise<string[]> {
  const files: string[] = []
  for (const source of sources) {
    const path = resolve(cwd, source)
    const isFolder = source !== '-' && (await stat(path).catch(() => undefined))?.isDirectory()
    const found = isFolder ? await readdir(path, { withFileTypes: true }) : []
    const names = found
      .filter(entry => entry.isFile() && LOG_FILE.test(entry.name) && !entry.name.endsWith('.lock'))
      .map(({ name }) => name)
      .sort()
    if (isFolder && names.length === 0) throw usage(`${printable(source)} contains no *.log or *.jsonl file`)
    files.push(...(isFolder ? names.map(name => join(source, name)) : [source]))
  }
  return files
}

async function reportOnLogs(
  sources: readonly string[],
  window: Window,
  max: number,
  { stdin, cwd }: CommandContext,
): Promise<Report> {
  const tally = new Tally(window)
  const notes: string[] = []
  for (const source of await expandFolders(sources, cwd)) {
    const name = source === '-' ? 'stdin' : source
    const readBefore = tally.read
    let lines = 0
    const stream = source === '-' ? stdin : createReadStream(resolve(cwd, source))
    try {
      await forEachLine(stream, line => {
        lines++
        tally.line(line)
      })
      if (lines > 0 && tally.read === readBefore)
        notes.push(`${printable(name)} contains no lines of an access log or audit`)
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      if (lines === 0 && !code?.startsWith('Z_')) {
        throw usage(`${printable(name)} cannot be read: ${errorText(cause)}`, cause)
      }
      notes.push(`${printable(name)} is truncated (${errorText(cause)}); the readable part is counted`)
    }
  }
  return tally.report(max, notes)
}

function emptyReason({ outside, future, skipped }: Report['lines']): string {
  if (outside > 0) return `${outside} lines are outside of --since and --until`
  if (future > 0) return `${future} lines have times in the future; check the clock of the machine that wrote them`
  if (skipped === 0) return 'it contains no requests'
  return `${skipped} lines, none of an access log or audit; report reads JSON lines, which access-log writes with format: 'json'`
}

export const reportCommand = defineCommand({
  summary: 'Summarize an access log: calls, errors, slow tools, refused requests, legacy clients',
  example: 'access.log --since 24h',
  positionals: ['FILE', '[FILE...]'],
  options: OPTIONS,
  notes: `FILE is an access log or audit file in JSON lines, optionally compressed with gzip; - reads stdin. For a folder, report reads its *.log and *.jsonl files, including rotated files. Times are in UTC.`,
  async run(values, sources, context) {
    const { stdout, stderr, secrets } = context
    const max = readTop(values.top)
    if (sources.filter(source => source === '-').length > 1) throw usage('- (stdin) can be given only once')
    const report = await reportOnLogs(sources, readWindow(values, Date.now()), max, context)
    const isEmpty = report.lines.counted === 0 && report.requests === 0
    if (isEmpty) stderr.write(`mcp-host: nothing was counted: ${emptyReason(report.lines)}\n`)
    const text = values.json ? jsonText(report) : reportText(report, stdout.columns ?? 120)
    if (values.json || !isEmpty) context.print(secrets.scrub(text))
    return isEmpty ? 1 : 0
  },
})
