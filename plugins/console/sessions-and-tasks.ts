// Screens 8 and 9: sessions of this node and tasks of its stores, with the actions on them.

import type { InternalHost, Operator } from '../../core/internal.ts'
import { isObject } from '../../core/plugin.ts'
import { plainText, type Session } from '../../core/transport.ts'
import { hasEnded, type TaskStore, type TaskSummary } from '../families/task-store/index.ts'
import type { SessionRow, Sessions, TaskRow, Tasks } from './api.ts'

const MAX_SESSIONS = 500
const MAX_TASKS = 200
const MAX_TEXT = 64

interface StoreParts {
  readonly host: InternalHost
  readonly operator: Operator
  readonly handleOf: (id: string) => string
}

function clientOf({ client: { info } }: Session): SessionRow['client'] {
  if (!isObject(info)) return undefined
  const { name, version } = info
  return { name: plainText(String(name ?? ''), MAX_TEXT), version: plainText(String(version ?? ''), MAX_TEXT) }
}

function sessionRow(session: Session, { operator, handleOf }: StoreParts): SessionRow {
  const { digest, home, offer, lastUsed, revision, transport, streams } = session
  const client = clientOf(session)
  return {
    handle: handleOf(digest),
    node: home,
    route: offer.route.path,
    lastUsedAt: Math.round(lastUsed),
    ...(offer.user && { owner: operator.pseudonymOf(offer.user) }),
    ...(client && { client }),
    ...(revision !== undefined && { revision }),
    transport,
    streams: streams.size,
  }
}

/** Counts the sessions whose home is this node, without copies of other sessions. */
export function countSessions({ services }: InternalHost): number {
  let count = 0
  for (const { home, offer } of services.sessions.list()) {
    if (home === services.slot('sessionStore', offer.route).node) count++
  }
  return count
}

export function readSessions(parts: StoreParts): Sessions {
  const { services } = parts.host
  const newest = [...services.sessions.list()].sort((one, other) => other.lastUsed - one.lastUsed)
  const { streams, waitingBytes } = parts.operator.traffic
  const sessions = newest.slice(0, MAX_SESSIONS).map(session => sessionRow(session, parts))
  return { sessions, total: countSessions(parts.host), streams, waitingBytes }
}

/** Returns route and owner of the session; undefined if this node has no such session. */
export async function endSession({ host, operator, handleOf }: StoreParts, handle: string) {
  const { sessions } = host.services
  const found = [...sessions.list()].find(({ digest }) => handleOf(digest) === handle)
  if (!found) return undefined
  await sessions.end(found, new Error('an operator ended the session'))
  const { route, user } = found.offer
  return { target: route.path, ...(user && { owner: operator.pseudonymOf(user) }) }
}

const storesOf = ({ host }: StoreParts): ReadonlySet<TaskStore> =>
  new Set(host.routes.map(route => host.services.slot('taskStore', route)))

/** A queue is the JSON of a route, a tool and further parts. */
function queueOf(queue: string): Pick<TaskRow, 'tool' | 'route'> {
  try {
    const parts: unknown = JSON.parse(queue)
    const [route, tool] = Array.isArray(parts) ? parts : []
    if (typeof route === 'string' && typeof tool === 'string') return { route, tool }
  } catch {
    // The queue belongs to another plugin.
  }
  return { tool: queue.slice(0, MAX_TEXT) }
}

const statusOf = ({ state, open }: TaskSummary): string =>
  state !== 'running' ? state : open > 0 ? 'input_required' : 'working'

export async function readTasks(parts: StoreParts): Promise<Tasks> {
  const stores = [...storesOf(parts)]
  const listed = (await Promise.all(stores.map(store => store.listAll(MAX_TASKS)))).flat()
  const depths = (await Promise.all(stores.map(store => store.depths()))).flat()
  const counts: Record<string, number> = {}
  for (const task of listed) counts[statusOf(task)] = (counts[statusOf(task)] ?? 0) + 1
  // The list is limited; the depths are not.
  const queued = depths.reduce((sum, depth) => sum + depth.queued, 0)
  if (queued > 0) counts['queued'] = queued
  const tasks = listed
    .sort((one, other) => other.createdAt - one.createdAt)
    .slice(0, MAX_TASKS)
    .map(task => ({
      handle: parts.handleOf(task.id),
      ...queueOf(task.queue),
      status: statusOf(task),
      createdAt: task.createdAt,
      updatedAt: task.updatedAt,
      owner: parts.handleOf(task.owner).slice(0, 16),
    }))
  return { tasks, counts, ...(queued > 0 && { queueAge: Math.max(...depths.map(({ waited }) => waited)) / 1_000 }) }
}

/** Returns the tool of the task; undefined if the task does not exist or has ended. */
export async function cancelTask(parts: StoreParts, handle: string): Promise<string | undefined> {
  for (const store of storesOf(parts)) {
    const found = (await store.listAll(MAX_TASKS)).find(task => parts.handleOf(task.id) === handle)
    if (found && !hasEnded(found.state) && (await store.cancel(found.id))) return queueOf(found.queue).tool
  }
  return undefined
}
