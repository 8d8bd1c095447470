// Brings changes from the bus to those who asked for them: sessions and `subscriptions/listen` streams alike. What a
// change says is serialized once, however many are told.

import { HostError } from '../http/errors.ts'
import type { Logger } from '../kernel/log.ts'
import type { ItemKind } from '../mcp/catalog.ts'
import type { Change, ChangeBus } from '../mcp/change-bus.ts'
import { changedLists, LIST_KINDS } from '../mcp/changed-lists.ts'
import { MAX_WATCHED } from '../mcp/client-limits.ts'
import { META, type RequestId } from '../mcp/protocol.ts'
import type { View } from '../mcp/view.ts'
import { Watchers } from './watchers.ts'

/** A notification that is told to many. */
export interface Announcement {
  readonly method: string
  /** As a message for a session. */
  readonly plain: string
  /** Its place on a bus that nodes share. */
  readonly place: string | undefined
  /** The resource that it is about. */
  readonly uri: string | undefined
  /** As a message of the subscription that the request `id` opened. */
  tagged(id: RequestId): string
}

/** Who is told of changes, and of which. */
export interface Subscriber {
  /** The lists it wants to hear of. */
  readonly lists: ReadonlySet<ItemKind>
  /** Whether a change of this toolset is in its view; undefined: of every route. */
  covers(toolset: string | undefined): boolean
  deliver(announcement: Announcement): void
  /** What it is served now. Absent, or throws: a reload tells it of every list. */
  view?(): View
  /** True where it may be shown what that view hides. */
  readonly mayShowMore?: boolean
}

/** A subscriber's place in the feed. */
export interface Subscription {
  /** False, and not watched, where it watches `MAX_WATCHED` resources already. */
  watch(uri: string): boolean
  unwatch(uri: string): void
  /** Delivers a change that was on the bus before, if it is one of the subscriber's. */
  replay(change: Change, place: string | undefined): void
  end(): void
}

/** Tells subscribers of changes. */
export interface ChangeFeed {
  subscribe(subscriber: Subscriber): Subscription
  /** Looks at what each is served; what it gives looks again, tells those whose own lists changed, and counts them. Neither throws. */
  review(): () => number
  readonly size: number
}

export const listChanged = (kind: ItemKind): string => `notifications/${kind}/list_changed`
const RESOURCE_UPDATED = 'notifications/resources/updated'

const headOf = (method: string) => `{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":{`
const UPDATED_HEAD = headOf(RESOURCE_UPDATED)

/** The resource that a message for a session says was updated; undefined for any other message. */
export function updatedUri(message: string): string | undefined {
  if (!message.startsWith(UPDATED_HEAD)) return undefined
  return (JSON.parse(message) as { params: { uri: string } }).params.uri
}

function announce(method: string, params: { uri?: string }, place: string | undefined): Announcement {
  const head = headOf(method)
  const rest = JSON.stringify(params).slice(1)
  const tag = `"_meta":{${JSON.stringify(META.subscriptionId)}:`
  return {
    method,
    plain: `${head}${rest}}`,
    place,
    uri: params.uri,
    tagged: id => `${head}${tag}${JSON.stringify(id)}}${rest === '}' ? '' : ','}${rest}}`,
  }
}

type Told = Exclude<Change, { kind: 'missed' }>

/** What may have changed, as far as one subscriber goes. */
const everything = (uris: ReadonlySet<string>): Told[] => [
  ...LIST_KINDS.map(kind => ({ kind, toolset: undefined })),
  ...[...uris].map(uri => ({ kind: 'resource' as const, uri })),
]

/** The feed of what this bus carries. */
export function createChangeFeed(bus: ChangeBus, log: Logger): ChangeFeed {
  /** With the resources that each watches. */
  const subscribers = new Map<Subscriber, Set<string>>()
  const watchers = new Watchers<Subscriber>()
  let unsubscribe: (() => void) | undefined

  function onChange(change: Change, place?: string) {
    if (change.kind === 'missed') {
      for (const [subscriber, uris] of [...subscribers])
        for (const one of everything(uris)) tell(subscriber, one, place)
      return
    }
    if (change.kind === 'resource') {
      const concerned = watchers.of(change.uri)
      if (concerned.length === 0) return
      const announcement = announce(RESOURCE_UPDATED, { uri: change.uri }, place)
      for (const subscriber of concerned) subscriber.deliver(announcement)
      return
    }
    const { kind, toolset } = change
    const announcement = announce(listChanged(kind), {}, place)
    for (const subscriber of [...subscribers.keys()]) {
      if (subscriber.lists.has(kind) && subscriber.covers(toolset)) subscriber.deliver(announcement)
    }
  }

  /** A change that is of no interest to others, or that they were told before. */
  function tell(subscriber: Subscriber, change: Told, place: string | undefined) {
    if (change.kind === 'resource') {
      if (watchers.has(change.uri, subscriber)) {
        subscriber.deliver(announce(RESOURCE_UPDATED, { uri: change.uri }, place))
      }
    } else if (subscriber.lists.has(change.kind) && subscriber.covers(change.toolset)) {
      subscriber.deliver(announce(listChanged(change.kind), {}, place))
    }
  }

  return {
    subscribe(subscriber) {
      const uris = new Set<string>()
      subscribers.set(subscriber, uris)
      unsubscribe ??= bus.subscribe(onChange)
      return {
        watch(uri) {
          if (uris.size >= MAX_WATCHED && !uris.has(uri)) return false
          uris.add(uri)
          watchers.add(uri, subscriber)
          return true
        },
        unwatch(uri) {
          uris.delete(uri)
          watchers.delete(uri, subscriber)
        },
        replay(change, place) {
          for (const one of change.kind === 'missed' ? everything(uris) : [change]) tell(subscriber, one, place)
        },
        end() {
          subscribers.delete(subscriber)
          for (const uri of uris) watchers.delete(uri, subscriber)
          if (subscribers.size > 0) return
          unsubscribe?.()
          unsubscribe = undefined
        },
      }
    },
    review() {
      const before = [...subscribers.keys()].map(subscriber => [subscriber, viewOf(subscriber, log)] as const)
      return () => before.filter(([subscriber, view]) => tellReloaded(subscriber, view, log)).length
    },
    get size() {
      return subscribers.size
    },
  }
}

/** What it is served, if that is known. What fails for one must not keep a reload from the others. */
function viewOf(subscriber: Subscriber, log: Logger): View | undefined {
  try {
    return subscriber.view?.()
  } catch (err) {
    // A refusal is told by whoever refuses.
    if (!HostError.is(err)) log.error({ err }, 'what a client is served over a reload could not be found out')
    return undefined
  }
}

/** Tells of the lists that are not what they were; false where that is none. */
function tellReloaded(subscriber: Subscriber, before: View | undefined, log: Logger): boolean {
  const after = viewOf(subscriber, log)
  const kinds = before && after ? changedLists(before, after, subscriber.mayShowMore) : LIST_KINDS
  const concerned = kinds.filter(kind => subscriber.lists.has(kind))
  for (const kind of concerned) subscriber.deliver(announce(listChanged(kind), {}, undefined))
  return concerned.length > 0
}
