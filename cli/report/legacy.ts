// Reports which clients use legacy protocol features.
import { MODERN_REVISION, REVISIONS, rulesOf } from '../../core/mcp/wire/revisions.ts'
import { isoTime } from '../text.ts'
import { createDistinct, createRanking, type Ranked } from './counts.ts'
import type { LoggedRequest } from './log-lines.ts'

interface Feature {
  readonly name: string
  /** Returns undefined if the line does not contain the information. */
  isUsed(request: LoggedRequest): boolean | undefined
}

/** Compares dates, so that versions newer than this program do not count as legacy. */
const isOldRevision = (revision: string | undefined): revision is string =>
  revision !== undefined && /^\d{4}-\d\d-\d\d$/.test(revision) && revision < MODERN_REVISION

const BATCHING = new Set<string>(REVISIONS.filter(revision => rulesOf(revision).batches))

/** Elicitation and sampling in a session are server requests on a stream. */
const uses =
  (method: string): Feature['isUsed'] =>
  ({ asked: methods, revision }) =>
    methods.includes(method) && isOldRevision(revision)

const calls =
  (...methods: readonly string[]): Feature['isUsed'] =>
  ({ method, revision }) =>
    isOldRevision(revision) && method !== undefined && methods.includes(method)

const FEATURES: readonly Feature[] = [
  {
    name: 'old revision',
    isUsed: ({ revision }) => isOldRevision(revision),
  },
  {
    name: 'sessions',
    isUsed: ({ revision, session, transport }) =>
      isOldRevision(revision) && (session !== undefined || transport !== undefined),
  },
  {
    name: 'HTTP+SSE',
    isUsed: ({ transport }) => transport === 'transport-sse',
  },
  {
    name: 'batches',
    // A line is one message and does not show whether it was part of a batch.
    isUsed: ({ revision }) => (revision !== undefined && BATCHING.has(revision) ? undefined : false),
  },
  { name: 'sampling', isUsed: uses('sampling/createMessage') },
  { name: 'elicitation', isUsed: uses('elicitation/create') },
  { name: 'roots', isUsed: uses('roots/list') },
  {
    name: 'logging/setLevel',
    // By default, audits omit this information.
    isUsed: request =>
      calls('logging/setLevel')(request) || (request.audited && isOldRevision(request.revision) ? undefined : false),
  },
  {
    name: 'resources/subscribe',
    isUsed: calls('resources/subscribe', 'resources/unsubscribe'),
  },
]

export const minuteOf = (at: string | number): string => new Date(at).toISOString().slice(0, 16).replace('T', ' ')

const MAX_CLIENTS = 1_000

const UNNAMED = '(no name)'

type Seen = ReturnType<typeof createSeen>

const createSeen = () => ({ calls: 0, first: Infinity, last: -Infinity })

function recordSeen(seen: Seen, { at, weight }: Pick<LoggedRequest, 'at' | 'weight'>): void {
  seen.calls += weight
  seen.first = Math.min(seen.first, at)
  seen.last = Math.max(seen.last, at)
}

const toUse = ({ calls, first, last }: Seen) => ({
  calls: Math.round(calls),
  first: isoTime(first),
  last: isoTime(last),
})

/** `unknown`: the number of lines that do not show whether the feature was used. */
const countFeature = () => ({ seen: createSeen(), clients: createDistinct(), unknown: 0 })
const countClient = () => ({ seen: createSeen(), features: new Map<string, Seen>() })

function featureRow(feature: string, { seen, clients, unknown }: ReturnType<typeof countFeature>, sampled: boolean) {
  const verdict = seen.calls > 0 ? 'used' : unknown > 0 || sampled ? 'unknown' : 'unused'
  return { feature, verdict, ...toUse(seen), clients: clients.count().count } as const
}

function clientRow({ key, entry: { seen, features } }: Ranked<ReturnType<typeof countClient>>) {
  const [client = '', revision = ''] = key.split('\n')
  return {
    client,
    revision,
    ...toUse(seen),
    features: [...features].map(([feature, use]) => ({ feature, ...toUse(use) })),
  }
}

export type ClientRow = ReturnType<typeof clientRow>

export function createLegacyTally() {
  const counts = new Map(FEATURES.map(({ name }) => [name, countFeature()]))
  const clients = createRanking(MAX_CLIENTS, countClient)

  function usedFeatures(call: LoggedRequest, client: string): string[] {
    return FEATURES.flatMap(({ name, isUsed }) => {
      const count = counts.get(name)
      const used = isUsed(call)
      if (used === undefined && count) count.unknown++
      if (!used || !count) return []
      recordSeen(count.seen, call)
      count.clients.add(client)
      return [name]
    })
  }

  return {
    add(call: LoggedRequest): void {
      const { client = UNNAMED, revision = '-', weight } = call
      const used = usedFeatures(call, client)
      if (used.length === 0) return
      const { seen, features } = clients.count(`${client}\n${revision}`, weight)
      recordSeen(seen, call)
      for (const name of used) {
        const feature = features.get(name) ?? createSeen()
        recordSeen(feature, call)
        features.set(name, feature)
      }
    },
    report(sampled: boolean, max: number) {
      const all = clients.list().map(clientRow)
      const notListed = all.slice(max).reduce((sum, { calls }) => sum + calls, Math.round(clients.forgotten))
      const features = [...counts].map(([feature, count]) => featureRow(feature, count, sampled))
      return { features, clients: all.slice(0, max), notListed }
    },
  }
}
