// Limits of what is stored in the file.
export interface StoreBounds {
  /** Bytes of the file. */
  readonly maxSize: number
}
