// Where the events of resumable streams are kept until a client has them. The default keeps them in memory, bounded
// per stream and in all; a plugin may fill the slot with one for every node.

export interface StoredEvent {
  /** 1, 2, 3, ... within its stream. */
  readonly seq: number
  /** A JSON-RPC message. */
  readonly message: string
}

/** Streams are named by their session and their own id, so that nothing of one session is found from another. */
export interface EventStore {
  /**
   * Keeps a message and gives its number: one more than the stream's last, or where the store has forgotten the stream,
   * than `known`, the last that its writer was given. It is stored when this returns, or its promise resolves.
   * A shared store is told whose stream it is; the number is `known + 1` then, so that a message whose storing may have
   * failed is given again and stored once.
   */
  append(
    session: string,
    stream: string,
    message: string,
    known: number,
    writer?: StreamWriter,
  ): number | Promise<number>
  /** What came after `seq`; undefined where the stream is unknown or something after `seq` is gone. */
  after(session: string, stream: string, seq: number): StoredEvents | Promise<StoredEvents>
  /** Forgets a stream, or a whole session. */
  drop(session: string, stream?: string): void | Promise<void>
  /** Present where every node reads and writes the same streams. */
  readonly shared?: SharedStreams
}

/** Who writes a stream, and what is to be kept beside its events; sent with every message, for a store may forget. */
export interface StreamWriter {
  /** Grows with each change of its writer; what an older one writes is refused with a `StreamFenced`. */
  readonly epoch: number
  /** Opaque to the store, 200 bytes or so; a new writer's replaces the one before. */
  readonly facts: string
  /** Where on the change bus the message comes from; kept as the stream's last. Undefined: unchanged. */
  readonly bus?: string | undefined
  /** This message is the last. */
  readonly finished?: boolean
}

export interface StreamState {
  readonly facts: string
  /** The number of its last message; 0: none yet. */
  readonly last: number
  readonly finished: boolean
  readonly epoch: number
  /** Empty where none was given. */
  readonly bus: string
}

/** What nodes need to pass a stream on to each other. Everything may be done twice, with the same outcome. */
export interface SharedStreams {
  /**
   * Makes a stream known before it has a message, or again where the store has lost it: `known` is the number of the last
   * message then, and what came before is gone. Throws a `StreamFenced` where a newer writer has it.
   */
  open(session: string, stream: string, writer: StreamWriter, known?: number): Promise<void>
  /** Undefined where the stream is unknown. */
  state(session: string, stream: string): Promise<StreamState | undefined>
  /**
   * Makes `writer` the only one who may write. Gives the stream's state, with the `facts` of before (undefined: unknown
   * stream, and nothing is kept). Throws a `StreamFenced` where another has claimed it with this epoch or a newer one;
   * the same claim again, with the same facts, succeeds.
   */
  claim(session: string, stream: string, writer: StreamWriter): Promise<StreamState | undefined>
  /** No message will come. Throws a `StreamFenced` as `append`. */
  finish(session: string, stream: string, writer: StreamWriter): Promise<void>
}

/** A stream has a newer writer: what this one still has to say is not stored, and must not be sent. */
export class StreamFenced extends Error {
  constructor() {
    super('another node writes this stream now')
    this.name = 'StreamFenced'
  }
}

export type StoredEvents = readonly StoredEvent[] | undefined

/** Bounds of the store in memory. Bytes are what is held: `EVENT_COST` and `STREAM_COST` are part of them. */
export interface MemoryBounds {
  /** Events of one stream; the oldest go first. Default 10,000. */
  readonly events: number
  /** Bytes of one stream; its last event is kept whatever its size. Default 4 MiB. */
  readonly bytes: number
  /** Bytes of all streams; the streams that were written to longest ago go first. Default 64 MiB. */
  readonly total: number
  /** How long after its last event a stream can be resumed, milliseconds. Default 5 minutes. */
  readonly lifetime: number
}

const MIB = 1024 * 1024
/** What an event, and a stream, cost beside their text: measured, test/core/event-store-memory.test.ts holds it. */
export const EVENT_COST = 80
export const STREAM_COST = 850
const DEFAULTS: MemoryBounds = { events: 10_000, bytes: 4 * MIB, total: 64 * MIB, lifetime: 300_000 }

interface StoredStream {
  readonly session: string
  readonly name: string
  readonly events: StoredEvent[]
  last: number
  bytes: number
  expires: number
}

/** Bytes in memory: two a character as soon as one of them is not ASCII. */
export const costOf = (message: string): number =>
  EVENT_COST + (Buffer.byteLength(message) === message.length ? 1 : 2) * message.length

/** The default store. `now` is injected by tests. */
export function createMemoryEventStore(bounds: Partial<MemoryBounds> = {}, now: () => number = Date.now): EventStore {
  const { events: maxEvents, bytes: maxBytes, total: maxTotal, lifetime } = { ...DEFAULTS, ...bounds }
  const sessions = new Map<string, Map<string, StoredStream>>()
  // In the order of their last write: what is at the front expires, and is evicted, first.
  const byAge = new Set<StoredStream>()
  let total = 0

  function forget(stream: StoredStream) {
    byAge.delete(stream)
    total -= stream.bytes
    const streams = sessions.get(stream.session)
    streams?.delete(stream.name)
    if (streams?.size === 0) sessions.delete(stream.session)
  }

  function sweep() {
    for (const stream of byAge) {
      if (stream.expires > now() && total <= maxTotal) return
      forget(stream)
    }
  }

  function find(session: string, name: string, known: number): StoredStream {
    const streams = sessions.get(session) ?? new Map<string, StoredStream>()
    sessions.set(session, streams)
    const found = streams.get(name)
    if (found) return found
    const stream = { session, name, events: [], last: known, bytes: 0, expires: 0 }
    streams.set(name, stream)
    grow(stream, STREAM_COST)
    return stream
  }

  function grow(stream: StoredStream, bytes: number) {
    stream.bytes += bytes
    total += bytes
  }

  const isTooLarge = ({ events, bytes }: StoredStream) =>
    events.length > 1 && (events.length > maxEvents || bytes > maxBytes)

  return {
    append(session, name, message, known) {
      sweep()
      const stream = find(session, name, known)
      stream.last++
      stream.events.push({ seq: stream.last, message })
      grow(stream, costOf(message))
      stream.expires = now() + lifetime
      byAge.delete(stream)
      byAge.add(stream)
      while (isTooLarge(stream)) grow(stream, -costOf(stream.events.shift()?.message ?? ''))
      sweep()
      return stream.last
    },
    after(session, name, seq) {
      sweep()
      const stream = sessions.get(session)?.get(name)
      if (!stream || seq > stream.last) return undefined
      const first = stream.events[0]?.seq ?? stream.last + 1
      return seq + 1 < first ? undefined : stream.events.filter(event => event.seq > seq)
    },
    drop(session, name) {
      const streams = sessions.get(session)
      for (const stream of streams?.values() ?? []) {
        if (name === undefined || stream.name === name) forget(stream)
      }
    },
  }
}
