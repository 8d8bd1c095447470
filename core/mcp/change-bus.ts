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
  /**
   * Changes are told in the order in which they are published. A bus that goes beyond this process gives a promise: it
   * resolves once every node will be told, and rejects where that is not certain within the bus's own time-out, though the
   * change may be told later. Calls that made the change are answered after it.
   */
  publish(change: Change): void | Promise<void>
  /** Returns what ends the subscription. `place` is where on the bus the change is; every node has it there. */
  subscribe(listener: (change: Change, place?: string) => void): () => void
  /** Present where the bus is shared, and what it carried can be read again. */
  readonly history?: ChangeHistory
}

/** What a shared bus has carried. */
export interface ChangeHistory {
  /** The place of the last change that this node's listeners were told. */
  readonly position: string
  /** True where `one` comes after `other`. */
  isAfter(one: string, other: string): boolean
  /** The changes after a place, up to now; undefined where some of them are gone. */
  since(place: string): Promise<ReadonlyArray<{ readonly change: Change; readonly place: string }> | undefined>
}

/** The default bus: listeners in this process, called in the order they came. */
export function createMemoryChangeBus(): ChangeBus {
  const listeners = new Set<(change: Change) => void>()
  return {
    publish(change) {
      for (const listener of [...listeners]) listener(change)
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
