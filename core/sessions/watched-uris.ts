// The resources that one session watches: so many, and so many bytes of them. For session.ts.
import { MAX_WATCHED, MAX_WATCHED_BYTES, WATCH_COST } from '../mcp/limits.ts'

/** Bytes that watching a resource costs. */
export const watchCost = (uri: string): number => Buffer.byteLength(uri) + WATCH_COST

/** Counts bytes for the session's owner, fewer where they are negative; false, and not counted, past what is allowed. */
export type Charge = (bytes: number, letIn: boolean) => boolean

export class WatchedUris implements Iterable<string> {
  readonly #uris = new Set<string>()
  readonly #charge: Charge
  #bytes = 0

  constructor(charge: Charge) {
    this.#charge = charge
  }

  /** False, and not added, past its bounds; they do not hold for what another node has `letIn`. */
  add(uri: string, letIn: boolean): boolean {
    if (this.#uris.has(uri)) return true
    const cost = watchCost(uri)
    if (!letIn && (this.#uris.size >= MAX_WATCHED || this.#bytes + cost > MAX_WATCHED_BYTES)) return false
    if (!this.#charge(cost, letIn)) return false
    this.#bytes += cost
    this.#uris.add(uri)
    return true
  }

  delete(uri: string): void {
    if (!this.#uris.delete(uri)) return
    const cost = watchCost(uri)
    this.#bytes -= cost
    this.#charge(-cost, true)
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#uris.values()
  }
}
