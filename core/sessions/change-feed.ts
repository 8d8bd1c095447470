// Delivers bus changes to sessions and `subscriptions/listen` streams. Each change is serialized once.
import { HostError } from '../http/errors.ts'
import type { EventStream } from '../http/sse.ts'
import type { Logger } from '../kernel/log.ts'
import type { User } from '../kernel/user.ts'
import type { Offer } from '../mcp/calls/call.ts'
import { MAX_WATCHED, MAX_WATCHED_BYTES, MAX_WATCHED_BYTES_PER_OWNER, WATCH_COST } from '../mcp/client-limits.ts'
import type { ItemKind } from '../mcp/definitions/catalog.ts'
import type { Change, ChangeBus } from '../mcp/definitions/change-bus.ts'
import { canSubscribeNow } from '../mcp/methods/resources.ts'
import { changedLists, LIST_KINDS, type View } from '../mcp/routes/view.ts'
import { META, type RequestId } from '../mcp/wire/protocol.ts'

/** A change notification for many subscribers. */
export interface Announcement {
  readonly method: string
  readonly plain: string
  readonly place: string | undefined
  readonly uri: string | undefined
  tagged(id: RequestId): string
}

/** A session or `subscriptions/listen` stream. */
export interface Subscriber {
  readonly lists: ReadonlySet<ItemKind>
  /** True for changes of this toolset. Undefined: changes for every route. */
  covers(toolset: string | undefined): boolean
  deliver(announcement: Announcement): void
  /** If absent or throwing, a reload announces every list. */
  view?(): View
  /** True if a later request of its user can see hidden items. */
  readonly mayShowMore?: boolean
}

export interface Subscription {
  /** Returns false, without a change, above `MAX_WATCHED` resources. */
  watch(uri: string): boolean
  unwatch(uri: string): void
  replay(change: Change, place: string | undefined): void
  end(): void
}

/** Delivers the changes of a bus to subscribers. */
export interface ChangeFeed {
  subscribe(subscriber: Subscriber): Subscription
  /** Records the views. The returned function notifies subscribers of changed lists and counts them. Neither throws. */
  review(): () => number
  readonly size: number
}

export const listChanged = (kind: ItemKind): string => `notifications/${kind}/list_changed`
const RESOURCE_UPDATED = 'notifications/resources/updated'

const headOf = (method: string) => `{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":{`
const UPDATED_HEAD = headOf(RESOURCE_UPDATED)

function updatedUri(message: string): string | undefined {
  if (!message.startsWith(UPDATED_HEAD)) return undefined
  return (JSON.parse(message) as { params: { uri: string } }).params.uri
}

type KnownChange = Exclude<Change, { kind: 'missed' }>

function announce(change: KnownChange, place?: string): Announcement {
  const uri = change.kind === 'resource' ? change.uri : undefined
  const method = change.kind === 'resource' ? RESOURCE_UPDATED : listChanged(change.kind)
  const head = headOf(method)
  const rest = JSON.stringify({ uri }).slice(1)
  const tag = `"_meta":{${JSON.stringify(META.subscriptionId)}:`
  return {
    method,
    plain: `${head}${rest}}`,
    place,
    uri,
    tagged: id => `${head}${tag}${JSON.stringify(id)}}${uri === undefined ? '' : ','}${rest}}`,
  }
}

const everything = (uris: ReadonlySet<string>): KnownChange[] => [
  ...LIST_KINDS.map(kind => ({ kind, toolset: undefined })),
  ...[...uris].map(uri => ({ kind: 'resource' as const, uri })),
]

export class Watchers<Watcher extends object> {
  readonly #byUri = new Map<string, Watcher | Set<Watcher>>()

  /** Returns true for the first watcher of the URI. */
  add(uri: string, watcher: Watcher): boolean {
    const found = this.#byUri.get(uri)
    if (found instanceof Set) found.add(watcher)
    else if (found === undefined) this.#byUri.set(uri, watcher)
    else if (found !== watcher) this.#byUri.set(uri, new Set([found, watcher]))
    return found === undefined
  }

  /** Returns true for the last watcher of the URI. */
  delete(uri: string, watcher: Watcher): boolean {
    const found = this.#byUri.get(uri)
    const isLast = found === watcher || (found instanceof Set && found.delete(watcher) && found.size === 0)
    return isLast && this.#byUri.delete(uri)
  }

  has(uri: string, watcher: Watcher): boolean {
    const found = this.#byUri.get(uri)
    return found instanceof Set ? found.has(watcher) : found === watcher
  }

  /** Returns a copy: subscribers can change during iteration. */
  of(uri: string): readonly Watcher[] {
    const found = this.#byUri.get(uri)
    if (found === undefined) return []
    return found instanceof Set ? [...found] : [found]
  }
}

/** Receives the first and the last watcher of a URI. */
type WatchListener = (uri: string, isWatched: boolean) => void

/** Combines the watchers of several feeds. */
export function createWatchCounter() {
  const counts = new Map<string, number>()
  const listeners: WatchListener[] = []
  return {
    onWatch: (listener: WatchListener) => void listeners.push(listener),
    note(uri: string, isWatched: boolean) {
      const before = counts.get(uri) ?? 0
      const now = before + (isWatched ? 1 : -1)
      if (now > 0) counts.set(uri, now)
      else counts.delete(uri)
      if (before === 0 || now === 0) for (const listener of listeners) listener(uri, isWatched)
    },
  }
}

