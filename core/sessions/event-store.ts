// The store for events of resumable streams: in this process or shared by all nodes (a plugin).

import { createHmac, randomBytes } from 'node:crypto'
import { isBranded } from '../http/describe-thrown.ts'
import type { EventStream } from '../http/sse.ts'
import { FairQueue, type Queued } from '../mcp/fair-queue.ts'

/** A stored stream message. */
export interface StoredEvent {
  /** 1, 2, 3, ... within its stream. */
  readonly seq: number
  readonly message: string
}

/** Events after a position; undefined if some are gone. */
export type StoredEvents = readonly StoredEvent[] | undefined

/** Streams are keyed by session and stream id, so sessions cannot read each other's events. */
export interface EventStore {
  /**
   * Stores a message before it returns or resolves. Returns the previous number plus one, or `known + 1` if the store
   * lost the stream. With `writer`, the number is always `known + 1` and a repeated append is stored once.
   */
  append(
    session: string,
    stream: string,
    message: string,
    known: number,
    writer?: StreamWriter,
  ): number | Promise<number>
  /** `most` limits UTF-8 bytes, with at least one message; 0 only checks for gaps. Undefined: unknown stream or gap. */
  after(session: string, stream: string, seq: number, most?: number): StoredEvents | Promise<StoredEvents>
  drop(session: string, stream?: string): void | Promise<void>
  /** Present if all nodes share the streams. */
  readonly shared?: SharedStreams
}

/** The writer of a stream; sent with every message, because stores can lose it. */
export interface StreamWriter {
  /** Grows with each new writer. Writes with an older epoch fail with `StreamFenced`. */
  readonly epoch: number
  /** Opaque to the store, about 200 bytes. */
  readonly facts: string
  /** The position on the change bus. Undefined: unchanged. */
  readonly bus?: string | undefined
  readonly finished?: boolean
}

/** The state of a stream in a shared store. */
export interface StreamState {
  readonly facts: string
  /** The number of the last message; 0: none. */
  readonly last: number
  readonly finished: boolean
  readonly epoch: number
  readonly bus: string
}

/** Hands streams over between nodes. Every method is idempotent. */
export interface SharedStreams {
  /** `known`: the last number of a stream that the store lost. Throws `StreamFenced` if it has a newer writer. */
  open(session: string, stream: string, writer: StreamWriter, known?: number): Promise<void>
  state(session: string, stream: string): Promise<StreamState | undefined>
  /** Returns the previous state. Throws `StreamFenced` if another writer has this epoch or a newer one. */
  claim(session: string, stream: string, writer: StreamWriter): Promise<StreamState | undefined>
  finish(session: string, stream: string, writer: StreamWriter): Promise<void>
}

const BRAND = Symbol.for('mcp-host.StreamFenced')

/** Thrown if the stream has a newer writer. The message is neither stored nor sent. */
export class StreamFenced extends Error {
  constructor() {
    super('another node writes this stream now')
    this.name = 'StreamFenced'
    Object.defineProperty(this, BRAND, { value: true })
  }

  /** True for a StreamFenced of any copy of this module. */
  static is(value: unknown): value is StreamFenced {
    return isBranded(value, BRAND)
  }
}

/** `<stream>.<seq>` (2025-11-25 basic/transports, "Resumability and Redelivery"). */
export interface EventId {
  readonly stream: string
  readonly seq: number
}

/** Undefined for malformed text. */
export function parseEventId(text: string): EventId | undefined {
  const [, stream, seq] = /^([\w-]{16})\.(\d{1,15})$/.exec(text) ?? []
  return stream === undefined ? undefined : { stream, seq: Number(seq) }
}

const RANDOM_BYTES = 8
const TAG_BYTES = 4

const sessionTag = (session: string, random: Buffer) =>
  createHmac('sha256', session).update(random).digest().subarray(0, TAG_BYTES)

export function createStreamName(session: string): string {
  const random = randomBytes(RANDOM_BYTES)
  return Buffer.concat([random, sessionTag(session, random)]).toString('base64url')
}

/** Distinguishes expired events (404) from invalid ids (400). This is not a security check. */
export function isStreamOf(session: string, name: string): boolean {
  const bytes = Buffer.from(name, 'base64url')
  return sessionTag(session, bytes.subarray(0, RANDOM_BYTES)).equals(bytes.subarray(RANDOM_BYTES))
}

/** Maximum message bytes per page with more than one message. */
export const PAGE_BYTES = 262_144
/** Concurrent page reads of a store: in total and per owner. */
export const MAX_PAGES = 8
export const MAX_PAGES_PER_OWNER = 2

export interface ReadPlace {
  readonly store: EventStore
  readonly session: string
  readonly stream: string
  readonly seq: number
  readonly owner: string
}

interface PageRead extends Queued {
  readonly owner: string
  readonly begin: () => void
}

class PageQueue {
  readonly #reads = new FairQueue<PageRead>()

  #isFree(owner: string): boolean {
    return this.#reads.places < MAX_PAGES && this.#reads.placesOf(owner) < MAX_PAGES_PER_OWNER
  }

  async enter(owner: string): Promise<void> {
    if (this.#isFree(owner)) return this.#reads.take(owner)
    await new Promise<void>(begin => this.#reads.add(owner, { owner, begin, returns: false }))
  }

  leave(owner: string) {
    this.#reads.leave(owner)
    const next = this.#reads.next(read => this.#isFree(read.owner))
    if (!next) return
    this.#reads.delete(next.owner, next)
    this.#reads.take(next.owner)
    next.begin()
  }
}

/** One per store, so a slow store does not block others. */
const queues = new WeakMap<EventStore, PageQueue>()

/** Empty if there are no messages or `isWanted` returns false; undefined if a message is gone. */
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

export const isWholeAfter = async (store: EventStore, session: string, stream: string, seq: number): Promise<boolean> =>
  (await store.after(session, stream, seq, 0)) !== undefined

export interface Sending {
  readonly sent?: (seq: number) => void
  readonly until?: number
  readonly isWanted?: () => boolean
}

/** Sends stored messages with backpressure. Returns false if a message or the reader is gone. */
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
