// One JSON-RPC message on its way, from the transport that read it to the handler that answers it.
// Below the transport nobody knows HTTP; above the handler nobody changes the result.
import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../kernel/user.ts'
import type { Session } from '../sessions/session.ts'
import { isShortName } from './client-said.ts'
import {
  type ClientCapabilities,
  type Implementation,
  type LogLevel,
  type Meta,
  MODERN_REVISION,
  type ProgressToken,
  type RequestId,
  type Revision,
} from './protocol.ts'
import type { McpRoute } from './routes.ts'
import type { View } from './view.ts'
import { encodeNotification } from './wire.ts'

/** What a transport knows of an HTTP request when it opens a session. */
export interface RequestFacts {
  readonly route: McpRoute
  readonly params: Readonly<Record<string, string>>
  readonly user: User | undefined
  readonly headers: Readonly<IncomingHttpHeaders>
  readonly ip: string
  /** The session's id, where there is one. */
  readonly sessionId?: string
  /** Aborts when the request, or the session it opens, is over. Asked for only by those who wait on it. */
  readonly signal: () => AbortSignal
}

/** A session, or the span of one request where there are none: what its caller sees. */
export interface OpenSession extends Pick<RequestFacts, 'route' | 'params' | 'user' | 'ip'> {
  /** The session's id, where there is one. */
  readonly sessionId: string | undefined
  /** Always current: definitions may come and go while a session lasts. */
  readonly view: View
  /** What this user sees of it: a session's user may come with another token. */
  viewFor(user: User | undefined): View
  /** The names of the toolsets in view. */
  toolsets(): readonly string[]
  /** True where the config has a `runSession`. */
  readonly spansRun: boolean
  /** Runs `body` inside the config's `runSession`. */
  run(body: () => Promise<void>, restored?: boolean): Promise<void>
}

/** What a client says of itself, with `initialize` or with each request. */
export interface ClientFacts {
  readonly info: Implementation | undefined
  readonly capabilities: ClientCapabilities
}

/** What a transport gives to make a Call. */
export interface CallRequest {
  /** Undefined for a notification. */
  readonly id: RequestId | undefined
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
  readonly revision: Revision
  readonly session: OpenSession
  /** The live session behind it; undefined where requests are served one by one. */
  readonly live?: Session | undefined
  readonly client: ClientFacts
  /** Who sends it, where that may differ from who opened the session: the same user with another token. */
  readonly user?: User | undefined
  /** The least severe level that the client wants to see; undefined: none. */
  readonly logLevel: LogLevel | undefined
  /** Up: a notification to the client that belongs to this call. */
  /** Down: client gone, cancelled, session closed, shutting down. Made when first asked for. */
  readonly signal: () => AbortSignal
  /** The headers of the HTTP request that brought it. */
  readonly headers: Readonly<IncomingHttpHeaders>
  /** Up, as `notify`: a message that is serialized already. */
  readonly send: (message: string) => void
  /** How questions reach the client: in the call's result, or as requests of their own; undefined where they cannot. */
  readonly asks?: 'input_required' | AskClient | undefined
  /** Closes the connection, not the call, where the client can come back for the rest. */
  readonly disconnect?: (retry?: number) => void
}

/** Sends a request to the client and resolves with its result. */
export type AskClient = (method: string, params: object, signal: AbortSignal) => Promise<unknown>

export interface Call extends Omit<CallRequest, 'signal'> {
  /** Up: a notification to the client that belongs to this call. */
  notify(method: string, params: Record<string, unknown>): void
  /** True for revisions whose requests carry their own metadata. */
  readonly modern: boolean
  readonly meta: Readonly<Meta>
  readonly progressToken: ProgressToken | undefined
  readonly user: User | undefined
  readonly view: View
  readonly signal: AbortSignal
}

export type Next = () => Promise<object>

const NO_META: Meta = Object.freeze({})

/** Getters over what its transport knows: nobody can change it, and making one costs next to nothing. */
class TransportCall implements Call {
  readonly #request: CallRequest
  readonly meta: Readonly<Meta>

  constructor(request: CallRequest) {
    this.#request = request
    const { _meta } = request.params
    this.meta = isObject(_meta) ? _meta : NO_META
  }

  get id() {
    return this.#request.id
  }
  get method() {
    return this.#request.method
  }
  get params() {
    return this.#request.params
  }
  get revision() {
    return this.#request.revision
  }
  get session() {
    return this.#request.session
  }
  get live() {
    return this.#request.live
  }
  get client() {
    return this.#request.client
  }
  get logLevel() {
    return this.#request.logLevel
  }
  get headers() {
    return this.#request.headers
  }
  get asks() {
    return this.#request.asks
  }
  get modern() {
    return this.#request.revision === MODERN_REVISION
  }
  get user() {
    return 'user' in this.#request ? this.#request.user : this.#request.session.user
  }
  get view() {
    return this.#request.session.viewFor(this.user)
  }
  /** Made for those who look at it: most calls end before anyone does. */
  get signal() {
    return this.#request.signal()
  }
  get progressToken() {
    const token = this.meta['progressToken']
    return isShortName(token) ? token : undefined
  }

  send(message: string) {
    this.#request.send(message)
  }
  notify(method: string, params: Record<string, unknown>) {
    this.#request.send(encodeNotification(method, params))
  }
  disconnect(retry?: number) {
    this.#request.disconnect?.(retry)
  }
}

/** A Call from what its transport knows. */
export const createCall = (request: CallRequest): Call => new TransportCall(request)

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
