// One stream of a session: every message is stored before its event id leaves, so that a client whose connection broke
// comes back with the id and gets exactly what it missed (2025-11-25 basic/transports, "Resumability and Redelivery").
import { type EventStream, RETRY } from '../http/sse.ts'
import { createStreamName } from './event-id.ts'
import type { EventStore } from './event-store.ts'
import { readPage } from './read-page.ts'
import { createStreamWriting, type StreamWriting, type WriterSettings } from './stream-writing.ts'

/** A stream whose messages are kept: a client that lost its connection comes back for the rest. */
export interface ResumableStream {
  readonly name: string
  /** Stores a message, then sends it to whoever reads. `place`: where on the change bus it comes from. */
  write(message: string, place?: string): void
  /** After what was written, and after this last message: no more will come, and the responses of its readers end. */
  finish(last?: string): void
  /** Closes the connections, not the stream; `retry` tells the clients when to come back, in milliseconds. */
  disconnect(retry?: number): void
  /** Writes no more and leaves the stream as it is, for another node to go on with; `silent` leaves its readers too. */
  abandon(silent?: boolean): void
  /** False where a message could not be stored: nobody can come back to it. */
  readonly isWhole: boolean
  /** True where nothing is stored after `seq`: whoever saw that missed nothing, whatever the store still has. */
  endsAt(seq: number): boolean
  /**
   * A reader for what comes after `seq`. It replaces the one before, which stays open and silent. False, and no
   * reader, where something after `seq` is gone.
   */
  attach(reader: EventStream, seq: number): Promise<boolean>
  /** True from `finish` on, until everything is stored and sent. */
  readonly ending: boolean
  /** True while a connection is open on it, be it a silent one. */
  readonly attended: boolean
  /** The first event, which carries an id and no message, so that even what comes first can be resumed. */
  prime(reader: EventStream, retry: number): void
  /** Makes it known again to a store that may have lost it. */
  reopen(): void
}

export interface ResumableStreamSettings {
  readonly store: EventStore
  readonly session: string
  /** Whose session it is: what clients come back for is read in turns. Default: nobody else's. */
  readonly owner?: string
  /** Called once the stream is finished. */
  readonly finished: (name: string) => void
  /** Called when the store fails. */
  readonly failed: (error: unknown) => void
  /** How it is written to a store that every node uses. */
  readonly writer?: WriterSettings | undefined
  /** Default: a random one. */
  readonly name?: string
  /** The number of the last message, where another node began it. */
  readonly begunUntil?: number | undefined
}

interface Unstored {
  readonly message: string
  readonly place: string | undefined
  readonly last: boolean
}

class StoredStream implements ResumableStream {
  readonly name: string
  readonly #settings: ResumableStreamSettings
  /** Messages that wait until the store has the one before: their numbers are in the order of writing. */
  readonly #unstored: Unstored[] = []
  readonly #writing: StreamWriting
  #appending = false
  /** Who gets what is written. */
  #reader: EventStream | undefined
  /** True while the reader is still told what was stored before it came. */
  #replaying = false
  /** Readers that were replaced. */
  #silent: EventStream[] = []
  /** The last message that is stored, and the last that the reader was sent. */
  #stored: number
  #sent = 0
  #ending = false
  #over = false
  /** Another node goes on with it, and its readers here stay. */
  #left = false
  /** Nobody can come back to it: something was sent that is not stored. */
  #broken = false
  /** Settled once nothing of a broken stream is stored any more. */
  #dropped: Promise<void> | undefined
  #primed: { readonly reader: EventStream; readonly retry: number } | undefined
  /** A disconnection that waits until the client has an id to come back with. */
  #leaving: { readonly retry: number | undefined } | undefined

  constructor(settings: ResumableStreamSettings) {
    const { store, session, writer, begunUntil } = settings
    this.#settings = settings
    this.name = settings.name ?? createStreamName(session)
    this.#stored = begunUntil ?? 0
    this.#writing = createStreamWriting({ store, session, stream: this.name, known: this.#stored }, writer)
    // A shared store knows the stream before the client does.
    if (writer && begunUntil === undefined) void this.#open()
  }

