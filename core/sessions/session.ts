// One session of a handshake revision: what its client negotiated, what runs in it, what it asked the client, and how
// messages reach that client. A class, because there may be a hundred thousand idle ones: what they share is shared.
import type { User } from '../kernel/user.ts'
import type { CallSession, ClientFacts, Offer } from '../mcp/call.ts'
import type { Change } from '../mcp/change-bus.ts'
import type { LogLevel, RequestId } from '../mcp/protocol.ts'
import type { Revision } from '../mcp/revisions.ts'
import type { Subscription } from './change-feed.ts'
import { Questions } from './questions.ts'
import type { ResumableStream } from './resumable-stream.ts'
import type { SessionKeeper } from './session-keeper.ts'
import { NO_CLIENT, type SessionOpening, type SessionRecord, type StateChange } from './session-record.ts'
import { WatchedUris } from './watched-uris.ts'

/** How messages that belong to no call reach the client; a transport's. */
export interface SessionChannel {
  /** `place`: where on the bus it comes from. */
  send(message: string, place?: string): void
  /** The session is over, or the host closes: `retry` where the client may come back, in milliseconds. */
  close(retry?: number): void
}

const LISTS = new Set(['tools', 'resources', 'prompts'] as const)

export interface SessionFacts {
  readonly id: string
  readonly digest: string
  readonly offer: Offer
  readonly keeper: SessionKeeper<Session>
  readonly opening: SessionOpening
  readonly home: string
  readonly version: number
}

/** A client's session, at the node that serves it. */
export class Session implements CallSession {
  readonly id: string
  /** What it is called where ids are not written down. */
  readonly digest: string
  /** The offer for its user with the last token. */
  offer: Offer
  /** What it was opened with, as its record says. */
  readonly opening: SessionOpening
  /** The node that runs its `runSession`, and has the stream of a transport with only one. */
  home: string
  /** The version of its record that this node has. */
  version: number
  /** The stream for what belongs to no call, where this node has it. */
  claim: { readonly stream: string; readonly epoch: number } | undefined
  /** The newest claim of another node that this one has heard of; 0: none. */
  relieved = 0
  /** Undefined until `initialize` was answered. */
  revision: Revision | undefined
  client: ClientFacts = NO_CLIENT
  /** The least severe level that the client is sent; `logging/setLevel` changes it. */
  logLevel: LogLevel = 'info'
  /** When it was used last, milliseconds since the epoch. */
  lastUsed: number
  disposed = false
  /** Its requests that run, be it over; see running-calls.ts. */
  calls = 0
  readonly #keeper: SessionKeeper<Session>
  #watched: WatchedUris | undefined
  #channel: SessionChannel | undefined
  #calls: Map<RequestId, (reason: Error) => void> | undefined
  #questions: Questions | undefined
  #subscription: Subscription | undefined
  #disposing: Array<() => void> | undefined
  #streams: Map<string, ResumableStream> | undefined
  #runOver: (() => void) | undefined
  #uses = 0

  constructor({ id, digest, offer, keeper, opening, home, version }: SessionFacts) {
    this.id = id
    this.digest = digest
    this.offer = offer
    this.opening = opening
    this.home = home
    this.version = version
    this.#keeper = keeper
    this.lastUsed = keeper.clock.now()
  }

  /** Whose it is, as the bounds count: the user, or for anonymous callers the address. */
  get holder(): string {
    return this.opening.holder
  }

  /** The transport that it was opened by, and that alone may use it. */
  get transport(): string {
    return this.opening.transport
  }

  /** As it may be written down. */
  get record(): SessionRecord {
    const { opening, revision, client, logLevel, version, home } = this
    return { opening, version, home, state: { revision, client, logLevel, watched: this.watched } }
  }

