// One JSON-RPC request or notification, from the transport that received it to the handler that answers it.
import type { IncomingHttpHeaders } from 'node:http'
import type { Route } from '../kernel/route.ts'
import { freezeUser, type User } from '../kernel/user.ts'
import { isShortName } from './client-limits.ts'
import { isObject } from './is-object.ts'
import { encodeNotification } from './message.ts'
import type { ClientCapabilities, Implementation, LogLevel, Meta, ProgressToken, RequestId } from './protocol.ts'
import { type Revision, type RevisionRules, rulesOf } from './revisions.ts'
import type { McpRoute } from './routes.ts'
import type { View } from './view.ts'

/** What a transport knows of a request when it asks what to offer. */
export interface RequestFacts {
  readonly route: McpRoute
  readonly params: Readonly<Record<string, string>>
  readonly user: User | undefined
  readonly headers: Readonly<IncomingHttpHeaders>
  readonly ip: string
  /** True: an HTTP request that came through `admit`. Otherwise the route's `authorize` is asked whether the user may enter. */
  readonly admitted?: true
  /** The session's id, where there is one. */
  readonly sessionId?: string
  /** The earlier choice of `configureSession` for this caller; if set, the function does not run again. */
  readonly choice?: ToolsetChoice | undefined
  /** Aborts when the request, or the session it opens, is over. Asked for only by those who wait on it. */
  readonly signal: () => AbortSignal
}

/** Checks a route's `authorize`. Throws `unauthorized` if there is no user, `forbidden` if the user cannot enter. */
export type AdmitCaller = (caller: Pick<RequestFacts, 'params' | 'user'> & { readonly route: Route }) => void

/** The serializable toolset choice of `configureSession`. */
export interface ToolsetChoice {
  /** The toolsets of the route that remain; undefined: all, including later ones. */
  readonly left?: readonly string[] | undefined
  readonly added: readonly string[]
}

