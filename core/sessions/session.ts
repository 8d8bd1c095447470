// A client's session on one node. A class, so that 100,000 idle sessions share their methods.
import type { Clock } from '../http/clock.ts'
import type { Linked } from '../http/linked-list.ts'
import type { Logger } from '../kernel/log.ts'
import type { User } from '../kernel/user.ts'
import type { CallReply, CallSession, ClientInfo, ClientRequest, Offer, RequestSender } from '../mcp/calls/call.ts'
import type { Change, ChangeBus } from '../mcp/definitions/change-bus.ts'
import type { LogLevel, RequestId } from '../mcp/wire/protocol.ts'
import type { Revision } from '../mcp/wire/revisions.ts'
import { type ChangeFeed, type Subscription, WatchedUris } from './change-feed.ts'
import type { EventStore } from './event-store.ts'
import type { Peers } from './peers.ts'
import { PendingRequests, type SessionRequestIds } from './pending-requests.ts'
import type { ResumableStream } from './resumable-stream.ts'
import {
  NO_CLIENT,
  type SessionLimits,
  type SessionOpening,
  type SessionRecord,
  type SessionStore,
  type StateChange,
} from './session-store.ts'

/** Sends messages that belong to no call; provided by the transport. */
export interface SessionChannel {
  send(message: string, place?: string): void
  /** With `retry`, the host closes and the client can reconnect after that many milliseconds. */
  close(retry?: number): void
}

export interface SessionCallbacks {
  readonly clock: Clock
  used(session: Session, inUse: boolean): void
  /** `continuesElsewhere`: other nodes can continue the session. */
  disposed(session: Session, continuesElsewhere: boolean): void
  finished(session: Session, ids: readonly RequestId[]): void
  keep(session: Session, change: StateChange): Promise<void> | undefined
  forwardResponse(session: Session, id: RequestId, body: Readonly<Record<string, unknown>>): Promise<void> | undefined
  forwardCancel(session: Session, id: RequestId, reason: string): Promise<void> | undefined
  requestIdSeries(session: Session): () => string
  charge(session: Session, bytes: number, force: boolean): boolean
  feedOn(route: Offer['route']): ChangeFeed
}

export interface ThisNode {
  /** A random name for each host. */
  readonly name: string
  /** Undefined: sessions exist only in this process. */
  readonly store: SessionStore | undefined
  readonly peers: Peers
  readonly requestIds: SessionRequestIds
  readonly events: (session: Session) => EventStore
  readonly bus: (session: Session) => ChangeBus
  readonly limits: SessionLimits
  readonly log: Logger
  readonly clock: Clock
  readonly metrics: SessionMetrics
  readonly sessions: Map<string, Session>
}

export interface SessionMetrics {
  watch(node: string, sessions: ReadonlyMap<string, Session>): void
  opened(session: Session): void
  ended(session: Session): void
  evicted(count: number): void
}

const LISTS = new Set(['tools', 'resources', 'prompts'] as const)

export type SessionFields = Pick<Session, 'id' | 'digest' | 'offer' | 'opening' | 'home' | 'version'> & {
  readonly callbacks: SessionCallbacks
}

export class Session implements CallSession, RequestSender, Linked {
  readonly id: string
  readonly digest: string
  offer: Offer
  readonly opening: SessionOpening
  readonly holder: string
  home: string
  version: number
  /** True after an outage of the store until `restore`, because the record can be older than this copy. */
  isUnrestored = false
  claim: { readonly stream: string; readonly epoch: number } | undefined
  /** The newest claim by another node; 0: none. */
  supersededEpoch = 0
  revision: Revision | undefined
  client: ClientInfo = NO_CLIENT
  logLevel: LogLevel = 'info'
  /** Time of the last use, milliseconds since the epoch. */
  lastUsed: number
  disposed = false
  calls = 0
  older: this | undefined = undefined
  newer: this | undefined = undefined
  linked = false
  readonly #callbacks: SessionCallbacks
  #watched: WatchedUris | undefined
  #channel: SessionChannel | undefined
  #calls: Map<RequestId, Pick<CallReply, 'cancel'>> | undefined
  #pendingRequests: PendingRequests | undefined
  #subscription: Subscription | undefined
  #disposeTasks: Array<() => void> | undefined
  #streams: Map<string, ResumableStream> | undefined
  #onRunEnd: (() => void) | undefined
  #uses = 0

  constructor({ id, digest, offer, callbacks, opening, home, version }: SessionFields) {
    this.id = id
    this.digest = digest
    this.offer = offer
    this.opening = opening
    this.holder = opening.holder
    this.home = home
    this.version = version
    this.#callbacks = callbacks
    this.lastUsed = callbacks.clock.now()
  }

  get transport(): string {
    return this.opening.transport
  }

  get record(): SessionRecord {
    const { opening, revision, client, logLevel, watched, version, home } = this
    return { opening, version, home, state: { revision, client, logLevel, watched } }
  }

