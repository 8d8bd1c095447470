// The store for events of resumable streams: in this process (memory-event-store.ts) or shared by all nodes (a plugin).
import { createHmac, randomBytes } from 'node:crypto'
import { isBranded } from '../http/describe-thrown.ts'
import type { EventStream } from '../http/sse.ts'

/** A message of a stream in a store. */
export interface StoredEvent {
  /** 1, 2, 3, ... within its stream. */
  readonly seq: number
  /** A JSON-RPC message. */
  readonly message: string
}

/** What a store has after a position; undefined if some of it is gone. */
export type StoredEvents = readonly StoredEvent[] | undefined

/** Streams are named by their session and their own id, so sessions cannot read each other's events. */
export interface EventStore {
  /**
   * Stores a message and returns its number: the stream's last number plus one; if the store lost the stream, `known` (the
   * last number that its writer received) plus one. With `writer`, the number is always `known + 1`: a repeated append of the
   * same message stores it once. The message is stored when this returns or its promise resolves.
   */
  append(
    session: string,
    stream: string,
    message: string,
    known: number,
    writer?: StreamWriter,
  ): number | Promise<number>
  /**
   * Returns the messages after `seq` in order; undefined if the stream is unknown or a message after `seq` is gone. `most`
   * limits the UTF-8 bytes: at least one message is returned, and none for 0, which only checks that nothing is gone.
   */
  after(session: string, stream: string, seq: number, most?: number): StoredEvents | Promise<StoredEvents>
  /** Deletes a stream, or all streams of a session. */
  drop(session: string, stream?: string): void | Promise<void>
  /** Present if every node reads and writes the same streams. */
  readonly shared?: SharedStreams
}

/** The writer of a stream; sent with every message, because a store can lose it. */
export interface StreamWriter {
  /** Grows with each change of the writer. Writes with an older epoch fail with `StreamFenced`. */
  readonly epoch: number
  /** Opaque to the store, about 200 bytes; a new writer replaces it. */
  readonly facts: string
  /** The message's position on the change bus; stored as the stream's last. Undefined: unchanged. */
  readonly bus?: string | undefined
  /** This message is the last. */
  readonly finished?: boolean
}

/** The state of a stream in a shared store. */
export interface StreamState {
  readonly facts: string
  /** The number of its last message; 0: none yet. */
  readonly last: number
  readonly finished: boolean
  readonly epoch: number
  /** Empty if none was given. */
  readonly bus: string
}

/** Lets nodes hand over streams. Every method is idempotent. */
export interface SharedStreams {
  /**
   * Creates a stream before it has a message, or again after the store lost it: `known` is then its last number, and earlier
   * messages are gone. Throws `StreamFenced` if it has a newer writer.
   */
  open(session: string, stream: string, writer: StreamWriter, known?: number): Promise<void>
  /** Undefined if the stream is unknown. */
  state(session: string, stream: string): Promise<StreamState | undefined>
  /**
   * Makes `writer` the only writer. Returns the state with the previous `facts`; undefined, without a change, if the stream
   * is unknown. Throws `StreamFenced` if another writer claimed it with this epoch or a newer one.
   */
  claim(session: string, stream: string, writer: StreamWriter): Promise<StreamState | undefined>
  /** No message will follow. Throws `StreamFenced` like `append`. */
  finish(session: string, stream: string, writer: StreamWriter): Promise<void>
}

const BRAND = Symbol.for('mcp-host.StreamFenced')

/** The stream has a newer writer: messages of the old one are neither stored nor sent. */
export class StreamFenced extends Error {
  constructor() {
    super('another node writes this stream now')
    this.name = 'StreamFenced'
    Object.defineProperty(this, BRAND, { value: true })
  }

  /** True for a StreamFenced of any copy of this module: a config can load its own. */
  static is(value: unknown): value is StreamFenced {
    return isBranded(value, BRAND)
  }
}

/** An event id, `<stream>.<seq>` (2025-11-25 basic/transports, "Resumability and Redelivery"). */
export interface EventId {
  readonly stream: string
  readonly seq: number
}

/** Parses a `Last-Event-ID`; undefined if it does not have the form of an event id. */
export function parseEventId(text: string): EventId | undefined {
  const [, stream, seq] = /^([\w-]{16})\.(\d{1,15})$/.exec(text) ?? []
  return stream === undefined ? undefined : { stream, seq: Number(seq) }
}

const RANDOM_BYTES = 8
const TAG_BYTES = 4

