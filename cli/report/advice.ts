// What the figures of the old protocol come to, in sentences: what may be switched off, and who is in the way.
import { FEATURES, type Feature } from './features.ts'
import type { ClientRow, FeatureRow, Use } from './report.ts'

/** Milliseconds. Clients are not there each day: what was not used for less says little. */
const LONG_ENOUGH = 7 * 24 * 3_600_000
/** Clients that a sentence names. */
const MOST_NAMES = 3

export interface Span {
  /** Milliseconds since the epoch; not finite where nothing was counted, or no times are known. */
  readonly from: number
  readonly until: number
  /** Not every call was counted: nobody can tell that something was not used. */
  readonly sampled: boolean
}

/** `2026-11-22 18:20`, in UTC. */
export const minuteOf = (at: string | number): string => new Date(at).toISOString().slice(0, 16).replace('T', ' ')

/** In the largest unit of which there are two. */
export function durationText(milliseconds: number): string {
  const units = [
    ['day', 86_400_000],
    ['hour', 3_600_000],
    ['minute', 60_000],
  ] as const
  for (const [unit, size] of units) {
    if (milliseconds >= 2 * size) return `${Math.floor(milliseconds / size)} ${unit}s`
  }
  return `${Math.max(0, Math.round(milliseconds / 1_000))} seconds`
}

const capital = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

/** By name and version, each once: those that were not quiet. */
function namesOf(feature: string, clients: readonly ClientRow[], span: Span): string[] {
  const users = clients.filter(({ features }) =>
    features.some(used => used.feature === feature && !isQuiet(used, span)),
  )
  return [...new Set(users.map(({ client }) => client))]
}

function stillUsed({ name, words }: Feature, row: FeatureRow, clients: readonly ClientRow[], span: Span): string {
  const names = namesOf(name, clients, span)
  const last = row.last === undefined ? '' : `, last at ${minuteOf(row.last)}`
  // Some figures are not told by client.
  if (names.length === 0)
    return `Somebody still uses ${words}${last}: ${span.sampled ? 'about ' : ''}${row.calls} calls.`
  const told = names.slice(0, MOST_NAMES).join(', ')
  const more = names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : ''
  const who = names.length === 1 ? '1 client still uses' : `${names.length} clients still use`
  return `${span.sampled ? 'At least ' : ''}${who} ${words}${last}: ${told}${more}.`
}

function unused({ words, allows }: Feature, row: FeatureRow, { from, until }: Span): string {
  const since = row.last === undefined ? from : Date.parse(row.last)
  if (!Number.isFinite(since)) return `Nobody used ${words} in what was counted.`
  const long = until - since
  if (row.last === undefined && long < LONG_ENOUGH) {
    return `Nobody used ${words}, but that is of ${durationText(long)} only: look at a week or more${allows === undefined ? '' : ` before ${allows}`}.`
  }
  return `Nobody used ${words} since ${minuteOf(since)}${allows === undefined ? '' : `: ${allows}`}.`
}

/** What was used and then not for long counts as unused. */
const isQuiet = ({ last }: Use, { until, sampled }: Span): boolean =>
  !sampled && last !== undefined && until - Date.parse(last) >= LONG_ENOUGH

/** A sentence for each feature that is used, and for each that may be switched off; one for all that nobody can tell. */
export function adviseOn(rows: readonly FeatureRow[], clients: readonly ClientRow[], span: Span): string[] {
  const sentences = FEATURES.flatMap(feature => {
    const row = rows.find(one => one.feature === feature.name)
    if (!row || row.verdict === 'untold') return []
    if (row.verdict === 'used' && !isQuiet(row, span)) return [stillUsed(feature, row, clients, span)]
    return feature.allows === undefined && row.verdict === 'unused' ? [] : [unused(feature, row, span)]
  })
  const untold = rows.filter(({ verdict }) => verdict === 'untold').map(({ feature }) => feature)
  return untold.length === 0 ? sentences : [...sentences, `${capital(untoldText(untold))}.`]
}

const untoldText = (features: readonly string[]): string =>
  `what was read does not tell who uses ${features.join(', ')}`
