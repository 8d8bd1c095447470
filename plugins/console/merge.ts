// Sums up the data of several nodes for one screen.
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
  ToolFigures,
  Warning,
} from './api.ts'
import {
  figuresOf,
  groupBy,
  historyOf,
  type PackedHistory,
  type PackedItem,
  type PackedNow,
  toolFiguresOf,
} from './figures.ts'
import type { Answer } from './nodes.ts'
import { CAPACITY, HISTORY } from './records.ts'

type Own = 'version' | 'nodeVersion' | 'pid' | 'processes' | 'uptime' | 'ready' | 'checks' | 'warnings' | 'plugins'
type Counted = 'inFlight' | 'sessions' | 'streams' | 'memory'

/** The overview of one node, in a form that can be summed up. */
export interface OverviewPart extends Pick<Overview, Own | Counted> {
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
  readonly items: { readonly items: readonly PackedItem[] }
  readonly node: { readonly nodes: readonly NodeRow[] }
  readonly find: { readonly calls: readonly CallRow[] }
}

/** Rows of a reply. */
const MOST = { warnings: 100, groups: 500, clients: 500, sessions: 500, tasks: 200, tools: 5 }

const sum = <Entry>(list: readonly Entry[], of: (entry: Entry) => number) =>
  list.reduce((total, entry) => total + of(entry), 0)
const most = (list: readonly number[]) => Math.max(...list)
const least = (list: readonly number[]) => Math.min(...list)

/** The rows of all nodes, each with the name of its node. */
const rowsOf = <Value extends object, Row>(answers: readonly Answer[], of: (value: Value) => readonly Row[]) =>
  answers.flatMap(({ name, value }) => of(value as Value).map(row => ({ name, row })))

export const valuesOf = <What extends keyof Parts>(_what: What, answers: readonly Answer[]) =>
  answers.map(({ value }) => value as Parts[What])

/** The names of nodes, unless there is only one process. */
const nodesIn = (rows: readonly { readonly name: string }[], isAlone: boolean) =>
  isAlone ? {} : { nodes: [...new Set(rows.map(({ name }) => name))] }

function mergeChecks(answers: readonly Answer[], isAlone: boolean): Check[] {
  const rows = rowsOf(answers, ({ checks }: OverviewPart) => checks)
  return groupBy(rows, ({ row }) => row.name).map(group => {
    const failed = group.filter(({ row }) => !row.ok)
    const reasons = failed.flatMap(({ name, row }) => {
      if (row.reason === undefined) return isAlone ? [] : name
      return isAlone ? row.reason : `${name}: ${row.reason}`
    })
    const [{ row }] = group as [(typeof group)[0]]
    return { name: row.name, ok: failed.length === 0, ...(reasons.length > 0 && { reason: reasons.join('; ') }) }
  })
}

const mergeWarnings = (warnings: readonly Warning[]): Warning[] =>
  groupBy(warnings, ({ code, message, at }) => [code, message, at])
    .slice(0, MOST.warnings)
    .map(group => ({
      ...(group[0] as Warning),
      count: sum(group, ({ count }) => count),
      firstAt: least(group.map(({ firstAt }) => firstAt)),
      lastAt: most(group.map(({ lastAt }) => lastAt)),
    }))

/** Without answers there is no overview. */
export function mergeOverviews(answers: readonly Answer[], isAlone: boolean): Overview | undefined {
  const parts = valuesOf('overview', answers)
  const [first] = parts
  if (!first) return undefined
  const { version, nodeVersion, pid, processes } = first
  const tools = toolFiguresOf(parts.flatMap(part => part.tools)).sort((one, other) => other.calls - one.calls)
  return {
    ...{ version, nodeVersion, pid, processes },
    uptime: least(parts.map(({ uptime }) => uptime)),
    ready: parts.every(({ ready }) => ready),
    checks: mergeChecks(answers, isAlone),
    warnings: mergeWarnings(parts.flatMap(({ warnings }) => warnings)),
    now: figuresOf(parts.map(({ now }) => now)),
    history: historyOf(
      parts.map(({ history }) => history),
      HISTORY - 1,
    ),
    topTools: tools.slice(0, MOST.tools),
    inFlight: sum(parts, ({ inFlight }) => inFlight),
    sessions: sum(parts, ({ sessions }) => sessions),
    streams: sum(parts, ({ streams }) => streams),
    memory: { rss: sum(parts, ({ memory }) => memory.rss), heapUsed: sum(parts, ({ memory }) => memory.heapUsed) },
    plugins: [...new Set(parts.flatMap(({ plugins }) => plugins))],
  }
}

