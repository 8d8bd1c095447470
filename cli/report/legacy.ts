// Reports which clients use legacy protocol features, and what an operator can disable.
import { MODERN_REVISION, REVISIONS, rulesOf } from '../../core/mcp/revisions.ts'
import { isoTime } from '../text.ts'
import { createDistinct, createRanking, type Ranked } from './counts.ts'
import type { LoggedRequest } from './log-lines.ts'

interface Feature {
  readonly name: string
  /** Returns undefined if the line does not contain the information. */
  isUsed(request: LoggedRequest): boolean | undefined
  /** Words for "use" in the report. */
  readonly words: string
  readonly allows?: string
}

/** Compares dates, so that versions newer than this program do not count as legacy. */
const isOldRevision = (revision: string | undefined): revision is string =>
  revision !== undefined && /^\d{4}-\d\d-\d\d$/.test(revision) && revision < MODERN_REVISION

const BATCHING = new Set<string>(REVISIONS.filter(revision => rulesOf(revision).batches))

/** Elicitation and sampling in a session are server requests on a stream. */
const asked =
  (method: string): Feature['isUsed'] =>
  ({ asked: methods, revision }) =>
    methods.includes(method) && isOldRevision(revision)

const called =
  (...methods: readonly string[]): Feature['isUsed'] =>
  ({ method, revision }) =>
    isOldRevision(revision) && method !== undefined && methods.includes(method)

const SESSIONS = 'sessions'
const HTTP_SSE = 'HTTP+SSE'

const FEATURES: readonly Feature[] = [
  {
    name: 'old revision',
    words: `a protocol version before ${MODERN_REVISION}`,
    isUsed: ({ revision }) => isOldRevision(revision),
  },
  {
    name: SESSIONS,
    words: 'sessions',
    allows: 'routes can be `stateless: true`',
    isUsed: ({ revision, session, transport }) =>
      isOldRevision(revision) && (session !== undefined || transport !== undefined),
  },
  {
    name: HTTP_SSE,
    words: HTTP_SSE,
    allows: 'transport-sse can be removed',
    isUsed: ({ transport }) => transport === 'transport-sse',
  },
  {
    name: 'batches',
    words: 'batches',
    // A line is one message and does not show whether it was part of a batch.
    isUsed: ({ revision }) => (revision !== undefined && BATCHING.has(revision) ? undefined : false),
  },
  { name: 'sampling', words: 'sampling in a session', isUsed: asked('sampling/createMessage') },
  { name: 'elicitation', words: 'elicitation in a session', isUsed: asked('elicitation/create') },
  { name: 'roots', words: 'roots in a session', isUsed: asked('roots/list') },
  {
    name: 'logging/setLevel',
    words: 'logging/setLevel',
    // By default, audits omit this information.
    isUsed: request =>
      called('logging/setLevel')(request) || (request.audited && isOldRevision(request.revision) ? undefined : false),
  },
  {
    name: 'resources/subscribe',
    words: 'resources/subscribe',
    isUsed: called('resources/subscribe', 'resources/unsubscribe'),
  },
]

/** Dynamic client registration. Its use is unknown, because it takes place at the authorization server. */
const DCR = 'DCR'

/** Milliseconds. A shorter period does not prove that a feature is unused. */
const LONG_ENOUGH = 7 * 24 * 3_600_000
const MOST_NAMES = 3

interface Span {
  readonly from: number
  readonly until: number
  /** Some calls were not counted, so absence of use is uncertain. */
  readonly sampled: boolean
}

export const minuteOf = (at: string | number): string => new Date(at).toISOString().slice(0, 16).replace('T', ' ')

