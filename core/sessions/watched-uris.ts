// The resources that one session watches: so many, and so many bytes of them, and of all sessions of an owner together.
// For session.ts.
import { MAX_WATCHED, MAX_WATCHED_BYTES, MAX_WATCHED_BYTES_PER_OWNER, WATCH_COST } from '../mcp/client-limits.ts'

/** Bytes that watching a resource costs. */
export const watchCost = (uri: string): number => Buffer.byteLength(uri) + WATCH_COST

/** The same of several resources. */
export const watchedCost = (uris: readonly string[]): number => uris.reduce((bytes, uri) => bytes + watchCost(uri), 0)

/** Counts bytes for the session's owner, fewer where they are negative; false, and not counted, past what is allowed. */
export type Charge = (bytes: number, letIn: boolean) => boolean

/** Counts what all sessions, or all streams, of each owner watch together at this node. */
export function createWatchCharges(): (holder: string, bytes: number, letIn: boolean) => boolean {
  const byHolder = new Map<string, number>()
  return (holder, bytes, letIn) => {
    const watched = (byHolder.get(holder) ?? 0) + bytes
    if (bytes > 0 && !letIn && watched > MAX_WATCHED_BYTES_PER_OWNER) return false
    if (watched > 0) byHolder.set(holder, watched)
    else byHolder.delete(holder)
    return true
  }
}

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

  /** Watches nothing any more. */
  clear(): void {
    this.#charge(-this.#bytes, true)
    this.#bytes = 0
    this.#uris.clear()
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#uris.values()
  }
}
