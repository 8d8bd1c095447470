// The resources that one session watches: so many, and so many bytes of URIs. For session.ts.
import { MAX_WATCHED, MAX_WATCHED_BYTES } from '../limits.ts'

export class WatchedUris implements Iterable<string> {
  readonly #uris = new Set<string>()
  #bytes = 0

  /** False, and not added, past its bounds. */
  add(uri: string): boolean {
    if (this.#uris.has(uri)) return true
    const bytes = this.#bytes + Buffer.byteLength(uri)
    if (this.#uris.size >= MAX_WATCHED || bytes > MAX_WATCHED_BYTES) return false
    this.#bytes = bytes
    this.#uris.add(uri)
    return true
  }

  delete(uri: string): void {
    if (this.#uris.delete(uri)) this.#bytes -= Buffer.byteLength(uri)
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#uris.values()
  }
}
