// Brings changes from the bus to those who asked for them: sessions and `subscriptions/listen` streams alike. What a
// change says is serialized once, however many are told.
import type { ItemKind } from '../catalog.ts'
import { META, type RequestId } from '../protocol.ts'
import type { Change, ChangeBus } from '../slots.ts'

/** Resources that one session or one `subscriptions/listen` may watch. */
export const MAX_WATCHED = 1_000

/** A notification that is told to many. */
export interface Announcement {
  readonly method: string
  /** As a message for a session. */
  readonly plain: string
  /** As a message of the subscription that the request `id` opened. */
  tagged(id: RequestId): string
}

export interface Subscriber {
  /** The lists it wants to hear of. */
  readonly lists: ReadonlySet<ItemKind>
  /** Whether a change of this toolset is in its view; undefined: of every route. */
  covers(toolset: string | undefined): boolean
  deliver(announcement: Announcement): void
}

/** A subscriber's place in the feed. */
export interface Subscription {
  /** False, and not watched, where it watches `MAX_WATCHED` resources already. */
  watch(uri: string): boolean
  unwatch(uri: string): void
  end(): void
}

export interface ChangeFeed {
  subscribe(subscriber: Subscriber): Subscription
  readonly size: number
}

export const listChanged = (kind: ItemKind): string => `notifications/${kind}/list_changed`
const RESOURCE_UPDATED = 'notifications/resources/updated'

function announce(method: string, params: Record<string, unknown>): Announcement {
  const head = `{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":{`
  const rest = JSON.stringify(params).slice(1)
  const tag = `"_meta":{${JSON.stringify(META.subscriptionId)}:`
  return {
    method,
    plain: `${head}${rest}}`,
    tagged: id => `${head}${tag}${JSON.stringify(id)}}${rest === '}' ? '' : ','}${rest}}`,
  }
}

/** The feed of one host. `bus` is asked for late, because a plugin may fill the slot. */
export function createChangeFeed(bus: () => ChangeBus): ChangeFeed {
  const subscribers = new Set<Subscriber>()
  const watchers = new Map<string, Set<Subscriber>>()
  let unsubscribe: (() => void) | undefined

  function onChange(change: Change) {
    if (change.kind === 'resource') {
      const concerned = watchers.get(change.uri)
      if (!concerned) return
      const announcement = announce(RESOURCE_UPDATED, { uri: change.uri })
      for (const subscriber of [...concerned]) subscriber.deliver(announcement)
      return
    }
    const { kind, toolset } = change
    const announcement = announce(listChanged(kind), {})
    for (const subscriber of [...subscribers]) {
      if (subscriber.lists.has(kind) && subscriber.covers(toolset)) subscriber.deliver(announcement)
    }
  }

  function unwatch(subscriber: Subscriber, uri: string) {
    const concerned = watchers.get(uri)
    concerned?.delete(subscriber)
    if (concerned?.size === 0) watchers.delete(uri)
  }

  return {
    subscribe(subscriber) {
      const uris = new Set<string>()
      subscribers.add(subscriber)
      unsubscribe ??= bus().subscribe(onChange)
      return {
        watch(uri) {
          if (uris.size >= MAX_WATCHED && !uris.has(uri)) return false
          uris.add(uri)
          const concerned = watchers.get(uri) ?? new Set()
          watchers.set(uri, concerned.add(subscriber))
          return true
        },
        unwatch(uri) {
          uris.delete(uri)
          unwatch(subscriber, uri)
        },
        end() {
          subscribers.delete(subscriber)
          for (const uri of uris) unwatch(subscriber, uri)
          if (subscribers.size > 0) return
          unsubscribe?.()
          unsubscribe = undefined
        },
      }
    },
    get size() {
      return subscribers.size
    },
  }
}
