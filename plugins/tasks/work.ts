// The stored work of a task, its owner and its queue. Never contains tokens or headers that look like credentials.
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import {
  type Call,
  isObject,
  type JsonObject,
  type McpRoute,
  type ToolDefinition,
  type User,
} from '../../core/index.ts'
import {
  type ClientFacts,
  holderOf,
  type RequestFacts,
  type TaskRecord,
  type ToolsetChoice,
  withoutCredentials,
} from '../../core/transport.ts'

export interface Work {
  readonly route: string
  readonly params: Readonly<Record<string, string>>
  readonly tool: string
  readonly args: unknown
  readonly meta: JsonObject
  readonly client: ClientFacts
  /** The caller, without the expiry of the token. */
  readonly user?: Omit<User, 'expiresAt'>
  readonly ip: string
  /** For the config's `configureSession` and `runSession`. */
  readonly headers?: IncomingHttpHeaders
  /** The choice of `configureSession`. Absent for a tool that it added individually: the run then calls `configureSession` again. */
  readonly choice?: ToolsetChoice
  /** Whether the task can run again after its node died. */
  readonly again: boolean
}

const digest = (parts: readonly unknown[]) => createHash('sha256').update(JSON.stringify(parts)).digest('base64url')

/** The user at this address; for anonymous calls anyone who has the id. */
export const ownerOf = ({ user, offer }: Call): string =>
  digest([user && holderOf({ user, ip: offer.ip }), offer.route.path, offer.params])

/** For an anonymous task the id is the credential. */
export const newId = (): string => randomBytes(24).toString('base64url')

/** Filters invalid ids without a store request. */
export const isId = (id: string): boolean => /^[\w-]{32}$/.test(id)

/** The account of a caller's tasks: the user on this route for all parameters; for anonymous callers their network. */
export const accountOf = ({ user, offer }: Call): string =>
  digest(['account', holderOf({ user, ip: offer.ip }), offer.route.path])

const identityOf = ({ expiresAt: _, ...user }: User): Omit<User, 'expiresAt'> => user

/** `isOfToolset`: false if `configureSession` added the tool individually. */
export function workOf(call: Call, tool: ToolDefinition, args: unknown, isOfToolset: boolean): Work {
  const { offer, user, client, meta } = call
  const { choice, spansRun } = offer
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
    ...((choice || spansRun) && { headers: withoutCredentials(call.headers) }),
    ...(choice && isOfToolset && { choice }),
    again: typeof tool.task === 'object' && tool.task.retry === 'safe',
  }
}

/** The facts from which the offer of a run is made. */
export const factsOf = (work: Work, route: McpRoute, signal: RequestFacts['signal']): RequestFacts => {
  const { params, user, headers = {}, ip, choice } = work
  return { route, params, user: user && { ...user }, headers, ip, choice, signal }
}

export interface Queue {
  readonly route: string
  readonly tool: string
  /** Whether only `configureSession` offers the tool. */
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

/** The owner comes first, because nodes of an older version expect it there. */
export const packWork = (owner: string, work: Work): string => `${owner}\n${JSON.stringify(work)}`

export const isOwnedBy = (task: Pick<TaskRecord, 'owner'>, owner: string): boolean => task.owner === owner

/** Undefined for data of another version. */
export function unpackWork({ body }: Pick<TaskRecord, 'body'>): Work | undefined {
  try {
    const work: unknown = JSON.parse(body.slice(body.indexOf('\n') + 1))
    return isObject(work) && typeof work['tool'] === 'string' && typeof work['route'] === 'string'
      ? (work as unknown as Work)
      : undefined
  } catch {
    return undefined
  }
}
