// Merges the data of several nodes for each screen.
import type {
  CallRow,
  Calls,
  Check,
  ClientRow,
  Clients,
  DenialGroup,
  Denials,
  NodeRow,
  Overview,
  SessionRow,
  Sessions,
  TaskRow,
  Tasks,
  ToolStats,
  UpstreamRow,
  Upstreams,
  Warning,
} from './api.ts'
import type { NodeReply } from './nodes.ts'
import { CAPACITY, HISTORY } from './records.ts'
import {
  groupBy,
  mergeHistory,
  type PackedHistory,
  type PackedItem,
  type PackedNow,
  toStats,
  toToolStats,
} from './stats.ts'

/** The overview of one node, in a form that can be summed up. */
export interface OverviewPart extends Omit<Overview, 'now' | 'history' | 'topTools'> {
  readonly history: PackedHistory
  readonly now: PackedNow
  readonly tools: readonly PackedItem[]
}

/** The data of one node by screen. */
export interface Parts {
  readonly overview: OverviewPart
  readonly calls: Pick<Calls, 'calls' | 'dropped'>
  readonly denials: Denials
  readonly sessions: Sessions
  readonly tasks: Tasks
  readonly clients: Clients
  readonly upstreams: { readonly servers: readonly UpstreamRow[] }
  readonly items: { readonly items: readonly PackedItem[] }
  readonly node: { readonly nodes: readonly NodeRow[] }
  /** The nodes of one program: a single one, or all its workers. */
  readonly program: { readonly nodes: readonly string[] }
  readonly find: { readonly calls: readonly CallRow[] }
}

/** Maximum rows of a reply. */
const MAX_ROWS = { warnings: 100, groups: 500, clients: 500, sessions: 500, tasks: 200, tools: 5, upstreams: 1_000 }

const sum = <Entry>(list: readonly Entry[], of: (entry: Entry) => number) =>
  list.reduce((total, entry) => total + of(entry), 0)
const largest = (list: readonly number[]) => Math.max(...list)
const smallest = (list: readonly number[]) => Math.min(...list)

/** The rows of all nodes, each with the name of its node. */
const replyRows = <Value extends object, Row>(replies: readonly NodeReply[], of: (value: Value) => readonly Row[]) =>
  replies.flatMap(({ name, value }) => of(value as Value).map(row => ({ name, row })))

export const replyValues = <What extends keyof Parts>(_what: What, replies: readonly NodeReply[]) =>
  replies.map(({ value }) => value as Parts[What])

/** The names of the nodes of rows; nothing for a single process. */
const nodesIn = (rows: readonly { readonly name: string }[], isSingleProcess: boolean) =>
  isSingleProcess ? {} : { nodes: [...new Set(rows.map(({ name }) => name))] }

function mergeChecks(replies: readonly NodeReply[], isSingleProcess: boolean): Check[] {
  const rows = replyRows(replies, ({ checks }: OverviewPart) => checks)
  return groupBy(rows, ({ row }) => row.name).map(group => {
    const failed = group.filter(({ row }) => !row.ok)
    const reasons = failed.flatMap(({ name, row }) => {
      if (row.reason === undefined) return isSingleProcess ? [] : name
      return isSingleProcess ? row.reason : `${name}: ${row.reason}`
    })
    const [{ row }] = group as [(typeof group)[0]]
    return { name: row.name, ok: failed.length === 0, ...(reasons.length > 0 && { reason: reasons.join('; ') }) }
  })
}

const mergeWarnings = (warnings: readonly Warning[]): Warning[] =>
  groupBy(warnings, ({ code, message, at, upstream }) => [code, message, at, upstream])
    .slice(0, MAX_ROWS.warnings)
    .map(group => ({
      ...(group[0] as Warning),
      count: sum(group, ({ count }) => count),
      firstAt: smallest(group.map(({ firstAt }) => firstAt)),
      lastAt: largest(group.map(({ lastAt }) => lastAt)),
    }))

/** Undefined without replies. `isSum`: the replies of all nodes, not of a selected one. */
export function mergeOverviews(
  replies: readonly NodeReply[],
  isSingleProcess: boolean,
  isSum: boolean,
): Overview | undefined {
  const parts = replyValues('overview', replies)
  const [first] = parts
  if (!first) return undefined
  const tools = toToolStats(parts.flatMap(part => part.tools)).sort((one, other) => other.calls - one.calls)
  return {
    version: first.version,
    nodeVersion: first.nodeVersion,
    ...(!isSum && { pid: first.pid }),
    processes: first.processes,
    uptime: smallest(parts.map(({ uptime }) => uptime)),
    ready: parts.every(({ ready }) => ready),
    checks: mergeChecks(replies, isSingleProcess),
    warnings: mergeWarnings(parts.flatMap(({ warnings }) => warnings)),
    now: toStats(parts.map(({ now }) => now)),
    history: mergeHistory(
      parts.map(({ history }) => history),
      HISTORY - 1,
    ),
    topTools: tools.slice(0, MAX_ROWS.tools),
    inFlight: sum(parts, ({ inFlight }) => inFlight),
    sessions: sum(parts, ({ sessions }) => sessions),
    streams: sum(parts, ({ streams }) => streams),
    memory: { rss: sum(parts, ({ memory }) => memory.rss), heapUsed: sum(parts, ({ memory }) => memory.heapUsed) },
    plugins: [...new Set(parts.flatMap(({ plugins }) => plugins))],
  }
}

export const mergeItems = (replies: readonly NodeReply[]): ToolStats[] =>
  toToolStats(replyValues('items', replies).flatMap(({ items }) => items))

