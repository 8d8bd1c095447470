// Keeps the newest call records within a limit of bytes, and sums them up: per second, per item, per denial and per client.
import { KeyedLru } from '../../core/internal.ts'
import type { CallRecord } from '../../core/plugin.ts'
import { isHandshakeRevision, plainText } from '../../core/transport.ts'
import type { CallRow, ClientRow, Clients, DenialGroup, Denials, ItemKind, LegacyUse } from './api.ts'
import { createHistogram, findBucket, type Histogram, packHistogram } from './histogram.ts'
import type { PackedHistory, PackedItem, PackedNow, PackedSecond, PackedSum } from './stats.ts'
import { RequestTimeline } from './timeline.ts'

/** Records in the ring buffer, and their estimated bytes. */
export const CAPACITY = { records: 2_000, bytes: 2 * 1_048_576 }
/** Maximum records per second of successful calls, of other calls, and of other calls with the same cause. Figures count all calls. */
const MAX_KEPT = { ok: 200, others: 500, same: 20 }
/** Seconds of history. */
export const HISTORY = 300
/** Seconds of `Overview.now`. */
const NOW = 60
const MAX_ITEMS = 1_000
const MAX_GROUPS = 500
const MAX_CLIENTS = 500
/** Characters of texts that a client can influence. */
const MAX_TEXT = 256
/** Estimated bytes of a record without its texts. */
const ROW_BYTES = 400
const STAGE_BYTES = 100
/** Requests of a batch with stages. */
export const MAX_TIMED = 50

const DENIED: ReadonlySet<number | undefined> = new Set([401, 403, 429])

/** Denials are the rows with the outcome `refused`. Refusals with a 5xx status are errors. */
function outcomeOf({ outcome, error }: CallRecord): CallRow['outcome'] {
  if (outcome === 'error' && DENIED.has(error?.status)) return 'refused'
  return outcome === 'refused' && error && error.status >= 500 ? 'error' : outcome
}

