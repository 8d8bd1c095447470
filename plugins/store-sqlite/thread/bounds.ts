// How much of what is kept in the file.
export interface StoreBounds {
  /** Milliseconds after its last event that a stream is kept. */
  readonly ttl: number
  /** Events of one stream; the oldest go first. */
  readonly maxEvents: number
  /** Bytes of the messages of one stream; the last is kept whatever its size. */
  readonly maxBytes: number
  /** Bytes of the file. */
  readonly maxSize: number
  /** Logins that nobody finished yet, and the bytes that they cost: of more, what was written first goes. */
  readonly pending: { readonly entries: number; readonly bytes: number }
}