/** What a caller is offered: for a session, or for one request where there are none. */
export interface Offer extends Pick<RequestFacts, 'route' | 'params' | 'user' | 'ip'> {
  /** The session's id, where there is one. */
  readonly sessionId: string | undefined
  /** Always current: definitions may come and go while a session lasts. */
  readonly view: View
  /** The view for this user: a session's user can send different tokens. */
  viewFor(user: User | undefined): View
  /** The offer for its user with another token: runs `configureSession` again if that token grants something else. */
  withToken(user: User | undefined): Offer | Promise<Offer>
  /** The names of the toolsets in view. */
  toolsets(): readonly string[]
  /** The choice of `configureSession`; undefined without one. */
  readonly choice: ToolsetChoice | undefined
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

/** What a session's client may set, beside what it watches. */
export type SessionSetting = { readonly logLevel: LogLevel } | { readonly watch: string } | { readonly unwatch: string }

/** A client's session, as the methods of its calls see it. */
export interface CallSession {
  /** The name of the plugin that it was opened by. */
  readonly transport?: string
  /** The least severe level that the client is sent. */
  logLevel: LogLevel
  /** False where it, or all of its owner's, watch as many resources as they may. */
  watch(uri: string): boolean
  unwatch(uri: string): void
  /** Keeps what was set for as long as the session lasts, wherever it is served; undefined where that is done. */
  keep(change: SessionSetting): Promise<void> | undefined
}

/** The way between a call and its client: a transport's, one for each call. */
export interface CallChannel {
  /** Up: a message that belongs to the call, serialized. */
  send(message: string): void
  /** Down: client gone, cancelled, session closed, shutting down. Made when first asked for. */
  signal(): AbortSignal
  /** Whether the signal has aborted, or would have: asked of calls that are observed, so that none is made for it. */
  cancelled?(): boolean
  /** Closes the connection, not the call, where the client can come back for the rest. */
  disconnect(retry?: number): void
  /** Until what it gives is called, the answer becomes no stream by the time that it takes: a status of its own stays possible. */
  hold?(): () => void
}

/** Sends a request to the client and resolves with its result. */
export interface AskClient {
  /** `key`: the name that the handler gave to its question. */
  ask(method: string, params: object, signal: AbortSignal, key?: string): Promise<unknown>
}

/** What every Call tells of its message and its sender. */
interface CallFacts {
  /** Undefined for a notification. */
  readonly id: RequestId | undefined
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
  readonly revision: Revision
  /** What its sender is offered. */
  readonly offer: Offer
  /** The session that it belongs to; undefined where requests are served one by one. */
  readonly session: CallSession | undefined
  readonly client: ClientFacts
  /** Who sends it: the user who opened the session, who may come with another token. */
  readonly user: User | undefined
  /** The headers of the HTTP request that brought it. */
  readonly headers: Readonly<IncomingHttpHeaders>
  /** How questions reach the client: in the call's result, or as requests of their own; undefined where they cannot. */
  readonly asks: 'input_required' | AskClient | undefined
  /** True: an earlier request created this call, as for a task. Request limits do not apply again. */
  readonly deferred?: boolean | undefined
}

/** What a transport gives to make a Call. */
export interface CallRequest extends CallFacts {
  /** The least severe level that the client wants to see; undefined: none. A session has its own. */
  readonly logLevel: LogLevel | undefined
  readonly channel: CallChannel
}

/** One JSON-RPC message on its way. Frozen, and its `params` and `user` with it, and the user's scopes, roles and claims. */
export interface Call extends CallFacts {
  /** What is special about the revision. */
  readonly rules: RevisionRules
  /** True for revisions whose requests carry their own metadata. */
  readonly modern: boolean
  readonly meta: Readonly<Meta>
  readonly progressToken: ProgressToken | undefined
  /** What its sender is served, as it was when the call began. */
  readonly view: View
  /** The least severe level that the client wants to see now; undefined: none. */
  readonly logLevel: LogLevel | undefined
  /** Down: client gone, cancelled, session closed, shutting down. Made when first asked for. */
  readonly signal: AbortSignal
  /** Whether `signal` has aborted, or would have. */
  readonly cancelled: boolean
  /** Up: a notification to the client that belongs to this call. */
  notify(method: string, params: Record<string, unknown>): void
  /** Up, as `notify`: a message that is serialized already. */
  send(message: string): void
  /** Closes the connection, not the call, where the client can come back for the rest. */
  disconnect(retry?: number): void
  /** Until what it gives is called, the answer becomes no stream by the time that it takes, where it is one of HTTP. */
  hold(): () => void
}

/** The rest of the way, to the result; once. */
export type Next = () => Promise<object>

const NO_META: Meta = Object.freeze({})

/** Facts of an observed call that are known after its handler ran. */
export interface CallNotes {
  /** Bytes of the response. */
  bytesOut: number | undefined
  /** Methods of the requests that its handler sent to the client, without duplicates. */
  readonly asked: string[]
}

/** All fields are always present and in one order, so that all calls have one hidden class. */
class TransportCall implements Call {
  readonly id: RequestId | undefined
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
  readonly revision: Revision
  readonly rules: RevisionRules
  readonly modern: boolean
  readonly offer: Offer
  readonly session: CallSession | undefined
  readonly client: ClientFacts
  readonly user: User | undefined
  readonly view: View
  readonly headers: Readonly<IncomingHttpHeaders>
  readonly asks: 'input_required' | AskClient | undefined
  readonly deferred: boolean
  readonly meta: Readonly<Meta>
  readonly #request: CallRequest
  /** Undefined for a call that nobody observes. */
  #notes: CallNotes | undefined

  constructor(request: CallRequest) {
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
    this.#request = request
    this.#notes = undefined
    Object.freeze(this)
  }

  static withParams(call: Call, params: CallFacts['params']): Call {
    if (!(#request in call)) throw new TypeError('a Call is made by createCall')
    return new TransportCall({ ...call.#request, params })
  }
  static notesOf(call: Call): CallNotes | undefined {
    return #notes in call ? call.#notes : undefined
  }
  static keepNotes(call: Call, notes: CallNotes | undefined) {
    if (#notes in call) call.#notes = notes
  }
  get logLevel() {
    return this.session ? this.session.logLevel : this.#request.logLevel
  }
  get signal() {
    return this.#request.channel.signal()
  }
  get cancelled() {
    const { channel } = this.#request
    return channel.cancelled?.() ?? channel.signal().aborted
  }
  get progressToken() {
    const token = this.meta['progressToken']
    return isShortName(token) ? token : undefined
  }
  send(message: string) {
    this.#request.channel.send(message)
  }
  notify(method: string, params: Record<string, unknown>) {
    this.send(encodeNotification(method, params))
  }
  disconnect(retry?: number) {
    this.#request.channel.disconnect(retry)
  }
  hold() {
    return this.#request.channel.hold?.() ?? (() => undefined)
  }
}

/** Creates a Call. Throws if its view cannot be computed. */
export const createCall = (request: CallRequest): Call => new TransportCall(request)

/** `withParams`: the same call with other params. `notesOf`, `keepNotes`: the notes of an observed call. */
export const { notesOf, keepNotes, withParams } = TransportCall