const truncate = (text: string) => (text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`)

const round = (milliseconds: number) => Math.round(milliseconds * 100) / 100

/** Leaves out arguments, results, tokens, IP addresses and session ids. */
function rowOf(record: CallRecord, outcome: CallRow['outcome'], seq: number, node: string): CallRow {
  const { at, milliseconds, route, method, item, client, oauthClient, user, revision, transport } = record
  const { http, bytesIn, bytesOut, requestId, traceId, asked, upstream, error, refusedBy, timeline } = record
  return {
    seq,
    node,
    at: Math.round(at),
    ms: round(milliseconds),
    outcome,
    ...(route !== undefined && { route }),
    ...(method !== undefined && { method }),
    ...(item && { kind: item.kind, name: truncate(item.name) }),
    ...(client && { client }),
    ...(oauthClient !== undefined && { oauthClient }),
    ...(user !== undefined && { user }),
    ...(revision !== undefined && { revision }),
    ...(transport !== undefined && { transport }),
    ...(http && { http }),
    ...(bytesIn !== undefined && { bytesIn }),
    ...(bytesOut !== undefined && { bytesOut }),
    ...(requestId !== undefined && { requestId: truncate(requestId) }),
    ...(traceId !== undefined && { traceId }),
    ...(asked.length > 0 && { asked: [...asked] }),
    ...(upstream && {
      upstream: {
        name: upstream.name,
        ...(upstream.tool !== undefined && { tool: truncate(upstream.tool) }),
        ms: round(upstream.milliseconds),
        ...(upstream.failure !== undefined && { failure: upstream.failure }),
      },
    }),
    ...(error && {
      error: {
        kind: error.kind,
        status: error.status,
        // Without `detail`, which can quote arguments.
        message: error.message.split(':', 1)[0] ?? '',
        ...(error.reason !== undefined && { reason: plainText(error.reason, MAX_TEXT) }),
        ...(refusedBy !== undefined && { refusedBy }),
      },
    }),
    ...(timeline instanceof RequestTimeline && { stages: timeline.stages() }),
  }
}

const sizeOf = ({ name = '', requestId = '', client, oauthClient = '', upstream, error, stages }: CallRow): number =>
  ROW_BYTES +
  STAGE_BYTES * (stages?.length ?? 0) +
  2 *
    (name.length +
      requestId.length +
      oauthClient.length +
      (upstream?.tool?.length ?? 0) +
      (upstream?.failure?.length ?? 0)) +
  2 * ((error?.message.length ?? 0) + (error?.reason?.length ?? 0)) +
  2 * ((client?.name.length ?? 0) + (client?.version.length ?? 0))

interface Sum {
  calls: number
  errors: number
  denials: number
  readonly histogram: Histogram
}

interface SecondSum extends Sum {
  at: number
}

interface ItemSum extends Sum {
  readonly route: string
  readonly kind: ItemKind
  readonly name: string
  lastAt: number
}

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] }

const createSum = (): Sum => ({ calls: 0, errors: 0, denials: 0, histogram: createHistogram() })

function count(sum: Sum, outcome: CallRow['outcome'], bucket: number): void {
  sum.calls++
  if (outcome === 'refused') sum.denials++
  else if (outcome === 'error' || outcome === 'tool_error') sum.errors++
  sum.histogram[bucket] = (sum.histogram[bucket] ?? 0) + 1
}

const packSum = ({ calls, errors, denials, histogram }: Sum): PackedSum => ({
  calls,
  errors,
  denials,
  times: calls === 0 ? [] : packHistogram(histogram),
})

/** Next step for the operator, by error kind. */
const FIXES: Readonly<Record<string, string>> = {
  unauthorized: 'The client needs a valid token: mcp-host doctor <url> shows how it can log in.',
  forbidden: 'Compare the caller with the access rule: mcp-host explain --route <path> --token @file.',
  hostNotAllowed: 'Add the host name to http.allowedHosts, or set http.publicUrl.',
  originNotAllowed: 'Add the origin to http.allowedOrigins, or configure the plugin cors.',
  tooManyRequests: 'The caller exceeded a limit: see the options of the plugin that refused the call.',
  notFound: 'The client uses a path that no route serves: mcp-host connect prints the correct URL.',
}

function createSeconds(now: () => number) {
  const ring: SecondSum[] = []

  function at(second: number): SecondSum {
    const index = second % HISTORY
    const found = ring[index]
    if (found && found.at === second) return found
    if (!found) {
      const made = { at: second, ...createSum() }
      ring[index] = made
      return made
    }
    Object.assign(found, { at: second, calls: 0, errors: 0, denials: 0 })
    found.histogram.fill(0)
    return found
  }

  const secondOf = (milliseconds: number) => Math.floor(milliseconds / 1_000)
  const current = () => secondOf(now())
  const readAt = (second: number) => {
    const found = ring[second % HISTORY]
    return found?.at === second ? found : undefined
  }
  /** The newest complete seconds with calls. */
  const newest = (most: number) => {
    const until = current()
    return Array.from({ length: most }, (_, index) => readAt(until - most + index)).filter(sum => sum !== undefined)
  }

  return {
    sum: (milliseconds: number) => at(secondOf(milliseconds)),
    /** The last complete second. */
    last(): PackedSecond {
      const second = current() - 1
      return { at: second, ...packSum(readAt(second) ?? createSum()) }
    },
    history(began: number): PackedHistory {
      const until = current()
      const from = Math.max(until - HISTORY + 1, Math.floor(began / 1_000))
      const seconds = newest(HISTORY - 1).map(sum => ({ at: sum.at, ...packSum(sum) }))
      return { from, until, seconds }
    },
    now(began: number): PackedNow {
      const sum = createSum()
      for (const { calls, errors, denials, histogram } of newest(NOW)) {
        sum.calls += calls
        sum.errors += errors
        sum.denials += denials
        for (const [index, value] of histogram.entries()) sum.histogram[index] = (sum.histogram[index] ?? 0) + value
      }
      const seconds = Math.min(NOW, Math.max(1, current() - Math.floor(began / 1_000)))
      return { seconds, ...packSum(sum) }
    },
  }
}

export interface CallCollector {
  /** Returns the records since the last batch. `skipped`: the number of calls without a record. */
  take(): { readonly calls: readonly CallRow[]; readonly skipped: number }
  stop(): void
}

/** Leaves out successful calls first. */
export function limitRows(rows: readonly CallRow[], most: number): readonly CallRow[] {
  let ok = most - rows.filter(({ outcome }) => outcome !== 'ok').length
  return rows.filter(({ outcome }) => outcome !== 'ok' || ok-- > 0).slice(0, most)
}

export function createRecords(node: string, now: () => number, samplePathOf: (route: string) => string | undefined) {
  const began = now()
  const ring: CallRow[] = []
  // Clients choose some keys, so the number of entries is limited.
  const items = new KeyedLru<ItemSum>(MAX_ITEMS)
  const groups = new KeyedLru<Mutable<DenialGroup>>(MAX_GROUPS, ({ count }) => {
    otherGroups += count
  })
  const clients = new KeyedLru<Mutable<ClientRow>>(MAX_CLIENTS, ({ calls }) => {
    otherClients += calls
  })
  const seconds = createSeconds(now)
  const legacy: Mutable<LegacyUse> = { since: began, calls: 0, handshake: 0, sse: 0 }
  const listeners = new Set<(row: CallRow) => void>()
  let seq = 0
  let bytes = 0
  let first = 0
  let otherGroups = 0
  let otherClients = 0
  /** Requests with stages since the last batch. */
  let timed = 0
  /** Numbers of records in the current second. */
  const kept = { second: 0, ok: 0, others: 0, same: new Map<string, number>() }

  /** Decides whether a record is kept, and counts it. A flood of one cause does not hide others. */
  function admit(record: CallRecord, outcome: CallRow['outcome'], second: number): boolean {
    if (kept.second !== second) {
      Object.assign(kept, { second, ok: 0, others: 0 })
      kept.same.clear()
    }
    if (record.timeline) return true
    if (outcome === 'ok') return kept.ok++ < MAX_KEPT.ok
    if (kept.others >= MAX_KEPT.others) return false
    // Clients cannot choose these parts.
    const { error, refusedBy, route, method, item } = record
    const cause = JSON.stringify([outcome, error?.kind, refusedBy, route, method, item?.kind, item?.name])
    const same = (kept.same.get(cause) ?? 0) + 1
    if (same > MAX_KEPT.same) return false
    kept.same.set(cause, same)
    kept.others++
    return true
  }

  function keep(row: CallRow) {
    ring.push(row)
    bytes += sizeOf(row)
    while (ring.length - first > CAPACITY.records || bytes > CAPACITY.bytes) {
      bytes -= sizeOf(ring[first] as CallRow)
      first++
    }
    // Removing each row from the front would move all others.
    if (first <= CAPACITY.records) return
    ring.splice(0, first)
    first = 0
  }

  function countItem({ item, route = '' }: CallRecord, outcome: CallRow['outcome'], bucket: number, at: number) {
    if (!item) return
    const { kind } = item
    const name = truncate(item.name)
    const keys = [route, kind, name]
    const sum = items.get(keys) ?? items.add(keys, { route, kind, name, lastAt: 0, ...createSum() })
    count(sum, outcome, bucket)
    sum.lastAt = at
  }

  function countDenial({ error, route, method, kind, name, client, at }: CallRow) {
    if (!error) return
    const by = error.refusedBy ?? 'mcp-host'
    const keys = [error.kind, by, route, method, kind, name, client?.name]
    const fix = FIXES[error.kind]
    const create = () => {
      const samplePath = route === undefined ? undefined : samplePathOf(route)
      return {
        kind: error.kind,
        status: error.status,
        refusedBy: by,
        ...(route !== undefined && { route }),
        ...(samplePath !== undefined && { samplePath }),
        ...(method !== undefined && { method }),
        ...(kind !== undefined && name !== undefined && { item: { kind, name } }),
        ...(client && { client: client.name }),
        ...(fix !== undefined && { fix }),
        message: error.message,
        count: 0,
        firstAt: at,
        lastAt: at,
      }
    }
    const group = groups.get(keys) ?? groups.add(keys, create())
    group.count++
    group.lastAt = at
    group.message = error.message
    if (error.reason === undefined) delete group.reason
    else group.reason = error.reason
  }

  function countClient(record: CallRecord, at: number) {
    if (!record.call && record.method === undefined) return
    const { client, revision = '', transport = '' } = record
    legacy.calls++
    if (isHandshakeRevision(revision)) legacy.handshake++
    if (transport === 'transport-sse') legacy.sse++
    if (!client) return
    const { name, version } = client
    const keys = [name, version, revision, transport]
    const row = clients.get(keys) ?? clients.add(keys, { name, version, revision, transport, calls: 0, lastAt: at })
    row.calls++
    row.lastAt = at
  }

  return {
    observe(record: CallRecord) {
      seq++
      const outcome = outcomeOf(record)
      // Reads the clock once per call: each read takes a tenth of the time of this function.
      const at = now()
      const second = seconds.sum(at)
      const bucket = findBucket(record.milliseconds)
      count(second, outcome, bucket)
      countItem(record, outcome, bucket, at)
      countClient(record, at)
      const isKept = admit(record, outcome, second.at)
      if (!isKept && outcome !== 'refused') return
      const row = rowOf(record, outcome, seq, node)
      if (outcome === 'refused') countDenial(row)
      if (!isKept) return
      keep(row)
      for (const listen of listeners) listen(row)
    },
    /** Undefined without viewers, and after `MAX_TIMED` requests per batch. */
    startTimeline(): RequestTimeline | undefined {
      return listeners.size > 0 && timed++ < MAX_TIMED ? new RequestTimeline() : undefined
    },
    /** Newest first. */
    list: (most: number): CallRow[] => ring.slice(Math.max(first, ring.length - most)).reverse(),
    find: (test: (row: CallRow) => boolean, most: number): CallRow[] =>
      ring.slice(first).reverse().filter(test).slice(0, most),
    dropped: () => seq - (ring.length - first),
    bytes: () => bytes,
    collect(): CallCollector {
      let calls: CallRow[] = []
      let from = seq
      const listener = (row: CallRow) => void calls.push(row)
      listeners.add(listener)
      return {
        take() {
          const batch = { calls, skipped: seq - from - calls.length }
          calls = []
          from = seq
          timed = 0
          return batch
        },
        stop: () => void listeners.delete(listener),
      }
    },
    second: seconds.last,
    history: () => seconds.history(began),
    now: () => seconds.now(began),
    /** The items with the most calls, of one kind or all kinds. */
    items: (of?: ItemKind, most = MAX_ITEMS): PackedItem[] =>
      items
        .values()
        .filter(({ kind }) => of === undefined || kind === of)
        .sort((one, other) => other.calls - one.calls)
        .slice(0, most)
        .map(sum => ({ route: sum.route, kind: sum.kind, name: sum.name, lastAt: sum.lastAt, ...packSum(sum) })),
    denials: (): Denials => ({
      groups: groups.values().sort((one, other) => other.lastAt - one.lastAt),
      other: otherGroups,
    }),
    clients: (): Pick<Clients, 'clients' | 'other'> & { readonly legacy: LegacyUse } => ({
      clients: clients.values().sort((one, other) => other.calls - one.calls),
      legacy: { ...legacy },
      other: otherClients,
    }),
  }
}

export type Records = ReturnType<typeof createRecords>
