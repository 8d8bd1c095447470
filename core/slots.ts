// Replaceable services: small interfaces, each with an in-memory default that a plugin may replace.
import type { AccessDecider, ProtectedResource } from './access/access.ts'
import type { EventStore } from './sessions/event-store.ts'

/** Something that clients may be told about: a list changed, or one resource did. */
export type Change =
  | { readonly kind: 'tools' | 'resources' | 'prompts'; readonly toolset: string | undefined }
  | { readonly kind: 'resource'; readonly uri: string }

/** Carries changes to everybody who listens, on this node or on all of them. */
export interface ChangeBus {
  publish(change: Change): void
  /** Returns what ends the subscription. */
  subscribe(listener: (change: Change) => void): () => void
}

export interface Slots {
  access: AccessDecider
  protectedResource: ProtectedResource
  eventStore: EventStore
  changeBus: ChangeBus
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