  get watched(): readonly string[] {
    return [...(this.#watched ?? [])]
  }

  keep(change: StateChange): Promise<void> | undefined {
    return this.#callbacks.keep(this, change)
  }

  /** The offer for a request's token. Rejects with the error of `configureSession`. */
  offerFor(user: User | undefined): Offer | Promise<Offer> {
    const offer = this.offer.withToken(user)
    if (!(offer instanceof Promise)) return offer
    return offer.then(renewed => {
      this.offer = renewed
      return renewed
    })
  }

  /** Marks the session as in use until the returned function is called. */
  use(): () => void {
    if (this.#uses++ === 0) this.#callbacks.used(this, true)
    let released = false
    return () => {
      if (released) return
      released = true
      this.#leave()
    }
  }

  #leave() {
    this.lastUsed = this.#callbacks.clock.now()
    if (--this.#uses === 0 && !this.disposed) this.#callbacks.used(this, false)
  }

  get inUse(): boolean {
    return this.#uses > 0
  }

  get streams(): Map<string, ResumableStream> {
    this.#streams ??= new Map()
    return this.#streams
  }

  connect(channel: SessionChannel): void {
    this.#channel = channel
    if (this.#subscription) return
    this.#subscription = this.#callbacks.feedOn(this.offer.route).subscribe({
      lists: LISTS,
      covers: toolset => toolset === undefined || this.offer.toolsets().includes(toolset),
      view: () => this.offer.view,
      mayShowMore: this.offer.user !== undefined,
      deliver: ({ plain, place }) => this.#channel?.send(plain, place),
    })
    for (const uri of this.#watched ?? []) this.#subscription.watch(uri)
  }

  /** Unsubscribes after another node took over. */
  disconnect(): void {
    this.#subscription?.end()
    this.#subscription = this.#channel = undefined
  }

  replay(change: Change, place: string | undefined): void {
    this.#subscription?.replay(change, place)
  }

  /** Returns false above the limits of the session or its owner; `force`: another node has checked them. */
  watch(uri: string, force = false): boolean {
    this.#watched ??= new WatchedUris((bytes, force) => this.#callbacks.charge(this, bytes, force))
    if (!this.#watched.add(uri, force)) return false
    this.#subscription?.watch(uri)
    return true
  }

  unwatch(uri: string): void {
    this.#watched?.delete(uri)
    this.#subscription?.unwatch(uri)
  }

  send(message: string): void {
    this.#channel?.send(message)
  }

  /** Marks the session as in use until `finish`. Returns false if a call with this id is running. */
  startCall(id: RequestId, call: Pick<CallReply, 'cancel'>): boolean {
    this.#calls ??= new Map()
    if (this.#calls.has(id)) return false
    this.#calls.set(id, call)
    if (this.#uses++ === 0) this.#callbacks.used(this, true)
    return true
  }

  finishCall(id: RequestId): void {
    if (!this.#calls?.delete(id)) return
    if (this.#calls.size === 0) this.#calls = undefined
    this.#callbacks.finished(this, [id])
    this.#leave()
  }

  abandon(ids: readonly RequestId[]): void {
    const notStarted = ids.filter(id => !this.#calls?.has(id))
    if (notStarted.length > 0) this.#callbacks.finished(this, notStarted)
  }

  get running(): readonly RequestId[] {
    return [...(this.#calls?.keys() ?? [])]
  }

  runs(id: RequestId): boolean {
    return this.#calls?.has(id) ?? false
  }

  /** Cancels a call on any node. Unknown ids are ignored. */
  cancel(id: RequestId, reason: string): Promise<void> | undefined {
    if (!this.runs(id)) return this.#callbacks.forwardCancel(this, id, reason)
    this.cancelHere(id, reason)
    return undefined
  }

  cancelHere(id: RequestId, reason: string): void {
    this.#calls?.get(id)?.cancel(new Error(reason))
  }

  request(request: ClientRequest): Promise<unknown> {
    this.#pendingRequests ??= new PendingRequests(this.#callbacks.requestIdSeries(this), this.#callbacks.clock)
    return this.#pendingRequests.send(request)
  }

  /** Accepts a response for any node. Unknown ids are ignored. */
  receiveResponse(id: RequestId, body: Readonly<Record<string, unknown>>): Promise<void> | undefined {
    if (this.#pendingRequests?.settle(id, body)) return undefined
    return this.#callbacks.forwardResponse(this, id, body)
  }

  /** `task` runs once when `runSession` must end here: on session end or takeover. */
  onRunEnd(task: () => void): void {
    this.#onRunEnd = task
  }

  endRun(): void {
    this.#onRunEnd?.()
    this.#onRunEnd = undefined
  }

  /** `task` runs when the session ends; at once if it has ended. */
  onDispose(task: () => void): void {
    this.#disposeTasks ??= []
    this.#disposeTasks.push(task)
    if (this.disposed) this.#runDisposeTasks()
  }

  #runDisposeTasks(): void {
    for (const task of this.#disposeTasks?.splice(0) ?? []) task()
  }

  /** Ends endless streams with a reconnection hint. Streams of calls stay. */
  release(retry: number): void {
    this.#channel?.close(retry)
  }

  /** Ends the session on this node. `continuesElsewhere`: streams stay resumable, because other nodes can continue it. */
  dispose(reason: Error, continuesElsewhere = false): void {
    if (this.disposed) return
    this.#watched?.clear()
    this.disposed = true
    const streams = [...(this.#streams?.values() ?? [])]
    if (continuesElsewhere) for (const stream of streams) stream.abandon()
    for (const call of [...(this.#calls?.values() ?? [])]) call.cancel(reason)
    this.#pendingRequests?.rejectAll(reason)
    this.#subscription?.end()
    this.#channel?.close()
    for (const stream of streams) stream.finish()
    this.endRun()
    this.#runDisposeTasks()
    this.#calls = this.#pendingRequests = this.#subscription = this.#channel = this.#disposeTasks = undefined
    this.#streams = this.#watched = undefined
    this.#callbacks.disposed(this, continuesElsewhere)
  }
}
