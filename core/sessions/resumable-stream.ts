// A resumable stream: stores each message before it sends the event id (2025-11-25 basic/transports).
import { setTimeout as pause } from 'node:timers/promises'
import { isUnavailable } from '../http/errors.ts'
import { type EventStream, RETRY } from '../http/sse.ts'
import type { RequestId } from '../mcp/wire/protocol.ts'
import { createStreamName, type EventStore, readPage, StreamFenced } from './event-store.ts'

/** Retry time for appends to a shared store, milliseconds. */
export const STORE_TIMEOUT = 10_000
/** Retry time for the end or deletion of a stream, milliseconds. */
const END_TIMEOUT = 300_000
const FIRST_PAUSE = 50
const LONGEST_PAUSE = 1_000

interface StreamInfo {
  readonly node: string
  readonly requests: readonly RequestId[]
}

export const formatStreamInfo = (facts: StreamInfo): string => JSON.stringify(facts)

export const parseStreamInfo = (text: string): StreamInfo => JSON.parse(text)

export interface WriterSettings {
  readonly epoch: number
  readonly facts: string
  readonly place?: string
  /** True during shutdown: unanswered streams are left for other nodes. */
  leaving(): boolean
  /** Called when another node writes the stream; readers stay open. Without it, they get a reconnection hint. */
  fenced?(): void
  written(stream: string): void
}

export interface ResumableStreamSettings {
  readonly store: EventStore
  readonly session: string
  readonly owner?: string
  readonly finished: (name: string) => void
  readonly failed: (error: unknown) => void
  readonly writer?: WriterSettings | undefined
  readonly name?: string
  readonly startedUntil?: number | undefined
}

interface UnstoredMessage {
  readonly message: string
  readonly place: string | undefined
  readonly last: boolean
}

async function persist<Value>(act: () => Value | Promise<Value>, timeout: number): Promise<Value> {
  const end = performance.now() + timeout
  for (let wait = FIRST_PAUSE; ; wait = Math.min(2 * wait, LONGEST_PAUSE)) {
    try {
      return await act()
    } catch (error) {
      if (!isUnavailable(error) || performance.now() > end) throw error
    }
    await pause(wait, undefined, { ref: false })
  }
}

/** A stream that clients can resume. */
class StoredStream {
  readonly name: string
  readonly #settings: ResumableStreamSettings
  readonly #unstored: UnstoredMessage[] = []
  #appending = false
  #reader: EventStream | undefined
  #replaying = false
  #silent: EventStream[] = []
  #stored: number
  #sent = 0
  #ending = false
  #ended = false
  #finished = false
  #left = false
  #broken = false
  #dropped: Promise<void> | undefined
  #primed: { readonly reader: EventStream; readonly retry: number } | undefined
  /** A delayed disconnection: the client first needs an event id. */
  #leaving: { readonly retry: number | undefined } | undefined

  constructor(settings: ResumableStreamSettings) {
    const { session, name, writer, startedUntil } = settings
    this.#settings = settings
    this.name = name ?? createStreamName(session)
    this.#stored = startedUntil ?? 0
    // A shared store receives the stream before the client does.
    if (writer && startedUntil === undefined) void this.#open()
  }