function durationText(milliseconds: number): string {
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

function namesOf(feature: string, clients: readonly ClientRow[], span: Span): string[] {
  const users = clients.filter(({ features }) =>
    features.some(used => used.feature === feature && !isQuiet(used, span)),
  )
  return [...new Set(users.map(({ client }) => client))]
}

function stillUsed({ name, words }: Feature, row: FeatureRow, clients: readonly ClientRow[], span: Span): string {
  const names = namesOf(name, clients, span)
  const last = row.last === undefined ? '' : `, last at ${minuteOf(row.last)}`
  if (names.length === 0)
    return `Anonymous clients still use ${words}${last}: ${span.sampled ? 'about ' : ''}${row.calls} calls.`
  const told = names.slice(0, MOST_NAMES).join(', ')
  const more = names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : ''
  const who = names.length === 1 ? '1 client still uses' : `${names.length} clients still use`
  return `${span.sampled ? 'At least ' : ''}${who} ${words}${last}: ${told}${more}.`
}

function unused({ words, allows }: Feature, row: FeatureRow, { from, until }: Span): string {
  const since = row.last === undefined ? from : Date.parse(row.last)
  if (!Number.isFinite(since)) return `No counted call used ${words}.`
  const long = until - since
  if (row.last === undefined && long < LONG_ENOUGH) {
    return `No client used ${words}, but the log covers only ${durationText(long)}: check a week or more${allows === undefined ? '' : ` before ${allows}`}.`
  }
  return `No client has used ${words} since ${minuteOf(since)}${allows === undefined ? '' : `: ${allows}`}.`
}

const isQuiet = ({ last }: Use, { until, sampled }: Span): boolean =>
  !sampled && last !== undefined && until - Date.parse(last) >= LONG_ENOUGH

function adviseOn(rows: readonly FeatureRow[], clients: readonly ClientRow[], span: Span): string[] {
  const sentences = FEATURES.flatMap(feature => {
    const row = rows.find(one => one.feature === feature.name)
    if (!row || row.verdict === 'untold') return []
    if (row.verdict === 'used' && !isQuiet(row, span)) return [stillUsed(feature, row, clients, span)]
    return feature.allows === undefined && row.verdict === 'unused' ? [] : [unused(feature, row, span)]
  })
  const untold = rows.filter(({ verdict }) => verdict === 'untold').map(({ feature }) => feature)
  return untold.length === 0 ? sentences : [...sentences, `The log does not contain the use of ${untold.join(', ')}.`]
}

const MOST_CLIENTS = 1_000

const NAMELESS = '(no name)'

type Seen = ReturnType<typeof neverSeen>
type Use = ReturnType<typeof useOf>

const neverSeen = () => ({ calls: 0, first: Infinity, last: -Infinity })

function see(seen: Seen, { at, weight }: Pick<LoggedRequest, 'at' | 'weight'>): void {
  seen.calls += weight
  seen.first = Math.min(seen.first, at)
  seen.last = Math.max(seen.last, at)
}

const useOf = ({ calls, first, last }: Seen) => ({
  calls: Math.round(calls),
  first: isoTime(first),
  last: isoTime(last),
})

const countFeature = () => ({ seen: neverSeen(), clients: createDistinct(), untold: 0 })
const countClient = () => ({ seen: neverSeen(), features: new Map<string, Seen>() })

/** `untold`: the source does not contain the information. */
type Verdict = 'used' | 'unused' | 'untold'

const verdictOf = ({ seen, untold }: ReturnType<typeof countFeature>, sampled: boolean): Verdict =>
  seen.calls > 0 ? 'used' : untold > 0 || sampled ? 'untold' : 'unused'

function featureRow(feature: string, count: ReturnType<typeof countFeature>, sampled: boolean) {
  const clients = count.clients.count().count
  return { feature, verdict: verdictOf(count, sampled), ...useOf(count.seen), clients }
}

function clientRow({ key, entry: { seen, features } }: Ranked<ReturnType<typeof countClient>>) {
  const [client = '', revision = ''] = key.split('\n')
  return {
    client,
    revision,
    ...useOf(seen),
    features: [...features].map(([feature, use]) => ({ feature, ...useOf(use) })),
  }
}

type FeatureRow = ReturnType<typeof featureRow>
export type ClientRow = ReturnType<typeof clientRow>

export function createLegacyTally() {
  const counts = new Map(FEATURES.map(({ name }) => [name, countFeature()]))
  const clients = createRanking(MOST_CLIENTS, countClient)

  function usedBy(call: LoggedRequest, client: string): string[] {
    return FEATURES.flatMap(({ name, isUsed }) => {
      const count = counts.get(name)
      const used = isUsed(call)
      if (used === undefined && count) count.untold++
      if (!used || !count) return []
      see(count.seen, call)
      count.clients.add(client)
      return [name]
    })
  }

  return {
    add(call: LoggedRequest): void {
      const { client = NAMELESS, revision = '-', weight } = call
      const used = usedBy(call, client)
      if (used.length === 0) return
      const { seen, features } = clients.count(`${client}\n${revision}`, weight)
      see(seen, call)
      for (const name of used) {
        const feature = features.get(name) ?? neverSeen()
        see(feature, call)
        features.set(name, feature)
      }
    },
    report(span: Span, most: number) {
      const all = clients.list().map(clientRow)
      const notListed = all.slice(most).reduce((sum, { calls }) => sum + calls, Math.round(clients.forgotten))
      const features = [
        ...[...counts].map(([feature, count]) => featureRow(feature, count, span.sampled)),
        featureRow(DCR, { ...countFeature(), untold: 1 }, span.sampled),
      ]
      return { features, clients: all.slice(0, most), notListed, advice: adviseOn(features, all, span) }
    },
  }
}
