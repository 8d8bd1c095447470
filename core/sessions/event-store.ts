// Where the events of resumable streams are kept until a client has them: in this process (memory-event-store.ts), or where
// every node finds them, by a plugin.
import { isBranded } from '../http/describe-thrown.ts'

/** A message of a stream, as a store keeps it. */
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
  /**
   * What came after `seq`, in order; undefined where the stream is unknown or something after `seq` is gone, up to its end.
   * With `most`, as many of these messages as have that many bytes (UTF-8) together: one at least, where there is one, and
   * none for 0, which asks only whether all of it is there. Who wants the rest asks again, from the last it was given.
   */
  after(session: string, stream: string, seq: number, most?: number): StoredEvents | Promise<StoredEvents>
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

/** What a shared store knows of a stream. */
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

const BRAND = Symbol.for('mcp-host.StreamFenced')

/** A stream has a newer writer: what this one still has to say is not stored, and must not be sent. */
export class StreamFenced extends Error {
  constructor() {
    super('another node writes this stream now')
    this.name = 'StreamFenced'
    Object.defineProperty(this, BRAND, { value: true })
  }

  /** True for a StreamFenced of any copy of this module: a config may load its own. */
  static is(value: unknown): value is StreamFenced {
    return isBranded(value, BRAND)
  }
}

/** What a store has after a place; undefined where some of it is gone. */
export type StoredEvents = readonly StoredEvent[] | undefined