const sessionTag = (session: string, random: Buffer) =>
  createHmac('sha256', session).update(random).digest().subarray(0, TAG_BYTES)

/** Creates a unique stream name that is bound to its session. */
export function createStreamName(session: string): string {
  const random = randomBytes(RANDOM_BYTES)
  return Buffer.concat([random, sessionTag(session, random)]).toString('base64url')
}

/** Whether the name was created for this session. Distinguishes expired events (404) from invalid ids (400); no security check. */
export function isStreamOf(session: string, name: string): boolean {
  const bytes = Buffer.from(name, 'base64url')
  return sessionTag(session, bytes.subarray(0, RANDOM_BYTES)).equals(bytes.subarray(RANDOM_BYTES))
}

/** Maximum bytes of messages per page, if it has more than one. */
export const PAGE_BYTES = 262_144
/** Concurrent page reads of a store in this process: in total and per owner. */
export const MAX_PAGES = 8
export const MAX_PAGES_PER_OWNER = 2

/** A position in a stored stream. */
export interface ReadPlace {
  readonly store: EventStore
  readonly session: string
  readonly stream: string
  /** The number of the last message read. */
  readonly seq: number
  /** The owner of the reads, for fairness. */
  readonly owner: string
}

/** Limits concurrent page reads of a store; waiting owners take turns. */
class PageQueue {
  readonly #running = new Map<string, number>()
  /** Waiting reads of each owner; the owner at the front is next. */
  readonly #waiting = new Map<string, Array<() => void>>()
  #total = 0

  #isFree(owner: string): boolean {
    return this.#total < MAX_PAGES && (this.#running.get(owner) ?? 0) < MAX_PAGES_PER_OWNER
  }

  #begin(owner: string) {
    this.#total++
    this.#running.set(owner, (this.#running.get(owner) ?? 0) + 1)
  }

  async enter(owner: string): Promise<void> {
    if (this.#isFree(owner)) return this.#begin(owner)
    const tasks = this.#waiting.get(owner) ?? []
    this.#waiting.set(owner, tasks)
    await new Promise<void>(resolve => void tasks.push(resolve))
  }

  leave(owner: string) {
    this.#total--
    const left = (this.#running.get(owner) ?? 1) - 1
    if (left > 0) this.#running.set(owner, left)
    else this.#running.delete(owner)
    for (const [next, tasks] of this.#waiting) {
      if (!this.#isFree(next)) continue
      const task = tasks.shift()
      this.#waiting.delete(next)
      if (tasks.length > 0) this.#waiting.set(next, tasks)
      this.#begin(next)
      task?.()
    }
  }
}

/** One per store: a store that does not respond blocks no other. */
const queues = new WeakMap<EventStore, PageQueue>()

/**
 * Reads the next messages after a position. Empty if there are none or `isWanted` returns false when the read begins;
 * undefined if a message after the position is gone.
 */
export async function readPage(
  { store, session, stream, seq, owner }: ReadPlace,
  isWanted: () => boolean,
): Promise<StoredEvents> {
  const queue = queues.get(store) ?? new PageQueue()
  queues.set(store, queue)
  await queue.enter(owner)
  try {
    return isWanted() ? await store.after(session, stream, seq, PAGE_BYTES) : []
  } finally {
    queue.leave(owner)
  }
}

/** Whether no message after a position is gone. Reads no message. */
export const isWholeAfter = async (store: EventStore, session: string, stream: string, seq: number): Promise<boolean> =>
  (await store.after(session, stream, seq, 0)) !== undefined

export interface Sending {
  /** Receives the number of each sent message. */
  readonly sent?: (seq: number) => void
  /** Stops reading after this number. */
  readonly until?: number
  /** Stops reading when it returns false. */
  readonly isWanted?: () => boolean
}

/** Sends the stored messages after a position as fast as the reader takes them; false if a message or the reader is gone. */
export async function sendStored(
  { seq, ...place }: ReadPlace,
  reader: EventStream,
  { sent, until = Number.POSITIVE_INFINITY, isWanted = () => true }: Sending = {},
): Promise<boolean> {
  let last = seq
  do {
    const page = await readPage({ ...place, seq: last }, () => !reader.closed && isWanted())
    if (!page) return false
    for (const { seq: next, message } of page) {
      if (!reader.send(message, `${place.stream}.${next}`)) return false
      last = next
      sent?.(next)
      await reader.drained()
    }
    if (page.length === 0) break
  } while (last < until)
  return !reader.closed
}
