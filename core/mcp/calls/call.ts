// One JSON-RPC request or notification, between its transport and its handler.
import type { IncomingHttpHeaders } from 'node:http'
import type { HostError } from '../../http/errors.ts'
import type { Timeline } from '../../kernel/endpoint.ts'
import type { Route } from '../../kernel/route.ts'
import { freezeUser, type User } from '../../kernel/user.ts'
import type { McpRoute } from '../routes/routes.ts'
import type { View } from '../routes/view.ts'
import type { Cancellation } from '../wire/cancellation.ts'
import { type EncodedResponse, encodeNotification, isObject, isShortName } from '../wire/message.ts'
import type { ClientCapabilities, Implementation, LogLevel, Meta, ProgressToken, RequestId } from '../wire/protocol.ts'
import { type Revision, type RevisionRules, rulesOf } from '../wire/revisions.ts'

/** Request data that determines the offer. */
export interface RequestInfo {
  readonly route: McpRoute
  readonly params: Readonly<Record<string, string>>
  readonly user: User | undefined
  readonly headers: Readonly<IncomingHttpHeaders>
  readonly ip: string
  /** True for HTTP requests that passed `authorize`. Otherwise the route's `authorize` is checked. */
  readonly authorized?: true
  readonly sessionId?: string
  readonly choice?: ToolsetChoice | undefined
  /** Aborts when the request, or the session that it opens, ends. Created on demand. */
  readonly signal: () => AbortSignal
}

/** Checks a route's `authorize`. Throws `unauthorized` if there is no user, `forbidden` if access is denied. */
export type AuthorizeCaller = (caller: Pick<RequestInfo, 'params' | 'user'> & { readonly route: Route }) => void

/** The serializable toolset choice of `configureSession`. */
export interface ToolsetChoice {
  /** Remaining toolsets of the route; undefined: all, including later ones. */
  readonly left?: readonly string[] | undefined
  readonly added: readonly string[]
}

/** The definitions offered to a caller: for a session, or for one request without sessions. */
export interface Offer extends Pick<RequestInfo, 'route' | 'params' | 'user' | 'ip'> {
  readonly sessionId: string | undefined
  /** Always current: definitions can change during a session. */
  readonly view: View
  /** The view for this user, whose token can differ from the session's. */
  viewFor(user: User | undefined): View
  /** The offer for another token of its user. Runs `configureSession` again if the grant differs. */
  withToken(user: User | undefined): Offer | Promise<Offer>
  toolsets(): readonly string[]
  readonly choice: ToolsetChoice | undefined
  /** True if the host has a `runSession`, so calls need `run`. */
  readonly hasRunSession: boolean
  run(body: () => Promise<void>, restored?: boolean): Promise<void>
}

/** Client information from `initialize` or the request. */
export interface ClientInfo {
  readonly info: Implementation | undefined
  readonly capabilities: ClientCapabilities
}

export type SessionSetting = { readonly logLevel: LogLevel } | { readonly watch: string } | { readonly unwatch: string }

export interface CallSession {
  readonly transport?: string
  /** The node where the session began, or that took over from it. */
  readonly home?: string
  logLevel: LogLevel
  /** Returns false above the watch limits of the session or its owner. */
  watch(uri: string): boolean
  unwatch(uri: string): void
  /** Stores a setting for all nodes; undefined if it is already stored. */
  keep(change: SessionSetting): Promise<void> | undefined
  /** Runs `task` when the session ends on this node. */
  onDispose(task: () => void): void
}

/** Connects one call to its client; provided by the transport. */
interface CallChannel {
  readonly cancellation: Cancellation
  send(message: string): void
  disconnect(retry?: number): void
  hold?(): () => void
}

/** Connects one request to its client. */
export interface CallReply extends CallChannel {
  /** `error`: the response is this error. Ignored after the first response, and after `cancel`. */
  respond(response: EncodedResponse, error?: HostError): void
  cancel(reason: Error): void
}

export interface ClientRequest {
  readonly method: string
  readonly params: object
  readonly signal: AbortSignal
  /** The handler's name for the request. */
  readonly key?: string | undefined
  readonly send: (message: string) => void
}

export interface RequestSender {
  request(request: ClientRequest): Promise<unknown>
}

interface CallFields {
  /** Undefined for a notification (no request id). */
  readonly id: RequestId | undefined
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
  readonly revision: Revision
  readonly offer: Offer
  readonly session: CallSession | undefined
  readonly client: ClientInfo
  readonly user: User | undefined
  readonly headers: Readonly<IncomingHttpHeaders>
  /** How client requests are sent: in the result, or separately; undefined if unsupported. */
  readonly asks: 'input_required' | RequestSender | undefined
  /** True: created by an earlier request, such as a task. Request limits do not apply again. */
  readonly deferred?: boolean | undefined
}

