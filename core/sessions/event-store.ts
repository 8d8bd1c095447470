// The store for events of resumable streams. Above a `Store`, a stream is a record of its writer and a log, in the partition of its
// session.

import { createHmac, randomBytes } from 'node:crypto'
import { isBranded } from '../http/describe-thrown.ts'
import type { EventStream } from '../http/sse.ts'
import { FairQueue, type Queued } from '../mcp/calls/fair-queue.ts'
import type { Found, LogStep, Outcome, RecordStep, SetStep, Store } from '../store/store.ts'
import { partitionOf } from './session-id.ts'

export interface StoredEvent {
  /** Numbered 1, 2, 3, ... within its stream. */
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

/** Maximum bytes of a page with more than one message. */
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

class PageQueue {
  readonly #reads = new FairQueue<Queued & { readonly owner: string; readonly start: () => void }>()

  #isFree(owner: string): boolean {
    return this.#reads.slots < MAX_PAGES && this.#reads.slotsOf(owner) < MAX_PAGES_PER_OWNER
  }

  async enter(owner: string): Promise<void> {
    if (this.#isFree(owner)) return this.#reads.take(owner)
    await new Promise<void>(start => this.#reads.add(owner, { owner, start, isResuming: false }))
  }

  leave(owner: string) {
    this.#reads.leave(owner)
    const next = this.#reads.next(read => this.#isFree(read.owner))
    if (!next) return
    this.#reads.delete(next.owner, next)
    this.#reads.take(next.owner)
    next.start()
  }
}

/** One queue per store, so a slow store does not block others. */
const queues = new WeakMap<EventStore, PageQueue>()

/** Reads a page. Empty if there are no messages or `isWanted` returns false; undefined if a message is gone. */
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

export const hasAllAfter = async (store: EventStore, session: string, stream: string, seq: number): Promise<boolean> =>
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

export interface StreamLimits {
  /** Lifetime after the last event, milliseconds. */
  readonly ttl: number
  /** Maximum events; the oldest are removed first. */
  readonly maxEvents: number
  /** Maximum bytes; the last message is always kept. */
  readonly maxBytes: number
}

/** The writer of streams that only one node can write. */
const SOLE: StreamWriter = { epoch: 0, facts: '' }

const NAMES = 'streams'
const NAMES_PER_READ = 1_000

const recordOf = (stream: string) => `stream:${stream}`

const epochOf = ({ fields }: Found) => Number(fields?.['epoch'] ?? 0)

/** After a fail-over two writers can have the same epoch. */
const numberTaken = (number: number) =>
  new Error(
    `another message of this stream has the number ${number}: after a store failover, two nodes wrote the stream`,
  )

export function createEventStore(store: Store, { ttl, maxEvents, maxBytes }: StreamLimits): EventStore {
  const keep = { messages: maxEvents, bytes: maxBytes }

  const fieldsOf = ({ bus, finished }: StreamWriter) => ({
    ...(bus === undefined ? {} : { bus }),
    ...(finished ? { finished: '1' } : {}),
  })

  const current = (stream: string, writer: StreamWriter): RecordStep => ({
    record: recordOf(stream),
    where: { epoch: String(writer.epoch) },
    set: fieldsOf(writer),
    ttl,
  })

  const addName = (stream: string): SetStep => ({
    sortedSet: NAMES,
    below: { now: 0 },
    put: { [stream]: { now: ttl } },
    ttl,
  })

  /** Throws if a newer writer has the stream, or if the store has lost this writer's claim and a previous writer has finished. */
  function refuseFenced(found: Found, { epoch }: StreamWriter) {
    const other = epochOf(found)
    if (other > epoch || (other < epoch && found.fields?.['finished'] === '1')) throw new StreamFenced()
  }

  /** Starts the log after `known`: earlier messages are gone, and readers detect a gap. */
  async function startLog(
    digest: string,
    stream: string,
    writer: StreamWriter,
    { known, message, when }: { known: number; message?: string; when: Pick<RecordStep, 'version' | 'where'> },
  ): Promise<Outcome> {
    const { epoch, facts } = writer
    const set = { bus: '', ...fieldsOf(writer), epoch: String(epoch), facts }
    return store.transact(partitionOf(digest), [
      { record: recordOf(stream), ...when, set, ttl },
      { log: stream, reset: known, ttl, ...(message === undefined ? {} : { append: [message], keep }) },
      addName(stream),
    ])
  }

  /**
   * Becomes the writer and keeps the log. False for a store of several machines, which may have lost a claim: its log can contain
   * messages of the previous writer that no client received.
   */
  async function takeOver(
    digest: string,
    stream: string,
    writer: StreamWriter,
    { known, message, seen }: { known: number; message: string | undefined; seen: Found },
  ): Promise<boolean> {
    const { version = 0 } = seen
    if (store.shared !== 'host' || version === 0) return false
    const { epoch, facts } = writer
    const append = message === undefined ? {} : { after: known, append: [message], keep }
    const outcome = await store.transact(partitionOf(digest), [
      { record: recordOf(stream), version, set: { ...fieldsOf(writer), epoch: String(epoch), facts }, ttl },
      { log: stream, ttl, ...append },
      addName(stream),
    ])
    return outcome.done && (outcome.results[1]?.last ?? 0) >= known
  }

  /** `found`: the record of another writer, of a lost stream (version 0), or undefined for a lost part of the log. */
  async function beginAgain(
    digest: string,
    stream: string,
    writer: StreamWriter,
    { known, message, found }: { known: number; message?: string; found: Found | undefined },
  ) {
    const from = { known, ...(message === undefined ? {} : { message }) }
    for (let seen = found; ; ) {
      if (seen) refuseFenced(seen, writer)
      if (seen && (await takeOver(digest, stream, writer, { known, message, seen }))) return
      const when = seen ? { version: seen.version ?? 0 } : { where: { epoch: String(writer.epoch) } }
      const outcome = await startLog(digest, stream, writer, { ...from, when })
      if (outcome.done) return
      seen = outcome.found
    }
  }

  async function append(digest: string, stream: string, message: string, known: number, writer = SOLE) {
    const log = { log: stream, after: known, append: [message], keep, ttl }
    const outcome = await store.transact(partitionOf(digest), [current(stream, writer), log])
    if (outcome.done) return known + 1
    const { step, found } = outcome
    if (step === 1 && (found.last ?? 0) > known) throw numberTaken(known + 1)
    await beginAgain(digest, stream, writer, { known, message, found: step === 0 ? found : undefined })
    return known + 1
  }

  async function state(digest: string, stream: string) {
    const [record, log] = await store.read(partitionOf(digest), [
      { record: recordOf(stream) },
      { log: stream, after: 0, bytes: 0 },
    ])
    if (!record) return undefined
    const { epoch, facts = '', before, bus = '', finished } = record.fields
    const found: StreamState = { epoch: Number(epoch), facts, last: log?.last ?? 0, bus, finished: finished === '1' }
    return { found, before, version: record.version }
  }

  const renew = (stream: string): LogStep => ({ log: stream, ttl })

  return {
    append,
    async after(digest, stream, seq, most) {
      const [page] = await store.read(partitionOf(digest), [
        { log: stream, after: seq, ...(most === undefined ? {} : { bytes: most }) },
      ])
      return page?.messages?.map((message, index) => ({ seq: seq + 1 + index, message }))
    },
    async drop(digest, stream) {
      const session = partitionOf(digest)
      for (;;) {
        const named =
          stream === undefined
            ? (await store.read(session, [{ sortedSet: NAMES, limit: NAMES_PER_READ }]))[0].members
            : [{ member: stream }]
        const names = named.map(({ member }) => member)
        await store.transact(session, [
          { sortedSet: NAMES, remove: names },
          ...names.flatMap(name => [
            { record: recordOf(name), delete: true },
            { log: name, delete: true },
          ]),
        ])
        if (stream !== undefined || names.length < NAMES_PER_READ) return
      }
    },
    ...(store.shared && {
      shared: {
        async open(digest, stream, writer, known = 0) {
          const outcome = await startLog(digest, stream, writer, { known, when: { version: 0 } })
          if (outcome.done) return
          const { found } = outcome
          if (epochOf(found) !== writer.epoch) return beginAgain(digest, stream, writer, { known, found })
          const renewed = await store.transact(partitionOf(digest), [
            current(stream, { ...writer, bus: undefined }),
            renew(stream),
            addName(stream),
          ])
          if (renewed.done && (renewed.results[1]?.last ?? 0) >= known) return
          await beginAgain(digest, stream, writer, { known, found: renewed.done ? undefined : renewed.found })
        },
        state: async (digest, stream) => (await state(digest, stream))?.found,
        async claim(digest, stream, { epoch, facts }) {
          for (;;) {
            const seen = await state(digest, stream)
            if (!seen) return undefined
            const { found, version, before = found.facts } = seen
            if (found.epoch > epoch || (found.epoch === epoch && found.facts !== facts)) throw new StreamFenced()
            const isAgain = found.epoch === epoch
            const set = isAgain ? {} : { epoch: String(epoch), facts, before: found.facts }
            const outcome = await store.transact(partitionOf(digest), [
              { record: recordOf(stream), version, set, ttl },
              renew(stream),
            ])
            if (!outcome.done) continue
            // The previous writer can append between the read and the claim.
            const last = outcome.results[1]?.last ?? found.last
            return { ...found, last, epoch, facts: isAgain ? before : found.facts }
          }
        },
        async finish(digest, stream, writer) {
          const outcome = await store.transact(partitionOf(digest), [
            {
              record: recordOf(stream),
              exists: true,
              most: { epoch: writer.epoch },
              set: fieldsOf({ ...writer, finished: true }),
              ttl,
            },
            renew(stream),
          ])
          if (!outcome.done && outcome.found.version !== 0) throw new StreamFenced()
        },
      },
    }),
  }
}
