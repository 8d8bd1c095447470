// Stored tasks, and their form in the protocol. They contain no tokens or credentials.

import { createHash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { HostError, type JsonObject, type ToolDefinition, type User } from '../../core/index.ts'
import { type Call, errorText, isObject, type McpRoute } from '../../core/plugin.ts'
import {
  type ClientInfo,
  limitOwnerOf,
  type RequestInfo,
  type ToolsetChoice,
  withoutCredentials,
} from '../../core/transport.ts'
import type { TaskEnd, TaskRecord, TaskRequest, TaskSummary } from '../families/task-store/index.ts'

export interface Work {
  readonly route: string
  readonly params: Readonly<Record<string, string>>
  readonly tool: string
  readonly args: unknown
  readonly meta: JsonObject
  readonly client: ClientInfo
  /** The caller, without the expiry of the token. */
  readonly user?: Omit<User, 'expiresAt'>
  readonly ip: string
  /** The headers for the config's `configureSession` and `runSession`. */
  readonly headers?: IncomingHttpHeaders
  /** Absent if `configureSession` added the tool individually: the run then calls `configureSession` again. */
  readonly choice?: ToolsetChoice
  readonly again: boolean
}

const digest = (parts: readonly unknown[]) => createHash('sha256').update(JSON.stringify(parts)).digest('base64url')

export const ownerOf = ({ user, offer }: Call): string =>
  digest([user && limitOwnerOf({ user, ip: offer.ip }), offer.route.path, offer.params])

/** Creates an id, which is the credential of an anonymous task. */
export const newId = (): string => randomBytes(24).toString('base64url')

export const isId = (id: string): boolean => /^[\w-]{32}$/.test(id)

/** Returns the account of a caller's tasks: the user on this route for all parameters, or an anonymous network. */
export const accountOf = ({ user, offer }: Call): string =>
  digest(['account', limitOwnerOf({ user, ip: offer.ip }), offer.route.path])

const identityOf = ({ expiresAt: _, ...user }: User): Omit<User, 'expiresAt'> => user

/** Creates the work. `isOfToolset`: false if `configureSession` added the tool individually. */
export function workOf(call: Call, tool: ToolDefinition, args: unknown, isOfToolset: boolean): Work {
  const { offer, user, client, meta } = call
  const { choice, hasRunSession } = offer
  // The progress token belongs to the request. The task reports its own progress.
  const { progressToken: _, ...said } = meta
  return {
    route: offer.route.path,
    params: offer.params,
    tool: tool.name,
    args,
    meta: said as JsonObject,
    client: { info: client.info, capabilities: client.capabilities },
    ...(user && { user: identityOf(user) }),
    ip: offer.ip,
    ...((choice || hasRunSession) && { headers: withoutCredentials(call.headers) }),
    ...(choice && isOfToolset && { choice }),
    again: typeof tool.task === 'object' && tool.task.retry === 'safe',
  }
}

export const factsOf = (work: Work, route: McpRoute, signal: RequestInfo['signal']): RequestInfo => {
  const { params, user, headers = {}, ip, choice } = work
  return { route, params, user: user && { ...user }, headers, ip, choice, signal }
}

interface Queue {
  readonly route: string
  readonly tool: string
  /** True if only `configureSession` offers the tool. */
  readonly chosen: boolean
  /** The toolset of the tool, if the route can serve several tools of this name. */
  readonly toolset?: string | undefined
}

export const packQueue = ({ route, tool, chosen, toolset }: Queue): string => {
  const parts = [route, tool, chosen ? 'chosen' : '']
  return JSON.stringify(toolset === undefined ? parts.slice(0, chosen ? 3 : 2) : [...parts, toolset])
}

export function unpackQueue(queue: string): Queue {
  const [route, tool, chosen, toolset] = JSON.parse(queue) as [string, string, string?, string?]
  return { route, tool, chosen: chosen === 'chosen', toolset }
}

export function unpackWork({ body }: Pick<TaskRecord, 'body'>): Work | undefined {
  try {
    const work: unknown = JSON.parse(body)
    return isObject(work) && typeof work['tool'] === 'string' && typeof work['route'] === 'string'
      ? (work as unknown as Work)
      : undefined
  } catch {
    return undefined
  }
}

type Fields = Record<string, unknown>

const time = (milliseconds: number) => new Date(milliseconds).toISOString()

/** A stored request to the client. `as`: its name in the handler. */
export interface Request {
  readonly method: string
  readonly params: object
  readonly as?: string
}

function statusOf({ state, open }: TaskSummary): string {
  if (state === 'queued' || state === 'running') return open > 0 ? 'input_required' : 'working'
  return state
}

function baseOf(task: TaskSummary, pollInterval: number): Fields {
  const { id, createdAt, updatedAt, until, note, state } = task
  // The last progress message is out of date after the end.
  const isOpen = state === 'queued' || state === 'running'
  return {
    taskId: id,
    status: statusOf(task),
    ...(isOpen && note !== undefined && { statusMessage: note }),
    createdAt: time(createdAt),
    lastUpdatedAt: time(updatedAt),
    ttlMs: until - createdAt,
    pollIntervalMs: pollInterval,
  }
}

function inputRequestsOf(requests: readonly TaskRequest[]): Fields {
  const open = requests.filter(({ response }) => response === undefined)
  const entries = open.map(({ key, text }) => {
    const { method, params } = JSON.parse(text) as Request
    return [key, { method, params }] as const
  })
  return Object.fromEntries(entries)
}

export const seedOf = (task: TaskSummary, pollInterval: number): Fields => ({
  ...baseOf(task, pollInterval),
  status: 'working',
})

export function detailsOf(task: TaskRecord, pollInterval: number): Fields {
  const base = baseOf(task, pollInterval)
  const { outcome = '{}', requests } = task
  switch (base['status']) {
    case 'input_required':
      return { ...base, inputRequests: inputRequestsOf(requests) }
    case 'completed':
      return { ...base, result: JSON.parse(outcome) as JsonObject }
    case 'failed': {
      const error = JSON.parse(outcome) as { readonly message: string }
      return { ...base, statusMessage: error.message, error }
    }
    default:
      return base
  }
}

export const lineOf = (task: TaskSummary, pollInterval: number): Fields => ({
  ...baseOf(task, pollInterval),
  tool: unpackQueue(task.queue).tool,
})

export function failedWith(thrown: unknown): TaskEnd {
  const error = HostError.is(thrown) ? thrown : new HostError('internal')
  const { code, data } = error
  return {
    state: 'failed',
    outcome: JSON.stringify({ code, message: errorText(error), ...(data !== undefined && { data }) }),
  }
}

const NODE_GONE =
  'The server node that ran this task stopped or was lost. It may have run completely or in part, and is not retried: check before you ' +
  'send it again'

/** Omits advice to retry, because the task is not retryable. */
export const nodeLost = (): TaskEnd => ({
  state: 'failed',
  outcome: JSON.stringify({ code: new HostError('nodeLost').code, message: NODE_GONE, data: { reason: 'node-lost' } }),
})

export const taskLost = (): TaskEnd =>
  failedWith(
    new HostError('nodeLost', {
      detail: 'the task no longer exists: it has expired, or the task store has lost it',
      data: { reason: 'task-lost' },
    }),
  )