  async #open() {
    this.#appending = true
    try {
      await this.#writing.open(this.#stored)
      this.#sendPrimed()
    } catch (error) {
      this.#fail(error)
    }
    this.#appending = false
    void this.#appendAll()
  }

  #idOf(seq: number) {
    return `${this.name}.${seq}`
  }

  write(message: string, place?: string) {
    if (this.#over) return
    this.#unstored.push({ message, place, last: false })
    if (!this.#appending) void this.#appendAll()
  }

  /** Runs to its end at once where the store does. */
  async #appendAll() {
    this.#appending = true
    for (let next = this.#unstored.shift(); next !== undefined; next = this.#unstored.shift()) {
      const { message, place, last } = next
      try {
        if (this.#broken) throw new Error('an earlier message could not be stored')
        const seq = this.#writing.append(message, this.#stored, place, last)
        this.#deliver(typeof seq === 'number' ? seq : await seq, message)
      } catch (error) {
        this.#fail(error)
        // Nobody can come back for it, but who is here can have it.
        if (!this.#replaying && !this.#over) this.#reader?.send(message)
      }
    }
    this.#appending = false
    this.#endIfDone()
  }

  /** What the store has may lack a message from now on: better nothing of it than a silent gap. */
  #fail(error: unknown) {
    if (this.#writing.isFenced(error)) return this.#giveUp()
    if (this.#broken) return
    this.#settings.failed(error)
    this.#broken = true
    this.#dropped = this.#writing.drop()
  }

  #giveUp() {
    const { writer } = this.#settings
    this.abandon(writer?.fenced !== undefined)
    writer?.fenced?.()
  }

  #deliver(seq: number, message: string) {
    if (seq !== this.#stored + 1) throw wrongNumber(seq, this.#stored)
    this.#stored = seq
    // A replay finds it in the store, or found it there before its number was known here.
    if (!this.#reader || this.#replaying || seq <= this.#sent) return
    this.#sent = seq
    if (!this.#reader.send(message, this.#idOf(seq))) this.#reader = undefined
  }

  finish(last?: string) {
    if (last === undefined && this.#settings.writer?.leaving()) return this.abandon()
    if (last !== undefined) {
      this.#unstored.push({ message: last, place: undefined, last: true })
      if (!this.#appending) void this.#appendAll()
    }
    this.#ending = true
    this.#endIfDone()
  }

  #endIfDone() {
    if (!this.#ending || this.#appending || this.#replaying || this.#left) return
    this.disconnect()
    if (this.#over) return
    this.#over = true
    const finished = () => this.#settings.finished(this.name)
    // Until its rest is gone a broken stream is known to be one.
    if (this.#dropped) return void this.#dropped.then(finished)
    this.#writing.finish()
    finished()
  }

  abandon(silent = false) {
    const first = !this.#over
    this.#over = this.#ending = true
    this.#unstored.length = 0
    this.#left ||= silent
    if (!silent) this.disconnect(RETRY)
    if (first) this.#settings.finished(this.name)
  }

  disconnect(retry?: number) {
    if (this.#primed && !this.#broken && !this.#over) {
      this.#leaving = { retry }
      return
    }
    const readers = this.#reader ? [...this.#silent, this.#reader] : this.#silent
    this.#reader = undefined
    this.#silent = []
    this.#replaying = false
    for (const reader of readers) if (!reader.closed) reader.end(retry)
  }

  get ending() {
    return this.#ending && !this.#over
  }

  get attended() {
    return [this.#reader, ...this.#silent].some(reader => reader?.closed === false)
  }

  get isWhole() {
    return !this.#broken
  }

  endsAt(seq: number) {
    return seq === this.#stored && !this.#broken
  }

  async attach(reader: EventStream, seq: number) {
    const open = this.#silent.filter(({ closed }) => !closed)
    this.#silent = this.#reader && !this.#reader.closed ? [...open, this.#reader] : open
    this.#reader = reader
    reader.whenClosed(() => this.#forget(reader))
    this.#sent = seq
    this.#replaying = seq < this.#stored
    const whole = !this.#replaying || (await this.#replay(reader))
    if (!whole && this.#reader === reader) {
      this.#reader = undefined
      this.#replaying = false
    }
    this.#endIfDone()
    return whole
  }

  /** The stream stays for its client to come back to, and nothing of the connection, 14 kB with its request. */
  #forget(reader: EventStream) {
    this.#silent = this.#silent.filter(one => one !== reader)
    if (this.#reader !== reader) return
    this.#reader = undefined
    this.#replaying = false
  }

  /** Ends early where another reader came, or this one went. */
  async #replay(reader: EventStream): Promise<boolean> {
    const { store, session, owner = session } = this.#settings
    const isWanted = () => this.#reader === reader
    // What is written meanwhile is stored, not sent: the next turn of the loop finds it, in order.
    while (this.#reader === reader && this.#sent < this.#stored) {
      const events = await readPage({ store, session, stream: this.name, seq: this.#sent, owner }, isWanted)
      if (this.#reader !== reader) return true
      if (!events || events.length === 0) return false
      for (const { seq, message } of events) {
        if (!reader.send(message, this.#idOf(seq))) break
        this.#sent = seq
        // The past may be long: it is told as fast as it is read, where the present is sent as it comes.
        await reader.drained()
        if (this.#reader !== reader) return true
      }
      if (reader.closed) this.#reader = undefined
    }
    this.#replaying = false
    return true
  }

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
    if (this.#over || this.#broken) return
    this.#writing.open(this.#stored).catch(error => {
      if (this.#writing.isFenced(error)) this.#giveUp()
    })
  }
}

/** A client could come back with such an id for what it has, or for what there is not. */
const wrongNumber = (seq: unknown, stored: number) =>
  new Error(
    `the event store numbered a message ${JSON.stringify(seq)}, where ${stored + 1} was to come: ` +
      "`append` gives one more than the stream's last, or than `known`",
  )

/** A new stream; nobody reads it yet. */
export const createResumableStream = (settings: ResumableStreamSettings): ResumableStream => new StoredStream(settings)
