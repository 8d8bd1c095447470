// One stream of a session: every message is stored before its event id leaves, so that a client whose connection broke
// comes back with the id and gets exactly what it missed (2025-11-25 basic/transports, "Resumability and Redelivery").
import { randomBytes } from 'node:crypto'
import type { EventStream } from '../http/sse.ts'
import type { EventStore } from './event-store.ts'

/** Names a place in a stream: `<stream>.<seq>`. The stream's name is random, so no id of one session fits another. */
export interface EventId {
  readonly stream: string
  readonly seq: number
}

export function parseEventId(text: string): EventId | undefined {
  const [, stream, seq] = /^([\w-]{11})\.(\d{1,15})$/.exec(text) ?? []
  return stream === undefined ? undefined : { stream, seq: Number(seq) }
}

export interface ResumableStream {
  readonly name: string
  /** Stores a message, then sends it to whoever reads. */
  write(message: string): void
  /** After what was written: no more will come, and the responses of its readers end. */
  finish(): void
  /** Closes the connections, not the stream; `retry` tells the clients when to come back, in milliseconds. */
  disconnect(retry?: number): void
  /** True where nothing is stored after `seq`: whoever saw that missed nothing, whatever the store still has. */
  endsAt(seq: number): boolean
  /**
   * A reader for what comes after `seq`. It replaces the one before, which stays open and silent. False, and no
   * reader, where something after `seq` is gone.
   */
  attach(reader: EventStream, seq: number): Promise<boolean>
  /** True while a connection is open on it, be it a silent one. */
  readonly attended: boolean
  /** The first event, which carries an id and no message, so that even what comes first can be resumed. */
  prime(reader: EventStream, retry: number): void
}

export interface ResumableStreamSettings {
  readonly store: EventStore
  readonly session: string
  /** Called once the stream is finished. */
  readonly finished: (name: string) => void
  /** Called when the store fails. */
  readonly failed: (error: unknown) => void
}

class StoredStream implements ResumableStream {
  readonly name = randomBytes(8).toString('base64url')
  readonly #settings: ResumableStreamSettings
  /** Messages that wait until the store has the one before: their numbers are in the order of writing. */
  readonly #unstored: string[] = []
  #appending = false
  /** Who gets what is written. */
  #reader: EventStream | undefined
  /** True while the reader is still told what was stored before it came. */
  #replaying = false
  /** Readers that were replaced. */
  #silent: EventStream[] = []
  /** The last message that is stored, and the last that the reader was sent. */
  #stored = 0
  #sent = 0
  #ending = false
  #over = false

  constructor(settings: ResumableStreamSettings) {
    this.#settings = settings
  }

  #idOf(seq: number) {
    return `${this.name}.${seq}`
  }

  write(message: string) {
    this.#unstored.push(message)
    if (!this.#appending) void this.#appendAll()
  }

  /** Runs to its end at once where the store does. */
  async #appendAll() {
    const { store, session, failed } = this.#settings
    this.#appending = true
    for (let message = this.#unstored.shift(); message !== undefined; message = this.#unstored.shift()) {
      try {
        const seq = store.append(session, this.name, message, this.#stored)
        this.#deliver(typeof seq === 'number' ? seq : await seq, message)
      } catch (error) {
        failed(error)
        // Nobody can come back for it, but who is here can have it.
        if (!this.#replaying) this.#reader?.send(message)
      }
    }
    this.#appending = false
    this.#endIfDone()
  }

  #deliver(seq: number, message: string) {
    this.#stored = seq
    // A replay finds it in the store, or found it there before its number was known here.
    if (!this.#reader || this.#replaying || seq <= this.#sent) return
    this.#sent = seq
    if (!this.#reader.send(message, this.#idOf(seq))) this.#reader = undefined
  }

  finish() {
    this.#ending = true
    this.#endIfDone()
  }

  #endIfDone() {
    if (!this.#ending || this.#appending || this.#replaying) return
    this.disconnect()
    if (this.#over) return
    this.#over = true
    this.#settings.finished(this.name)
  }

  disconnect(retry?: number) {
    const readers = this.#reader ? [...this.#silent, this.#reader] : this.#silent
    this.#reader = undefined
    this.#silent = []
    this.#replaying = false
    for (const reader of readers) if (!reader.closed) reader.end(retry)
  }

  get attended() {
    return [this.#reader, ...this.#silent].some(reader => reader?.closed === false)
  }

  endsAt(seq: number) {
    return seq === this.#stored
  }

  async attach(reader: EventStream, seq: number) {
    const open = this.#silent.filter(({ closed }) => !closed)
    this.#silent = this.#reader && !this.#reader.closed ? [...open, this.#reader] : open
    this.#reader = reader
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

  /** Ends early where another reader came, or this one went. */
  async #replay(reader: EventStream): Promise<boolean> {
    const { store, session } = this.#settings
    // What is written meanwhile is stored, not sent: the next turn of the loop finds it, in order.
    while (this.#reader === reader && this.#sent < this.#stored) {
      const events = await store.after(session, this.name, this.#sent)
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
    reader.event({ id: this.#idOf(0), retry, data: '' })
  }
}

/** A new stream; nobody reads it yet. */
export const createResumableStream = (settings: ResumableStreamSettings): ResumableStream => new StoredStream(settings)
