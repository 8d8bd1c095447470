// Who still uses what of the old protocol: kept for each client name and version with each revision, and for each feature.

import { isoTime } from '../iso-time.ts'
import { adviseOn, type Span } from './advice.ts'
import { createDistinct, type Distinct } from './distinct.ts'
import { DCR, FEATURES } from './features.ts'
import type { LoggedRequest } from './logged-request.ts'
import { createRanking } from './ranking.ts'
import type { ClientRow, FeatureRow, Legacy, Use, Verdict } from './report.ts'

/** Clients that are kept with their revisions; the rest is counted together. */
const MOST_CLIENTS = 1_000

export const NAMELESS = '(no name)'

/** How often, and between when and when, in milliseconds since the epoch. */
export interface Seen {
  calls: number
  first: number
  last: number
}

const neverSeen = (): Seen => ({ calls: 0, first: Infinity, last: -Infinity })

function see(seen: Seen, { at, weight }: Pick<LoggedRequest, 'at' | 'weight'>): void {
  seen.calls += weight
  seen.first = Math.min(seen.first, at)
  seen.last = Math.max(seen.last, at)
}

const useOf = ({ calls, first, last }: Seen): Use => ({
  calls: Math.round(calls),
  first: isoTime(first),
  last: isoTime(last),
})

interface Kept {
  readonly client: string
  readonly revision: string
  readonly seen: Seen
  readonly features: Map<string, Seen>
}

interface FeatureCount {
  readonly seen: Seen
  readonly clients: Distinct
  /** Requests that do not say it. */
  untold: number
}

const verdictOf = ({ seen, untold }: FeatureCount, sampled: boolean): Verdict =>
  seen.calls > 0 ? 'used' : untold > 0 || sampled ? 'untold' : 'unused'

export interface LegacyTally {
  add(call: LoggedRequest): void
  /** `from`, `until`: the span of what was read; `most`: rows. */
  tell(span: Span, most: number): Legacy
}

export function createLegacyTally(): LegacyTally {
  const counts = new Map<string, FeatureCount>(
    FEATURES.map(({ name }) => [name, { seen: neverSeen(), clients: createDistinct(), untold: 0 }]),
  )
  const clients = createRanking<{ kept?: Kept }>(MOST_CLIENTS, () => ({}))

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
    add(call) {
      const { client = NAMELESS, revision = '-', weight } = call
      const used = usedBy(call, client)
      if (used.length === 0) return
      const entry = clients.count(`${client}\n${revision}`, weight)
      entry.kept ??= { client, revision, seen: neverSeen(), features: new Map() }
      const { seen, features } = entry.kept
      see(seen, call)
      for (const name of used) {
        const feature = features.get(name) ?? neverSeen()
        see(feature, call)
        features.set(name, feature)
      }
    },
    tell(span, most) {
      const rows = [...counts].map(
        ([feature, count]): FeatureRow => ({
          feature,
          verdict: verdictOf(count, span.sampled),
          ...useOf(count.seen),
          clients: count.clients.count().count,
        }),
      )
      const dcr: FeatureRow = { feature: DCR, verdict: 'untold', ...useOf(neverSeen()), clients: 0 }
      const known = clients.list().flatMap(({ entry }) => entry.kept ?? [])
      const all = known.map(
        ({ client, revision, seen, features }): ClientRow => ({
          client,
          revision,
          ...useOf(seen),
          features: [...features].map(([feature, use]) => ({ feature, ...useOf(use) })),
        }),
      )
      const notListed = all.slice(most).reduce((sum, { calls }) => sum + calls, Math.round(clients.forgotten))
      const features = [...rows, dcr]
      return { features, clients: all.slice(0, most), notListed, advice: adviseOn(features, all, span) }
    },
  }
}
