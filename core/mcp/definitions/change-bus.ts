// The slot `changeBus`, which publishes changes of lists and resources, above a `Bus`.
import type { Bus } from '../../store/bus.ts'

export type Change =
  | { readonly kind: 'tools' | 'resources' | 'prompts'; readonly toolset?: string | undefined }
  | { readonly kind: 'resource'; readonly uri: string }
  /** An unknown number of changes was lost. */
  | { readonly kind: 'missed' }

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

export interface ChangeHistory {
  readonly position: string
  isAfter(one: string, other: string): boolean
  /** The changes after a position; undefined if some are gone. */
  since(place: string): Promise<ReadonlyArray<{ readonly change: Change; readonly place: string }> | undefined>
}

/** A bus also carries texts of other services. */
const readChange = (text: string): Change | undefined => (text.startsWith('{') ? JSON.parse(text) : undefined)

/** Delivers changes through a bus. Positions of `missed` are unknown. */
export const createChangeBus = (bus: Bus): ChangeBus => ({
  shared: bus.shared === true,
  publish: change => bus.publish(JSON.stringify(change)),
  subscribe: listener =>
    bus.subscribe((text, position) => {
      const change: Change | undefined = text === undefined ? { kind: 'missed' } : readChange(text)
      if (change) listener(change, change.kind === 'missed' ? undefined : position)
    }),
  history: {
    get position() {
      return bus.position
    },
    isAfter: (one, other) => bus.isAfter(one, other),
    since: async place =>
      (await bus.since(place))?.flatMap(({ text, position }) => {
        const change = readChange(text)
        return change ? [{ change, place: position }] : []
      }),
  },
})
