// Reads lines of access logs and audits, plain or gzip. Each field is validated, cut and made printable.
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { printable } from '../../client/text.ts'
import { readLines } from '../../plugins/transport-stdio/lines.ts'
import { parseObject } from '../text.ts'

/** Maximum line length, bytes. The longest expected line has some thousand. */
const MAX_LINE = 256 * 1024

const GZIP = Buffer.from([0x1f, 0x8b])

async function decompress(source: Readable): Promise<Readable> {
  await once(source, 'readable')
  const head: Buffer | null = source.read()
  if (head !== null) source.unshift(head)
  if (!head?.subarray(0, GZIP.length).equals(GZIP)) return source
  const gunzip = createGunzip()
  source.once('error', error => gunzip.destroy(error))
  return source.pipe(gunzip)
}

/**
 * Calls `take` for each non-empty line, and with undefined for a line that is too long or not UTF-8. Rejects if the source
 * becomes unreadable, such as a truncated gzip file.
 */
export async function forEachLine(source: Readable, onLine: (line: string | undefined) => void): Promise<void> {
  const stream = await decompress(source)
  let problem: unknown
  stream.once('error', error => {
    problem = error
  })
  for await (const line of readLines(stream, MAX_LINE)) {
    if (!('text' in line)) onLine(undefined)
    else if (line.text.trim() !== '') onLine(line.text)
  }
  if (problem !== undefined) throw problem
}

const OUTCOMES = ['ok', 'input_required', 'tool_error', 'error', 'refused', 'cancelled'] as const

export type LoggedRequest = ReturnType<typeof readRequest>

export interface Refusals {
  readonly at: number
  readonly refusals: number
}

/** `gap`: lost audit lines. `refusals`: counted anonymous requests. `own`: a status line. Undefined: a foreign line. */
export type LoggedLine = LoggedRequest | { readonly gap: number } | Refusals | 'own' | undefined

const MAX_ASKED = 8

/** Copies the text, because a slice would retain the whole line. */
const truncate = (text: string, max: number): string =>
  text.length <= max ? text : Buffer.from(text.slice(0, max)).toString()

const readText = (value: unknown, max: number): string | undefined =>
  typeof value === 'string' && value !== '' ? printable(truncate(value, max)) : undefined

/** The time format of both logs; `Date` accepts many others. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/

const readTime = (value: unknown): number =>
  typeof value === 'string' && TIME.test(value) ? Date.parse(value) : Number.NaN

const MIN_SAMPLE = 1e-6

/** Failed and slow requests are logged regardless of `sample` and count once. */
function readWeight({ outcome, slow, sample }: Readonly<Record<string, unknown>>): number {
  const isSuccess = outcome === 'ok' || outcome === 'input_required'
  if (!isSuccess || slow === true || typeof sample !== 'number') return 1
  return sample >= MIN_SAMPLE && sample < 1 ? 1 / sample : 1
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) > 0

function readAuditLine({ seq, prev, event, lost, count, until }: Readonly<Record<string, unknown>>): LoggedLine {
  if (typeof seq !== 'number' || typeof prev !== 'string' || typeof event !== 'string') return undefined
  const at = readTime(until)
  if (event === 'refusals' && isCount(count) && !Number.isNaN(at)) return { at, refusals: count }
  return event === 'gap' && typeof lost === 'number' && lost > 0 ? { gap: lost } : 'own'
}

function readRequest(fields: Readonly<Record<string, unknown>>, outcome: (typeof OUTCOMES)[number], at: number) {
  const { ms, asked } = fields
  return {
    at,
    outcome,
    milliseconds: typeof ms === 'number' && Number.isFinite(ms) && ms >= 0 ? ms : undefined,
    method: readText(fields['method'], 64),
    name: readText(fields['name'], 128),
    route: readText(fields['route'], 128),
    error: readText(fields['error'], 48),
    by: readText(fields['by'], 64),
    reason: readText(fields['reason'], 160),
    user: readText(fields['user'], 128),
    client: readText(fields['client'], 97),
    revision: readText(fields['revision'], 24),
    transport: readText(fields['transport'], 64),
    session: readText(fields['session'], 128),
    asked: Array.isArray(asked) ? asked.slice(0, MAX_ASKED).flatMap(method => readText(method, 64) ?? []) : [],
    /** The number of requests that the line represents: more than one with `sample`. */
    weight: readWeight(fields),
    audited: typeof fields['decision'] === 'string',
  }
}

export function readLoggedLine(line: string): LoggedLine {
  const fields = line.trimStart().startsWith('{') ? parseObject(line) : undefined
  if (!fields) return undefined
  const outcome = OUTCOMES.find(known => known === fields['outcome'])
  if (outcome === undefined) return readAuditLine(fields)
  const at = readTime(fields['time'])
  return Number.isNaN(at) ? undefined : readRequest(fields, outcome, at)
}