/** Arguments of `createCall`. */
export interface CallRequest extends CallFields {
  readonly logLevel: LogLevel | undefined
  readonly channel: CallChannel
  readonly timeline?: Timeline | undefined
}

/** One JSON-RPC message. Frozen, including `params`, `user`, scopes, roles and claims. */
export interface Call extends CallFields {
  readonly rules: RevisionRules
  readonly modern: boolean
  readonly meta: Readonly<Meta>
  readonly progressToken: ProgressToken | undefined
  readonly view: View
  /** The least severe level to send; undefined: none. */
  readonly logLevel: LogLevel | undefined
  /** Aborts on disconnect, cancel, session end or shutdown. Created on demand. */
  readonly signal: AbortSignal
  /** The state of `signal`, without creating it. */
  readonly cancelled: boolean
  readonly notes: CallNotes
  notify(method: string, params: Record<string, unknown>): void
  send(message: string): void
  /** Closes the connection, not the call, if the client can reconnect. */
  disconnect(retry?: number): void
  /** Delays the switch to an HTTP stream until the returned function is called, so a status can still be set. */
  hold(): () => void
}

/** Continues to the result. Call it once. */
export type Next = () => Promise<object>

const NO_META: Meta = Object.freeze({})

/** The request of a call to an upstream server or API: its toolset, the name of the tool there, its failure, and the duration. */
export type UpstreamNote = Readonly<{ name: string; tool: string | undefined; failure?: string; milliseconds: number }>

interface CallNotes {
  response: EncodedResponse | undefined
  /** Methods of the client requests. */
  asked: readonly string[] | undefined
  upstream: UpstreamNote | undefined
  readonly timeline?: Timeline | undefined
}

/** Fields are always present and in one order, so all calls share one hidden class. */
export class TransportCall implements Call {
  declare readonly id: RequestId | undefined
  declare readonly method: string
  declare readonly params: Readonly<Record<string, unknown>>
  declare readonly revision: Revision
  declare readonly rules: RevisionRules
  declare readonly modern: boolean
  declare readonly offer: Offer
  declare readonly session: CallSession | undefined
  declare readonly client: ClientInfo
  declare readonly user: User | undefined
  declare readonly view: View
  declare readonly headers: Readonly<IncomingHttpHeaders>
  declare readonly asks: 'input_required' | RequestSender | undefined
  declare readonly deferred: boolean
  declare readonly meta: Readonly<Meta>
  declare readonly notes: CallNotes
  declare readonly request: CallRequest

  constructor(request: CallRequest, notes?: CallNotes) {
    const { params, user, offer } = request
    const { _meta } = params
    this.id = request.id
    this.method = request.method
    this.params = Object.freeze(params)
    this.revision = request.revision
    this.rules = rulesOf(request.revision)
    this.modern = !this.rules.handshake
    this.offer = offer
    this.session = request.session
    this.client = request.client
    this.user = user && freezeUser(user)
    this.view = offer.viewFor(user)
    this.headers = request.headers
    this.asks = request.asks
    this.deferred = request.deferred === true
    this.meta = isObject(_meta) ? _meta : NO_META
    this.notes = notes ?? { response: undefined, asked: undefined, upstream: undefined, timeline: request.timeline }
    this.request = request
    Object.freeze(this)
  }

  get logLevel() {
    return this.session ? this.session.logLevel : this.request.logLevel
  }
  get signal() {
    return this.request.channel.cancellation.signal
  }
  get cancelled() {
    return this.request.channel.cancellation.aborted
  }
  get progressToken() {
    const token = this.meta['progressToken']
    return isShortName(token) ? token : undefined
  }
  send(message: string) {
    this.request.channel.send(message)
  }
  notify(method: string, params: Record<string, unknown>) {
    this.send(encodeNotification(method, params))
  }
  disconnect(retry?: number) {
    this.request.channel.disconnect(retry)
  }
  hold() {
    return this.request.channel.hold?.() ?? (() => undefined)
  }
}

/** The cancellation behind `call.signal`. */
export const cancellationOf = (call: Call): Cancellation => (call as TransportCall).request.channel.cancellation

export const createCall = (request: CallRequest): Call => new TransportCall(request)

/** The same call with other params. The notes are shared, because the transport has the original call. */
export function withParams(call: Call, params: CallFields['params']): Call {
  if (!(call instanceof TransportCall)) throw new TypeError('`call` must be created by createCall')
  return new TransportCall({ ...call.request, params }, call.notes)
}