  async #open() {
    this.#appending = true
    try {
      await this.#openStored()
      this.#sendPrimed()
    } catch (error) {
      this.#fail(error)
    }
    this.#appending = false
    void this.#appendAll()
  }

  async #openStored() {
    const { store, session, writer } = this.#settings
    if (!writer) return
    const { epoch, facts, place: bus } = writer
    await store.shared?.open(session, this.name, { epoch, facts, bus }, this.#stored)
  }

  #idOf(seq: number) {
    return `${this.name}.${seq}`
  }

  /** Stores a message, then sends it. `place`: its position on the change bus. */
  write(message: string, place?: string) {
    if (!this.#ended) this.#enqueue({ message, place, last: false })
  }

  #enqueue(message: UnstoredMessage) {
    this.#unstored.push(message)
    if (!this.#appending) void this.#appendAll()
  }

  async #appendAll() {
    this.#appending = true
    for (let next = this.#unstored.shift(); next !== undefined; next = this.#unstored.shift()) {
      const { message } = next
      try {
        if (this.#broken) throw new Error('an earlier message could not be stored')
        const seq = this.#append(next)
        this.#deliver(typeof seq === 'number' ? seq : await seq, message)
      } catch (error) {
        this.#fail(error)
        if (!this.#replaying && !this.#ended) this.#reader?.send(message)
      }
    }
    this.#appending = false
    this.#endIfDone()
  }

  #append(next: UnstoredMessage): number | Promise<number> {
    const { store, session, writer } = this.#settings
    if (writer) return this.#appendShared(next, writer)
    const append = () => store.append(session, this.name, next.message, this.#stored)
    const seq = append()
    if (!(seq instanceof Promise)) return seq
    // A store with connections can lose the response to an append.
    return seq.catch(error => (isUnavailable(error) ? persist(append, STORE_TIMEOUT) : Promise.reject(error)))
  }

  /** Retries use the same number, so nothing is stored twice or skipped. */
  async #appendShared({ message, place, last }: UnstoredMessage, { epoch, facts, written }: WriterSettings) {
    const { store, session } = this.#settings
    const writer = place === undefined && !last ? { epoch, facts } : { epoch, facts, bus: place, finished: last }
    const append = () => store.append(session, this.name, message, this.#stored, writer)
    const seq = await persist(append, STORE_TIMEOUT)
    this.#finished ||= last
    written(this.name)
    return seq
  }

  /** Deletes stored messages, because a missing stream is better than an undetected gap. */
  #fail(error: unknown) {
    const { store, session, failed, writer } = this.#settings
    if (writer && StreamFenced.is(error)) return this.#giveUp(writer)
    if (this.#broken) return
    failed(error)
    this.#broken = true
    this.#dropped = persist(() => store.drop(session, this.name), END_TIMEOUT).catch(() => undefined)
  }

  #giveUp(writer: WriterSettings) {
    this.abandon(writer.fenced !== undefined)
    writer.fenced?.()
  }

  #deliver(seq: number, message: string) {
    if (seq !== this.#stored + 1) throw wrongNumber(seq, this.#stored)
    this.#stored = seq
    // A replay reads the message from the store.
    if (!this.#reader || this.#replaying || seq <= this.#sent) return
    this.#sent = seq
    if (!this.#reader.send(message, this.#idOf(seq))) this.#reader = undefined
  }

  finish(last?: string) {
    if (last !== undefined) this.#enqueue({ message: last, place: undefined, last: true })
    else if (this.#settings.writer?.leaving()) return this.abandon()
    this.#ending = true
    this.#endIfDone()
  }

  #endIfDone() {
    if (!this.#ending || this.#appending || this.#replaying || this.#left) return
    this.disconnect()
    if (this.#ended) return
    this.#ended = true
    const finished = () => this.#settings.finished(this.name)
    // A broken stream stays registered until it is deleted.
    if (this.#dropped) return void this.#dropped.then(finished)
    this.#finishStored()
    finished()
  }

  #finishStored() {
    const { store, session, writer } = this.#settings
    if (!writer || this.#finished) return
    const { epoch, facts, written } = writer
    persist(() => store.shared?.finish(session, this.name, { epoch, facts }), END_TIMEOUT).then(
      () => written(this.name),
      () => undefined,
    )
  }

  /** Stops writing, so that another node can continue; `silent` keeps readers open. */
  abandon(silent = false) {
    const first = !this.#ended
    this.#ended = this.#ending = true
    this.#unstored.length = 0
    this.#left ||= silent
    if (!silent) this.disconnect(RETRY)
    if (first) this.#settings.finished(this.name)
  }

  /** Closes the connections, not the stream. `retry`: milliseconds. */
  disconnect(retry?: number) {
    if (this.#primed && !this.#broken && !this.#ended) {
      this.#leaving = { retry }
      return
    }
    const readers = this.#reader ? [...this.#silent, this.#reader] : this.#silent
    this.#reader = undefined
    this.#silent = []
    this.#replaying = false
    for (const reader of readers) if (!reader.closed) reader.end(retry)
  }

  /** True from `finish` until everything is stored and sent. */
  get ending() {
    return this.#ending && !this.#ended
  }

  get hasReader() {
    return [this.#reader, ...this.#silent].some(reader => reader?.closed === false)
  }

  /** False if a message could not be stored, so the stream cannot be resumed. */
  get isWhole() {
    return !this.#broken
  }

  endsAt(seq: number) {
    return seq === this.#stored && !this.#broken
  }

  /** Adds a reader; the previous one stays open and silent. Resolves to false if a message after `seq` is gone. */
  async attach(reader: EventStream, seq: number) {
    this.#silent = (this.#reader ? [...this.#silent, this.#reader] : this.#silent).filter(({ closed }) => !closed)
    this.#reader = reader
    reader.whenClosed(() => this.#forget(reader))
    this.#sent = seq
    this.#replaying = seq < this.#stored
    const whole = !this.#replaying || (await this.#replay(reader))
    if (!whole) this.#drop(reader)
    this.#endIfDone()
    return whole
  }

  #forget(reader: EventStream) {
    this.#silent = this.#silent.filter(one => one !== reader)
    this.#drop(reader)
  }

  #drop(reader: EventStream) {
    if (this.#reader !== reader) return
    this.#reader = undefined
    this.#replaying = false
  }

  async #replay(reader: EventStream): Promise<boolean> {
    const { store, session, owner = session } = this.#settings
    const isWanted = () => this.#reader === reader
    // Messages written meanwhile are only stored; the next page contains them.
    while (this.#reader === reader && this.#sent < this.#stored) {
      const events = await readPage({ store, session, stream: this.name, seq: this.#sent, owner }, isWanted)
      if (this.#reader !== reader) return true
      if (!events || events.length === 0) return false
      for (const { seq, message } of events) {
        if (!reader.send(message, this.#idOf(seq))) break
        this.#sent = seq
        await reader.drained()
        if (this.#reader !== reader) return true
      }
      if (reader.closed) this.#reader = undefined
    }
    this.#replaying = false
    return true
  }

  /** Sends an event id without a message, so that clients can resume from the beginning. */
  prime(reader: EventStream, retry: number) {
    this.#primed = { reader, retry }
    if (!this.#appending) this.#sendPrimed()
  }

  #sendPrimed() {
    if (this.#broken) return
    this.#primed?.reader.event({ id: this.#idOf(0), retry: this.#primed.retry, data: '' })
    this.#primed = undefined
    if (this.#leaving) this.disconnect(this.#leaving.retry)
    this.#leaving = undefined
  }

  reopen() {
    const { writer } = this.#settings
    if (!writer || this.#ended || this.#broken) return
    this.#openStored().catch(error => {
      if (StreamFenced.is(error)) this.#giveUp(writer)
    })
  }
}

const wrongNumber = (seq: unknown, stored: number) =>
  new Error(
    `the event store numbered a message ${JSON.stringify(seq)}, but ${stored + 1} was expected: ` +
      "`append` must return one more than the stream's last number, or than `known`",
  )

export type ResumableStream = Pick<StoredStream, keyof StoredStream>

export const createResumableStream = (settings: ResumableStreamSettings): ResumableStream => new StoredStream(settings)
