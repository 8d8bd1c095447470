// One session of a handshake revision: what its client negotiated, what runs in it, what it asked the client, and how
// messages reach that client. A class, because there may be a hundred thousand idle ones: what they share is shared.
import type { ClientFacts, OpenSession } from '../call.ts'
import { ToolError } from '../define.ts'
import type { LogLevel, RequestId, Revision } from '../protocol.ts'
import { encodeNotification } from '../wire.ts'
import type { ChangeFeed, Subscription } from './change-feed.ts'
import type { Held } from './owners.ts'
import type { ResumableStream } from './resumable-stream.ts'

/** How long a client may take to answer a question, milliseconds; the same as a sealed `requestState` lives. */
export const ANSWER_TIMEOUT = 600_000

/** How messages that belong to no call reach the client; a transport's. */
export interface SessionChannel {
  send(message: string): void
  /** The session is over, or the host closes: `retry` where the client may come back, in milliseconds. */
  close(retry?: number): void
}

interface Question {
  readonly resolve: (result: unknown) => void
  readonly reject: (reason: Error) => void
}

const NO_CLIENT: ClientFacts = Object.freeze({ info: undefined, capabilities: {} })
const LISTS = new Set(['tools', 'resources', 'prompts'] as const)

export interface SessionOwner {
  /** The session's first use begins, or its last one ended. */
  used(session: Session, inUse: boolean): void
  disposed(session: Session): void
  readonly feed: ChangeFeed
}

export interface SessionFacts {
  readonly id: string
  readonly holder: string
  readonly transport: string
  readonly opened: OpenSession
  readonly owner: SessionOwner
}

export class Session implements Held {
  readonly id: string
  readonly holder: string
  readonly opened: OpenSession
  /** The transport that it was opened by, and that alone may use it. */
  readonly transport: string
  /** Undefined until `initialize` was answered. */
  revision: Revision | undefined
  client: ClientFacts = NO_CLIENT
  /** The least severe level that the client is sent; `logging/setLevel` changes it. */
  logLevel: LogLevel = 'info'
  /** When it was used last, milliseconds since the epoch. */
  lastUsed: number
  disposed = false
  readonly #owner: SessionOwner
  #channel: SessionChannel | undefined
  #calls: Map<RequestId, (reason: Error) => void> | undefined
  #questions: Map<RequestId, Question> | undefined
  #subscription: Subscription | undefined
  #disposing: Array<() => void> | undefined
  #streams: Map<string, ResumableStream> | undefined
  #asked = 0
  #uses = 0

  constructor({ id, holder, transport, opened, owner }: SessionFacts) {
    this.id = id
    this.holder = holder
    this.opened = opened
    this.transport = transport
    this.#owner = owner
    this.lastUsed = Date.now()
  }

  /** Counts a use until the returned function is called: a session in use is never idle. */
  use(): () => void {
    if (this.#uses++ === 0) this.#owner.used(this, true)
    let over = false
    return () => {
      if (over) return
      over = true
      this.lastUsed = Date.now()
      if (--this.#uses === 0 && !this.disposed) this.#owner.used(this, false)
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
    this.#subscription ??= this.#subscribe()
  }

  #subscribe(): Subscription {
    return this.#owner.feed.subscribe({
      lists: LISTS,
      covers: toolset => toolset === undefined || this.opened.toolsets().includes(toolset),
      deliver: ({ plain }) => this.#channel?.send(plain),
    })
  }

  /** False where it watches as many resources as it may. */
  watch(uri: string): boolean {
    this.#subscription ??= this.#subscribe()
    return this.#subscription.watch(uri)
  }

  unwatch(uri: string): void {
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
    this.#calls?.delete(id)
  }

  /** The client cancels a call. One that is unknown or over is nobody's loss. */
  cancel(id: RequestId, reason: string): void {
    this.#calls?.get(id)?.(new Error(reason))
  }

  /**
   * Asks the client, on `send`. Rejects with a ToolError when it answers an error or nothing in ten minutes, with the
   * signal's reason when that aborts, and when the session ends.
   */
  ask(send: (message: string) => void, method: string, params: object, signal: AbortSignal): Promise<unknown> {
    const id = `ask-${++this.#asked}`
    this.#questions ??= new Map()
    const questions = this.#questions
    return new Promise((resolve, reject) => {
      const withdraw = (reason: Error) => {
        questions.get(id)?.reject(reason)
        send(encodeNotification('notifications/cancelled', { requestId: id, reason: reason.message }))
      }
      const onAbort = () => withdraw(signal.reason instanceof Error ? signal.reason : new Error('cancelled'))
      const timer = setTimeout(() => withdraw(new ToolError('the client did not answer in time')), ANSWER_TIMEOUT)
      const end = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        questions.delete(id)
      }
      questions.set(id, {
        resolve: result => {
          end()
          resolve(result)
        },
        reject: reason => {
          end()
          reject(reason)
        },
      })
      if (signal.aborted) return onAbort()
      signal.addEventListener('abort', onAbort, { once: true })
      send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    })
  }

  /** The client's answer to a question; one that nobody waits for is ignored. */
  answer(id: RequestId, body: Readonly<Record<string, unknown>>): void {
    const question = this.#questions?.get(id)
    const error = body['error'] as { message?: unknown } | undefined
    if (error) question?.reject(new ToolError(`the client answered: ${String(error.message)}`))
    else question?.resolve(body['result'])
  }

  /** Runs once, when the session ends. */
  onDispose(task: () => void): void {
    this.#disposing ??= []
    this.#disposing.push(task)
  }

  /**
   * Ends what would never end, with a hint to come back: the host closes, not the session. The streams of calls stay,
   * for their answers.
   */
  release(retry: number): void {
    this.#channel?.close(retry)
  }

  /** Ends everything that the session owns: calls, questions, streams, subscriptions, its place among its owner's. */
  dispose(reason: Error): void {
    if (this.disposed) return
    this.disposed = true
    for (const cancel of [...(this.#calls?.values() ?? [])]) cancel(reason)
    for (const question of [...(this.#questions?.values() ?? [])]) question.reject(reason)
    this.#subscription?.end()
    this.#channel?.close()
    for (const stream of [...(this.#streams?.values() ?? [])]) stream.finish()
    for (const task of this.#disposing?.splice(0) ?? []) task()
    this.#calls = this.#questions = this.#subscription = this.#channel = this.#disposing = undefined
    this.#streams = undefined
    this.#owner.disposed(this)
  }
}