export const mergeItems = (answers: readonly Answer[]): ToolFigures[] =>
  toolFiguresOf(valuesOf('items', answers).flatMap(({ items }) => items))

export function mergeCalls(answers: readonly Answer[], limit: number): Calls {
  const parts = valuesOf('calls', answers)
  const calls = parts.flatMap(part => part.calls)
  return {
    // The calls of one node are in order.
    calls: parts.length === 1 ? calls : calls.sort((one, other) => other.at - one.at).slice(0, limit),
    dropped: sum(parts, ({ dropped }) => dropped),
    capacity: CAPACITY,
  }
}

export function mergeDenials(answers: readonly Answer[], isAlone: boolean): Denials {
  const rows = rowsOf(answers, ({ groups }: Denials) => groups)
  const groups = groupBy(rows, ({ row: { kind, refusedBy, route, method, item, client } }) => [
    ...[kind, refusedBy, route, method, item?.kind, item?.name, client],
  ])
    .map(group => {
      const byTime = group.map(({ row }) => row).sort((one, other) => other.lastAt - one.lastAt)
      return {
        ...(byTime[0] as DenialGroup),
        ...nodesIn(group, isAlone),
        count: sum(byTime, ({ count }) => count),
        firstAt: least(byTime.map(({ firstAt }) => firstAt)),
      }
    })
    .sort((one, other) => other.lastAt - one.lastAt)
  const omitted = sum(groups.slice(MOST.groups), ({ count }) => count)
  return {
    groups: groups.slice(0, MOST.groups),
    other: omitted + sum(valuesOf('denials', answers), ({ other }) => other),
  }
}

export function mergeClients(answers: readonly Answer[], isAlone: boolean): Clients {
  const parts = valuesOf('clients', answers)
  const rows = rowsOf(answers, ({ clients }: Clients) => clients)
  const clients = groupBy(rows, ({ row: { name, version, revision, transport } }) => [
    ...[name, version, revision, transport],
  ])
    .map(group => ({
      ...(group[0]?.row as ClientRow),
      ...nodesIn(group, isAlone),
      calls: sum(group, ({ row }) => row.calls),
      lastAt: most(group.map(({ row }) => row.lastAt)),
    }))
    .sort((one, other) => other.calls - one.calls)
  const legacies = parts.map(({ legacy }) => legacy)
  const sse = sum(legacies, legacy => legacy.sse)
  return {
    clients: clients.slice(0, MOST.clients),
    other: sum(clients.slice(MOST.clients), ({ calls }) => calls) + sum(parts, ({ other }) => other),
    legacy: {
      since: least(legacies.map(({ since }) => since)),
      calls: sum(legacies, ({ calls }) => calls),
      handshake: sum(legacies, ({ handshake }) => handshake),
      sse,
      ...(legacies.some(({ sseNeeded }) => sseNeeded !== undefined) && { sseNeeded: sse > 0 }),
    },
  }
}

/** Several nodes can have a copy of one session. */
export function mergeSessions(answers: readonly Answer[]): Sessions {
  const parts = valuesOf('sessions', answers)
  const sessions = groupBy(
    parts.flatMap(part => part.sessions),
    ({ handle }) => handle,
  )
    .map(copies => {
      const byUse = copies.sort((one, other) => (other.lastUsedAt ?? 0) - (one.lastUsedAt ?? 0))
      return { ...(byUse[0] as SessionRow), streams: sum(copies, ({ streams }) => streams) }
    })
    .sort((one, other) => (other.lastUsedAt ?? 0) - (one.lastUsedAt ?? 0))
  return {
    sessions: sessions.slice(0, MOST.sessions),
    total: sum(parts, ({ total }) => total),
    streams: sum(parts, ({ streams }) => streams),
    waitingBytes: sum(parts, ({ waitingBytes }) => waitingBytes),
  }
}

/** Nodes that share a store list the same tasks. */
export function mergeTasks(answers: readonly Answer[], isAlone: boolean): Tasks {
  const parts = valuesOf('tasks', answers)
  const [only] = parts
  if (only && parts.length === 1 && isAlone) return only
  const groups = groupBy(
    rowsOf(answers, ({ tasks }: Tasks) => tasks),
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
  const allQueued = isShared ? most(queued) : sum(queued, number => number)
  const ages = parts.flatMap(({ queueAge }) => queueAge ?? [])
  if (allQueued > 0) counts['queued'] = allQueued
  return { tasks: tasks.slice(0, MOST.tasks), counts, ...(ages.length > 0 && { queueAge: most(ages) }) }
}