  /** The URIs of the resources that it watches. */
  get watched(): readonly string[] {
    return [...(this.#watched ?? [])]
  }

  /** Keeps a change of its state in its record; undefined where that is done. Rejects where the store cannot. */
  keep(change: StateChange): Promise<void> | undefined {
    return this.#keeper.keep(this, change)
  }

  /** The offer for the user of a request, whose token may grant something else. Rejects with the error of `configureSession`. */
  offerFor(user: User | undefined): Offer | Promise<Offer> {
    const offer = this.offer.withToken(user)
    if (!(offer instanceof Promise)) return offer
    return offer.then(renewed => {
      this.offer = renewed
      return renewed
    })
  }

  /** Counts a use until the returned function is called: a session in use is never idle. */
  use(): () => void {
    if (this.#uses++ === 0) this.#keeper.used(this, true)
    let over = false
    return () => {
      if (over) return
      over = true
      this.lastUsed = this.#keeper.clock.now()
      if (--this.#uses === 0 && !this.disposed) this.#keeper.used(this, false)
    }
  }

  get inUse(): boolean {
    return this.#uses > 0
  }

  /** Its streams that are not finished, by name. */
  get streams(): Map<string, ResumableStream> {
    this.#streams ??= new Map()
    return this.#streams
  }

  /** Where messages that belong to no call go from now on. */
  connect(channel: SessionChannel): void {
    this.#channel = channel
    if (this.#subscription) return
    this.#subscription = this.#subscribe()
    for (const uri of this.#watched ?? []) this.#subscription.watch(uri)
  }

  /** Another node sends such messages from now on. */
  disconnect(): void {
    this.#subscription?.end()
    this.#subscription = this.#channel = undefined
  }

  /** Sends what was on the bus before, as far as it concerns this session. */
  replay(change: Change, place: string | undefined): void {
    this.#subscription?.replay(change, place)
  }

  #subscribe(): Subscription {
    return this.#keeper.feedOn(this.offer.route).subscribe({
      lists: LISTS,
      covers: toolset => toolset === undefined || this.offer.toolsets().includes(toolset),
      view: () => this.offer.view,
      // Its user may come with another token, to which more is shown.
      mayShowMore: this.offer.user !== undefined,
      deliver: ({ plain, place }) => this.#channel?.send(plain, place),
    })
  }

  /** False where it, or all of its owner's, watch as many resources as they may; `letIn`: another node has asked. */
  watch(uri: string, letIn = false): boolean {
    this.#watched ??= new WatchedUris((bytes, isLetIn) => this.#keeper.charge(this, bytes, isLetIn))
    if (!this.#watched.add(uri, letIn)) return false
    this.#subscription?.watch(uri)
    return true
  }

  unwatch(uri: string): void {
    this.#watched?.delete(uri)
    this.#subscription?.unwatch(uri)
  }

  /** Sends a message that belongs to no call; it is lost where the client has opened no stream for such. */
  send(message: string): void {
    this.#channel?.send(message)
  }

  /** A call begins; false where one with this id runs already. */
  begin(id: RequestId, cancel: (reason: Error) => void): boolean {
    this.#calls ??= new Map()
    if (this.#calls.has(id)) return false
    this.#calls.set(id, cancel)
    return true
  }

  finish(id: RequestId): void {
    if (!this.#calls?.delete(id)) return
    // A session idles without an empty map.
    if (this.#calls.size === 0) this.#calls = undefined
    this.#keeper.finished(this, [id])
  }

  /** Requests that were let in will not begin after all. */
  abandon(ids: readonly RequestId[]): void {
    const left = ids.filter(id => !this.#calls?.has(id))
    if (left.length > 0) this.#keeper.finished(this, left)
  }

  get running(): readonly RequestId[] {
    return [...(this.#calls?.keys() ?? [])]
  }

  runs(id: RequestId): boolean {
    return this.#calls?.has(id) ?? false
  }

  /** The client cancels a call. One that is unknown or over is nobody's loss. */
  cancel(id: RequestId, reason: string): Promise<void> | undefined {
    const cancel = this.#calls?.get(id)
    if (!cancel) return this.#keeper.passCancel(this, id, reason)
    cancel(new Error(reason))
    return undefined
  }

  /** As `cancel`, of a call that runs here. */
  cancelHere(id: RequestId, reason: string): void {
    this.#calls?.get(id)?.(new Error(reason))
  }

  /** Asks the client, on `send`; rejects as `Questions.ask` says. */
  ask(send: (message: string) => void, method: string, params: object, signal: AbortSignal): Promise<unknown> {
    this.#questions ??= new Questions(this.#keeper.nameQuestions(this), this.#keeper.clock)
    return this.#questions.ask({ send, method, params, signal })
  }

  /** The client's answer to a question; one that nobody waits for is ignored. */
  answer(id: RequestId, body: Readonly<Record<string, unknown>>): Promise<void> | undefined {
    if (!this.#questions?.has(id)) return this.#keeper.passAnswer(this, id, body)
    this.answerHere(id, body)
    return undefined
  }

  /** As `answer`, to a question that was asked here. */
  answerHere(id: RequestId, body: Readonly<Record<string, unknown>>): void {
    this.#questions?.answer(id, body)
  }

  /** Runs once, when `runSession` is to come to its end here: with the session, or because another node runs it now. */
  onRunOver(task: () => void): void {
    this.#runOver = task
  }

  endRun(): void {
    this.#runOver?.()
    this.#runOver = undefined
  }

  /** Runs once, when the session ends. */
  onDispose(task: () => void): void {
    this.#disposing ??= []
    this.#disposing.push(task)
  }

  /** Ends what would never end, with a hint to come back: the host closes, not the session. Streams of calls stay. */
  release(retry: number): void {
    this.#channel?.close(retry)
  }

  /**
   * Ends everything that the session owns here: calls, questions, streams, subscriptions, its place among its owner's.
   * `elsewhere`: only here, for other nodes may go on with it; its streams stay to be resumed there.
   */
  dispose(reason: Error, elsewhere = false): void {
    if (this.disposed) return
    this.#watched?.clear()
    this.disposed = true
    const streams = [...(this.#streams?.values() ?? [])]
    if (elsewhere) for (const stream of streams) stream.abandon()
    for (const cancel of [...(this.#calls?.values() ?? [])]) cancel(reason)
    this.#questions?.rejectAll(reason)
    this.#subscription?.end()
    this.#channel?.close()
    for (const stream of streams) stream.finish()
    this.endRun()
    for (const task of this.#disposing?.splice(0) ?? []) task()
    this.#calls = this.#questions = this.#subscription = this.#channel = this.#disposing = undefined
    this.#streams = this.#watched = undefined
    this.#keeper.disposed(this, elsewhere)
  }
}
