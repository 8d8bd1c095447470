// Carries what changed from whoever changed it to everybody who is to be told: the interface of the slot `changeBus`, and
// its default in memory.

/** Something that clients may be told about: a list changed, or one resource did. */
export type Change =
  | { readonly kind: 'tools' | 'resources' | 'prompts'; readonly toolset: string | undefined }
  | { readonly kind: 'resource'; readonly uri: string }
  /** The bus could not say which: everything may have changed. */
  | { readonly kind: 'missed' }

/** Carries changes to everybody who listens, on this node or on all of them. */
export interface ChangeBus {
  /** True where other nodes hear the same. */
  readonly shared?: boolean
  /**
   * Changes are told in the order in which they are published. A bus that goes beyond this process gives a promise: it
   * resolves once every node will be told, and rejects where that is not certain within the bus's own time-out, though the
   * change may be told later. Calls that made the change are answered after it.
   */
  publish(change: Change): void | Promise<void>
  /** Returns what ends the subscription. `place` is where on the bus the change is; every node has it there. */
  subscribe(listener: (change: Change, place?: string) => void): () => void
  /** Present where what it carried can be read again. */
  readonly history?: ChangeHistory
}

/** What a bus has carried. */
export interface ChangeHistory {
  /** The place of the last change that this node's listeners were told. */
  readonly position: string
  /** True where `one` comes after `other`. */
  isAfter(one: string, other: string): boolean
  /** The changes after a place, up to now; undefined where some of them are gone. */
  since(place: string): Promise<ReadonlyArray<{ readonly change: Change; readonly place: string }> | undefined>
}

/** Changes that the default bus keeps. */
const KEPT = 1_000

/** The default bus: listeners in this process, called in the order they came. Its places are of this run alone. */
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
      // What a listener publishes comes after what it was told, for the others too.
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