/** `onWatch` receives the first and the last watcher of a URI on this feed. */
export function createChangeFeed(bus: ChangeBus, log: Logger, onWatch: WatchListener = () => undefined): ChangeFeed {
  const subscribers = new Map<Subscriber, Set<string>>()
  const watchers = new Watchers<Subscriber>()
  let unsubscribe: (() => void) | undefined

  const concerns = (subscriber: Subscriber, change: KnownChange) =>
    change.kind === 'resource'
      ? watchers.has(change.uri, subscriber)
      : subscriber.lists.has(change.kind) && subscriber.covers(change.toolset)

  function replay(subscriber: Subscriber, uris: ReadonlySet<string>, change: Change, place: string | undefined) {
    for (const one of change.kind === 'missed' ? everything(uris) : [change])
      if (concerns(subscriber, one)) subscriber.deliver(announce(one, place))
  }

  function onChange(change: Change, place?: string) {
    if (change.kind === 'missed') {
      for (const [subscriber, uris] of [...subscribers]) replay(subscriber, uris, change, place)
      return
    }
    const concerned =
      change.kind === 'resource'
        ? watchers.of(change.uri)
        : [...subscribers.keys()].filter(subscriber => concerns(subscriber, change))
    if (concerned.length === 0) return
    const announcement = announce(change, place)
    for (const subscriber of concerned) subscriber.deliver(announcement)
  }

  return {
    subscribe(subscriber) {
      const uris = new Set<string>()
      subscribers.set(subscriber, uris)
      unsubscribe ??= bus.subscribe(onChange)
      return {
        watch(uri) {
          if (uris.has(uri)) return true
          if (uris.size >= MAX_WATCHED) return false
          uris.add(uri)
          if (watchers.add(uri, subscriber)) onWatch(uri, true)
          return true
        },
        unwatch(uri) {
          if (uris.delete(uri) && watchers.delete(uri, subscriber)) onWatch(uri, false)
        },
        replay: (change, place) => replay(subscriber, uris, change, place),
        end() {
          subscribers.delete(subscriber)
          for (const uri of uris) if (watchers.delete(uri, subscriber)) onWatch(uri, false)
          uris.clear()
          if (subscribers.size > 0) return
          unsubscribe?.()
          unsubscribe = undefined
        },
      }
    },
    review() {
      const before = [...subscribers.keys()].map(subscriber => [subscriber, viewOf(subscriber, log)] as const)
      return () => before.filter(([subscriber, view]) => announceReload(subscriber, view, log)).length
    },
    get size() {
      return subscribers.size
    },
  }
}

/** Undefined if unknown. An error for one subscriber must not stop the reload for others. */
function viewOf(subscriber: Subscriber, log: Logger): View | undefined {
  try {
    return subscriber.view?.()
  } catch (err) {
    if (!HostError.is(err)) log.error({ code: 'MH1431', err }, 'could not determine what a reload changes for a client')
    return undefined
  }
}

function announceReload(subscriber: Subscriber, before: View | undefined, log: Logger): boolean {
  const after = viewOf(subscriber, log)
  const kinds = before && after ? changedLists(before, after, subscriber.mayShowMore) : LIST_KINDS
  const concerned = kinds.filter(kind => subscriber.lists.has(kind))
  for (const kind of concerned) subscriber.deliver(announce({ kind, toolset: undefined }))
  return concerned.length > 0
}

/** Returns the bytes that a watched resource costs. */
export const watchCost = (uri: string): number => Buffer.byteLength(uri) + WATCH_COST

export const watchedCost = (uris: readonly string[]): number => uris.reduce((bytes, uri) => bytes + watchCost(uri), 0)

/** Counts bytes, or releases negative ones. Returns false, without a change, above the limit unless `force`. */
type Charge = (bytes: number, force: boolean) => boolean

/** Counts watched bytes per owner on this node. */
export function createWatchCharges(): (holder: string, bytes: number, force: boolean) => boolean {
  const byHolder = new Map<string, number>()
  return (holder, bytes, force) => {
    const watched = (byHolder.get(holder) ?? 0) + bytes
    if (bytes > 0 && !force && watched > MAX_WATCHED_BYTES_PER_OWNER) return false
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

  /** Returns false, without a change, above the limits; `force`: another node has checked them. */
  add(uri: string, force: boolean): boolean {
    if (this.#uris.has(uri)) return true
    const cost = watchCost(uri)
    if (!force && (this.#uris.size >= MAX_WATCHED || this.#bytes + cost > MAX_WATCHED_BYTES)) return false
    if (!this.#charge(cost, force)) return false
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

  clear(): void {
    this.#charge(-this.#bytes, true)
    this.#bytes = 0
    this.#uris.clear()
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#uris.values()
  }
}

/** Removes updates that `user` cannot read. Tokens differ per request, so each update is checked when it is sent. */
export function filterUpdates(stream: EventStream, offer: Offer, user: User | undefined): EventStream {
  return {
    ...stream,
    get closed() {
      return stream.closed
    },
    send(message, id) {
      const uri = updatedUri(message)
      if (uri !== undefined && !canSubscribeNow(offer, user, uri)) return !stream.closed
      return stream.send(message, id)
    },
  }
}
