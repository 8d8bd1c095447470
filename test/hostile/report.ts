// The verdict of a run, and its readable report.
import type { Holding } from './attacked-settings.ts'
import { ATTACKS } from './attacks/index.ts'
import type { HostileReport } from './hostile.ts'
import { type Counts, FAULT_KINDS, type Fault, type FaultKind } from './tally.ts'

export interface Verdict {
  readonly name: string
  readonly holds: boolean
  readonly found: string
}

const MEGABYTE = 1024 * 1024
/** What the heap may grow by: caches that have a bound, and code that was compiled later. */
const HEAP_SLACK = 12 * MEGABYTE
/** Descriptors and timers that caches of connections and keys may keep. */
const SLACK = 3
const GONE = ['sessions', 'runs', 'subscribers', 'calls', 'sockets'] as const

const megabytes = (bytes: number) => `${(bytes / MEGABYTE).toFixed(1)} MB`

function holdingVerdicts(idle: Holding, baseline: Holding, after: Holding): Verdict[] {
  const left = GONE.filter(name => after[name] !== 0).map(name => `${name} ${after[name]}`)
  const grown = after.heap - baseline.heap
  const same = (name: 'descriptors' | 'timers'): Verdict => ({
    name: `${name} back to what they were`,
    holds: after[name] <= idle[name] + SLACK,
    found: `${idle[name]} before, ${after[name]} after`,
  })
  return [
    {
      name: 'no session, stream, listener, call or connection left',
      holds: left.length === 0,
      found: left.join(', ') || 'none',
    },
    same('descriptors'),
    same('timers'),
    {
      name: `heap back to baseline (within ${megabytes(HEAP_SLACK)})`,
      holds: grown <= HEAP_SLACK,
      found: `${megabytes(baseline.heap)} -> ${megabytes(after.heap)}`,
    },
  ]
}

const WITHOUT_COUNTS: Verdict = { name: 'what the host holds', holds: false, found: 'it could not be asked' }

export function verdictsOf({ tally, idle, baseline, after, end, steadyCalls }: HostileReport): Verdict[] {
  const kinds = Object.entries(FAULT_KINDS) as Array<[FaultKind, string]>
  return [
    ...kinds.map(([kind, name]) => ({ name, holds: tally.count(kind) === 0, found: String(tally.count(kind)) })),
    ...(idle && baseline && after ? holdingVerdicts(idle, baseline, after) : [WITHOUT_COUNTS]),
    { name: 'nothing runs when it is told to stop', holds: end.running === 0, found: String(end.running ?? 'unknown') },
    { name: 'it ends with exit code 0', holds: end.code === 0, found: String(end.code) },
    { name: 'the steady client was served', holds: steadyCalls > 0, found: `${steadyCalls} calls` },
  ]
}

const COLUMNS: ReadonlyArray<readonly [title: string, of: (counts: Counts) => number]> = [
  ['rounds', counts => counts.rounds],
  ['sent', counts => counts.sent],
  ['2xx', counts => counts.ok],
  ['4xx', counts => counts.clientError],
  ['429', counts => counts.limited],
  ['503', counts => counts.refused],
  ['5xx', counts => counts.serverError],
  [
    'none',
    ({ sent, ok, redirected, clientError, limited, refused, serverError }) =>
      Math.max(0, sent - ok - redirected - clientError - limited - refused - serverError),
  ],
]

function table(rows: readonly string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
  return rows.map(line).join('\n')
}

function countsTable({ tally }: HostileReport): string {
  const counts = [...tally.kinds]
  const total = COLUMNS.map(([, of]) => counts.reduce((sum, [, one]) => sum + of(one), 0))
  return table([
    ['kind', ...COLUMNS.map(([title]) => title)],
    ...counts.map(([kind, one]) => [kind, ...COLUMNS.map(([, of]) => String(of(one)))]),
    ['all', ...total.map(String)],
  ])
}

function describeLatencies(latencies: readonly number[]): string {
  const sorted = [...latencies].sort((a, b) => a - b)
  const at = (part: number) => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(0)
  return `${sorted.length} calls; median ${at(0.5)} ms, 99 of 100 within ${at(0.99)} ms, longest ${at(1)} ms by the clock`
}

const describeHolding = (title: string, holding: Holding | undefined) => {
  if (!holding) return `${title}: unknown`
  const { heap, rss, peakRss, ...counts } = holding
  const counted = Object.entries(counts).map(([name, count]) => `${name} ${count}`)
  return `${title}: heap ${megabytes(heap)}, resident ${megabytes(rss)} (at most ${megabytes(peakRss)}), ${counted.join(', ')}`
}

/** Faults that look alike, once. */
function describeFaults(faults: readonly Fault[], seed: number): string[] {
  const groups = new Map<string, Fault[]>()
  for (const fault of faults) {
    const kinds = fault.rounds.length === 1 ? fault.rounds[0]?.split(':')[0] : ''
    // Stalls are told one by one: each says what it was about.
    const text = fault.kind === 'stall' ? fault.text : fault.text.replace(/\d+/g, '#').slice(0, 80)
    const key = `${fault.kind} ${kinds} ${text}`
    groups.set(key, [...(groups.get(key) ?? []), fault])
  }
  return [...groups.values()].map(group => {
    const [fault] = group
    if (!fault) return ''
    const request = fault.request === undefined ? '' : `\n    after ${fault.request}`
    const rounds = fault.rounds.slice(0, 40).join(',')
    return `  ${fault.kind}, ${group.length} times: ${fault.text}${request}\n    npm run hostile -- --seed ${seed} --replay ${rounds}`
  })
}

/** The whole report, on many lines. */
export function describeReport(report: HostileReport, seed: number): string {
  const verdicts = verdictsOf(report)
  const logged = [...report.tally.logLines].map(([text, count]) => `  ${count} ${text}`)
  const faults = describeFaults(report.tally.faults, seed)
  return [
    countsTable(report),
    '',
    describeHolding('before', report.idle),
    describeHolding('baseline', report.baseline),
    describeHolding('after', report.after),
    `longest turn of the event loop: ${report.longest ?? 'unknown'} ms`,
    `steady client: ${describeLatencies(report.latencies)}`,
    ...(logged.length > 0 ? ['log:', ...logged] : []),
    '',
    ...verdicts.map(({ name, holds, found }) => `${holds ? 'ok  ' : 'FAIL'} ${name}: ${found}`),
    ...(faults.length > 0 ? ['', 'faults:', ...faults] : []),
  ].join('\n')
}

/** The kinds of attack, for people. */
export const describeKinds = (): string => table(ATTACKS.map(({ kind, about }) => [kind, about]))
