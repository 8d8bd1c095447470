// Merges call statistics of several nodes. `Packed` types are those of one node in a message.
import type { CallStats, ItemKind, Second, ToolStats } from './api.ts'
import { type PackedHistogram, toQuantiles, unpackHistogram } from './histogram.ts'

export interface PackedSum {
  readonly calls: number
  readonly errors: number
  readonly denials: number
  readonly times: PackedHistogram
}

export interface PackedSecond extends PackedSum {
  /** Seconds since the epoch. */
  readonly at: number
}

export interface PackedNow extends PackedSum {
  /** Seconds that the sum covers. */
  readonly seconds: number
}

export interface PackedItem extends PackedSum {
  readonly route: string
  readonly kind: ItemKind
  readonly name: string
  readonly lastAt: number
}

/** The seconds with calls, from `from` until before `until`. */
export interface PackedHistory {
  readonly from: number
  readonly until: number
  readonly seconds: readonly PackedSecond[]
}

function addSums(sums: readonly PackedSum[]) {
  const total = (key: 'calls' | 'errors' | 'denials') => sums.reduce((all, sum) => all + sum[key], 0)
  const times = sums.filter(sum => sum.calls > 0).map(sum => unpackHistogram(sum.times))
  return { calls: total('calls'), errors: total('errors'), denials: total('denials'), ...toQuantiles(times) }
}

export const toSecond = (at: number, sums: readonly PackedSum[]): Second => ({ at, ...addSums(sums) })

export function toStats(nodes: readonly PackedNow[]): CallStats {
  const { calls, errors, denials, ...quantiles } = addSums(nodes)
  const share = (part: number) => (calls === 0 ? 0 : part / calls)
  const callsPerSecond = nodes.reduce((sum, node) => sum + node.calls / node.seconds, 0)
  return { callsPerSecond, errors: share(errors), denials: share(denials), ...quantiles }
}

/** The entries of several lists, grouped by key. */
export function groupBy<Entry>(entries: readonly Entry[], keyOf: (entry: Entry) => unknown): Entry[][] {
  const groups = new Map<string, Entry[]>()
  for (const entry of entries) {
    const key = JSON.stringify(keyOf(entry))
    const group = groups.get(key)
    if (group) group.push(entry)
    else groups.set(key, [entry])
  }
  return [...groups.values()]
}

/** Returns the newest seconds, at most `max`. */
export function mergeHistory(nodes: readonly PackedHistory[], max: number): Second[] {
  const until = Math.max(...nodes.map(node => node.until))
  const from = Math.max(until - max, Math.min(...nodes.map(node => node.from)))
  const sums = new Map<number, PackedSecond[]>()
  for (const second of nodes.flatMap(({ seconds }) => seconds)) {
    sums.set(second.at, [...(sums.get(second.at) ?? []), second])
  }
  return Array.from({ length: Math.max(0, until - from) }, (_, index) =>
    toSecond(from + index, sums.get(from + index) ?? []),
  )
}

export const toToolStats = (items: readonly PackedItem[]): ToolStats[] =>
  groupBy(items, ({ route, kind, name }) => [route, kind, name]).map(group => {
    const [{ route, kind, name }] = group as [PackedItem]
    return { route, kind, name, ...addSums(group), lastAt: Math.max(...group.map(({ lastAt }) => lastAt)) }
  })