export function mergeCalls(replies: readonly NodeReply[], limit: number): Calls {
  const parts = replyValues('calls', replies)
  const calls = parts.flatMap(part => part.calls)
  return {
    // The calls of one node are in order.
    calls: parts.length === 1 ? calls : calls.sort((one, other) => other.at - one.at).slice(0, limit),
    dropped: sum(parts, ({ dropped }) => dropped),
    capacity: CAPACITY,
  }
}

export function mergeDenials(replies: readonly NodeReply[], isSingleProcess: boolean): Denials {
  const rows = replyRows(replies, ({ groups }: Denials) => groups)
  const groups = groupBy(rows, ({ row: { kind, refusedBy, route, method, item, client } }) => [
    kind,
    refusedBy,
    route,
    method,
    item?.kind,
    item?.name,
    client,
  ])
    .map(group => {
      const byTime = group.map(({ row }) => row).sort((one, other) => other.lastAt - one.lastAt)
      return {
        ...(byTime[0] as DenialGroup),
        ...nodesIn(group, isSingleProcess),
        count: sum(byTime, ({ count }) => count),
        firstAt: smallest(byTime.map(({ firstAt }) => firstAt)),
      }
    })
    .sort((one, other) => other.lastAt - one.lastAt)
  const omitted = sum(groups.slice(MAX_ROWS.groups), ({ count }) => count)
  return {
    groups: groups.slice(0, MAX_ROWS.groups),
    other: omitted + sum(replyValues('denials', replies), ({ other }) => other),
  }
}

export function mergeClients(replies: readonly NodeReply[], isSingleProcess: boolean): Clients {
  const parts = replyValues('clients', replies)
  const rows = replyRows(replies, ({ clients }: Clients) => clients)
  const clients = groupBy(rows, ({ row: { name, version, revision, transport } }) => [
    name,
    version,
    revision,
    transport,
  ])
    .map(group => ({
      ...(group[0]?.row as ClientRow),
      ...nodesIn(group, isSingleProcess),
      calls: sum(group, ({ row }) => row.calls),
      lastAt: largest(group.map(({ row }) => row.lastAt)),
    }))
    .sort((one, other) => other.calls - one.calls)
  const legacies = parts.map(({ legacy }) => legacy)
  const sse = sum(legacies, legacy => legacy.sse)
  return {
    clients: clients.slice(0, MAX_ROWS.clients),
    other: sum(clients.slice(MAX_ROWS.clients), ({ calls }) => calls) + sum(parts, ({ other }) => other),
    legacy: {
      since: smallest(legacies.map(({ since }) => since)),
      calls: sum(legacies, ({ calls }) => calls),
      handshake: sum(legacies, ({ handshake }) => handshake),
      sse,
      ...(legacies.some(({ sseNeeded }) => sseNeeded !== undefined) && { sseNeeded: sse > 0 }),
    },
  }
}

export function mergeUpstreams(replies: readonly NodeReply[]): Pick<Upstreams, 'servers' | 'total'> {
  const rows = replyRows(replies, ({ servers }: Parts['upstreams']) => servers)
    .map(({ name: node, row }) => ({ ...row, node }))
    .sort((one, other) => one.name.localeCompare(other.name) || one.node.localeCompare(other.node))
  return { servers: rows.slice(0, MAX_ROWS.upstreams), total: rows.length }
}

/** Several nodes can have a copy of one session. A session whose own node does not reply is shown at a node with a copy. */
export function mergeSessions(replies: readonly NodeReply[]): Sessions {
  const parts = replyValues('sessions', replies)
  const replied = new Set(replies.map(({ name }) => name))
  const rows = replyRows(replies, ({ sessions: own }: Sessions) => own)
  const sessions = groupBy(rows, ({ row }) => row.handle)
    .map(copies => {
      const byUse = copies.sort((one, other) => other.row.lastUsedAt - one.row.lastUsedAt)
      const { name, row } = byUse[0] as (typeof copies)[0]
      const node = replied.has(row.node) ? row.node : name
      return { ...row, node, streams: sum(copies, copy => copy.row.streams) } satisfies SessionRow
    })
    .sort((one, other) => other.lastUsedAt - one.lastUsedAt)
  return {
    sessions: sessions.slice(0, MAX_ROWS.sessions),
    total: sum(parts, ({ total }) => total),
    streams: sum(parts, ({ streams }) => streams),
    waitingBytes: sum(parts, ({ waitingBytes }) => waitingBytes),
  }
}

/** Nodes that share a store list the same tasks. */
export function mergeTasks(replies: readonly NodeReply[], isSingleProcess: boolean): Tasks {
  const parts = replyValues('tasks', replies)
  const [only] = parts
  if (only && parts.length === 1 && isSingleProcess) return only
  const groups = groupBy(
    replyRows(replies, ({ tasks }: Tasks) => tasks),
    ({ row }) => row.handle,
  )
  const isShared = groups.some(group => group.length > 1)
  const tasks = groups
    .map(group => {
      const newest = group.sort((one, other) => other.row.updatedAt - one.row.updatedAt)[0] as (typeof group)[0]
      return { ...newest.row, ...(group.length === 1 && !isShared && { node: newest.name }) } satisfies TaskRow
    })
    .sort((one, other) => other.createdAt - one.createdAt)
  const counts: Record<string, number> = {}
  for (const { status } of tasks) counts[status] = (counts[status] ?? 0) + 1
  const queued = parts.map(part => part.counts['queued'] ?? 0)
  const allQueued = isShared ? largest(queued) : sum(queued, depth => depth)
  const ages = parts.flatMap(({ queueAge }) => queueAge ?? [])
  if (allQueued > 0) counts['queued'] = allQueued
  return { tasks: tasks.slice(0, MAX_ROWS.tasks), counts, ...(ages.length > 0 && { queueAge: largest(ages) }) }
}
