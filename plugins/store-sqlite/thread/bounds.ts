// How much of what is kept in the file.
import type { StreamBounds } from '../../families/stream-bounds/index.ts'

export interface StoreBounds extends StreamBounds {
  /** Bytes of the file. */
  readonly maxSize: number
  /** Logins that nobody finished yet, and the bytes that they cost: of more, what was written first goes. */
  readonly pending: { readonly entries: number; readonly bytes: number }
}
