// The slot `changeBus`, which publishes changes of lists and resources, and its in-memory default.

/** A change of a list or resource. */
export type Change =
  | { readonly kind: 'tools' | 'resources' | 'prompts'; readonly toolset: string | undefined }
  | { readonly kind: 'resource'; readonly uri: string }
  /** An unknown number of changes was lost. */
  | { readonly kind: 'missed' }

/** Delivers changes to listeners on this node or all nodes. */
export interface ChangeBus {
  /** True if other nodes receive the same changes. */
  readonly shared?: boolean
  /**
   * Delivers changes in publish order. A shared bus returns a promise that resolves once delivery to every node is
   * certain, and rejects after the bus's own timeout. Responses to the calling requests wait for it.
   */
  publish(change: Change): void | Promise<void>
  /** Returns an unsubscribe function. `place`: the position of the change, the same on every node. */
  subscribe(listener: (change: Change, place?: string) => void): () => void
  readonly history?: ChangeHistory
}

/** Past changes of a bus. */
export interface ChangeHistory {
  readonly position: string
  isAfter(one: string, other: string): boolean
  /** The changes after a position; undefined if some are gone. */
  since(place: string): Promise<ReadonlyArray<{ readonly change: Change; readonly place: string }> | undefined>
}

const KEPT = 1_000

/** The default bus, in this process. Positions are valid for this run only. */
export function createMemoryChangeBus(): ChangeBus {
  const listeners = new Set<(change: Change, place?: string) => void>()
  const waiting: Change[] = []
  let kept: Change[] = []
  let last = Date.now() * 1_000
  let telling = false

  function tell(change: Change) {
    kept.push(change)
    if (kept.length > 2 * KEPT) kept = kept.slice(-KEPT)
    const place = String(++last)
    for (const listener of [...listeners]) {
      if (change.kind === 'missed') listener(change)
      else listener(change, place)
    }
  }

  return {
    publish(change) {
      waiting.push(change)
      // Changes that a listener publishes are queued, so all listeners receive the same order.
      if (telling) return
      telling = true
      try {
        for (let next = waiting.shift(); next; next = waiting.shift()) tell(next)
      } finally {
        telling = false
      }
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    history: {
      get position() {
        return String(last)
      },
      isAfter: (one, other) => Number(one) > Number(other),
      async since(place) {
        const count = last - Number(place)
        if (!(count >= 0 && count <= kept.length)) return undefined
        const changes = kept.slice(kept.length - count)
        return changes.map((change, index) => ({ change, place: String(last - count + index + 1) }))
      },
    },
  }
}
