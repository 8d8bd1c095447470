// Subscriptions to a 2026-07-28 server: one for list changes, and one for each group of watched URIs.
import type { Clock, Timer } from '../../core/plugin.ts'
import { MAX_WATCHED, MAX_WATCHED_BYTES, watchedCost } from '../../core/transport.ts'
import { type Connection, type ListenFilters, type Listening, RemoteError } from '../../remote/index.ts'

/** Milliseconds. Changes within the delay are sent together. */
const DELAY = 50
const CONFIRMATION = 15_000
const FIRST_PAUSE = 1_000
const LONGEST_PAUSE = 300_000
/** Groups of watched URIs. Each needs a stream of the server. */
const MAX_GROUPS = 50

interface SubscriptionParts {
  readonly clock: Clock
  /** True if the confirmed subscription has the current filters. */
  isCurrent(): boolean
  listen(onActive: () => void): Listening
  confirmed(): void
  /** The server has ended a confirmed subscription. */
  lost(): void
  /** `isFirst`: the previous attempt succeeded. */
  refused(error: Error, isFirst: boolean): void
}

/** One `subscriptions/listen`. It stays active until the server has confirmed the one that replaces it. */
function createSubscription({ clock, ...parts }: SubscriptionParts) {
  let active: Listening | undefined
  let next: Listening | undefined
  let timer: Timer | undefined
  let limit: Timer | undefined
  let isStale = false
  let isEnded = false
  let failures = 0

  function schedule(): void {
    const pause = Math.min(FIRST_PAUSE * 2 ** (failures - 1), LONGEST_PAUSE) * (1 + Math.random() / 4)
    timer ??= clock.setTimeout(start, failures === 0 ? DELAY : pause).unref()
  }

  function start(): void {
    timer = undefined
    isStale = false
    if (active && parts.isCurrent()) {
      failures = 0
      return
    }
    const own = parts.listen(() => confirm(own))
    next = own
    const timeoutError = new Error(`the server did not confirm the subscription within ${CONFIRMATION / 1_000} s`)
    limit = clock.setTimeout(() => fail(own, timeoutError), CONFIRMATION).unref()
    own.ended.then(
      () => fail(own, new Error('the server ended the subscription')),
      (error: Error) => fail(own, error),
    )
  }

  function confirm(own: Listening): void {
    if (own !== next) return
    clock.clear(limit)
    active?.end()
    active = own
    next = undefined
    failures = 0
    parts.confirmed()
    if (isStale) schedule()
  }

  function fail(own: Listening, error: Error): void {
    const wasActive = own === active
    if (isEnded || (!wasActive && own !== next)) return
    if (wasActive) active = undefined
    else {
      next = undefined
      clock.clear(limit)
    }
    own.end()
    failures++
    if (wasActive) parts.lost()
    else parts.refused(error, failures === 1)
    if (!next && !isEnded) schedule()
  }

  return {
    start,
    /** Its filters have changed. */
    renew(): void {
      if (next) isStale = true
      else schedule()
    },
    end(): void {
      isEnded = true
      clock.clear(timer)
      clock.clear(limit)
      for (const one of [active, next]) one?.end()
    },
  }
}

type Subscription = ReturnType<typeof createSubscription>

interface Group {
  readonly uris: Set<string>
  /** URIs of its active subscription. */
  confirmed: ReadonlySet<string>
  bytes: number
  /** Most URIs: the server has refused more. */
  most: number
  readonly subscription: Subscription
}

export interface SubscriptionsParts {
  readonly clock: Clock
  readonly connection: Connection
  /** Receives the URIs whose changes may have been missed. */
  onConfirmed(uris: readonly string[]): void
  /** List changes may have been missed. */
  onMissed(): void
  onRefused(error: Error, uris: number): void
}

/** The server does not accept the parameters or the size of a request. */
const isRefusedSize = (error: Error): boolean =>
  error instanceof RemoteError && (error.code === -32_602 || error.status === 413)

function listFiltersOf({ capabilities: { tools, prompts, resources } }: Connection): ListenFilters {
  return {
    ...(tools?.listChanged && { toolsListChanged: true }),
    ...(prompts?.listChanged && { promptsListChanged: true }),
    ...(resources?.listChanged && { resourcesListChanged: true }),
  }
}

export interface Subscriptions {
  watch(uri: string): void
  unwatch(uri: string): void
  /** The server has lost its session. */
  reset(): void
  end(): void
}

/** Pending requests. Calls use the same connection. */
const MAX_PENDING = 16

/** A legacy server reports changes of lists without a request. Each URI needs a request. */
function createLegacySubscriptions({ connection, onConfirmed, onRefused }: SubscriptionsParts): Subscriptions {
  const watched = new Set<string>()
  const subscribed = new Set<string>()
  const pending = new Set<string>()
  const changed = new Set<string>()
  let isRefused = false

  async function update(uri: string, isWatched: boolean) {
    pending.add(uri)
    try {
      await connection.request(isWatched ? 'resources/subscribe' : 'resources/unsubscribe', { uri })
      if (!isWatched) subscribed.delete(uri)
      else if (watched.has(uri)) {
        subscribed.add(uri)
        onConfirmed([uri])
      }
    } catch (error) {
      if (!isRefused && isWatched) onRefused(error as Error, 1)
      isRefused ||= isWatched
    }
    pending.delete(uri)
    send()
  }

  function send() {
    for (const uri of changed) {
      if (pending.size >= MAX_PENDING) return
      if (pending.has(uri)) continue
      changed.delete(uri)
      const isWatched = watched.has(uri)
      if (isWatched !== subscribed.has(uri)) void update(uri, isWatched)
    }
  }

  const note = (uri: string) => {
    changed.add(uri)
    send()
  }

  return {
    watch(uri) {
      watched.add(uri)
      note(uri)
    },
    unwatch(uri) {
      watched.delete(uri)
      note(uri)
    },
    reset() {
      subscribed.clear()
      for (const uri of watched) note(uri)
    },
    end() {
      watched.clear()
      changed.clear()
    },
  }
}

/** Subscribes to all changes of a server. The URIs of many clients are divided, so that no client stops the others. */
function createModernSubscriptions({ clock, connection, ...parts }: SubscriptionsParts): Subscriptions {
  const groups: Group[] = []
  const groupOf = new Map<string, Group>()
  /** URIs without a group: all groups are full. */
  const waiting = new Set<string>()
  let isFull = false

  function addGroup(): Group {
    let wanted: readonly string[] = []
    const subscription = createSubscription({
      clock,
      isCurrent: () =>
        group.uris.size === group.confirmed.size && [...group.uris].every(uri => group.confirmed.has(uri)),
      listen(onActive) {
        wanted = [...group.uris]
        return connection.listen({ resourceSubscriptions: wanted }, onActive)
      },
      confirmed() {
        const added = wanted.filter(uri => !group.confirmed.has(uri))
        group.confirmed = new Set(wanted)
        parts.onConfirmed(added)
      },
      lost() {
        group.confirmed = new Set()
      },
      refused(error, isFirst) {
        if (isFirst) parts.onRefused(error, group.uris.size)
        if (isRefusedSize(error)) divide(group)
      },
    })
    const group: Group = { uris: new Set(), confirmed: new Set(), bytes: 0, most: MAX_WATCHED, subscription }
    groups.push(group)
    return group
  }

  /** Moves URIs to another group: those that the server has not confirmed, or half of them. */
  function divide(group: Group) {
    const all = [...group.uris]
    if (all.length === 1) return drop(group)
    if (groups.length >= MAX_GROUPS) return
    const fresh = all.filter(uri => !group.confirmed.has(uri))
    const moved = fresh.length < all.length ? fresh : all.slice(all.length >> 1)
    if (moved.length === 0) return
    const other = addGroup()
    for (const uri of moved) {
      remove(uri, group)
      put(uri, other)
    }
    group.most = group.uris.size
    other.most = Math.max(1, moved.length)
  }

  /** Ends the group of a URI that the server refuses, so that it does not take the place of others. */
  function drop(group: Group) {
    for (const uri of group.uris) remove(uri, group)
    free(group)
  }

  /** Removes an empty group and gives its place to a URI that waits. */
  function free(group: Group) {
    group.subscription.end()
    groups.splice(groups.indexOf(group), 1)
    isFull = false
    admitNext()
  }

  function admitNext() {
    const [next] = waiting
    if (next === undefined) return
    waiting.delete(next)
    watch(next)
  }

  function put(uri: string, group: Group) {
    group.uris.add(uri)
    group.bytes += watchedCost([uri])
    groupOf.set(uri, group)
    group.subscription.renew()
  }

  function remove(uri: string, group: Group) {
    group.uris.delete(uri)
    group.bytes -= watchedCost([uri])
    groupOf.delete(uri)
  }

  function watch(uri: string): void {
    if (groupOf.has(uri)) return
    const bytes = MAX_WATCHED_BYTES - watchedCost([uri])
    const free = groups.find(group => group.uris.size < group.most && group.bytes <= bytes)
    if (free || groups.length < MAX_GROUPS) put(uri, free ?? addGroup())
    else {
      waiting.add(uri)
      if (!isFull) parts.onRefused(new Error(`more than ${MAX_GROUPS} subscriptions are needed`), groupOf.size)
      isFull = true
    }
  }

  let isMissed = false
  const filters = listFiltersOf(connection)
  const lists =
    Object.keys(filters).length > 0
      ? createSubscription({
          clock,
          isCurrent: () => true,
          listen: onActive => connection.listen(filters, onActive),
          confirmed: () => {
            if (isMissed) parts.onMissed()
            isMissed = false
          },
          lost: () => {
            isMissed = true
          },
          refused: (error, isFirst) => {
            if (isFirst) parts.onRefused(error, 0)
            if (isMissed) parts.onMissed()
          },
        })
      : undefined
  lists?.start()

  return {
    watch,
    unwatch(uri) {
      waiting.delete(uri)
      const group = groupOf.get(uri)
      if (!group) return
      remove(uri, group)
      if (group.uris.size === 0) return free(group)
      group.subscription.renew()
      admitNext()
    },
    reset: () => undefined,
    end() {
      for (const { subscription } of groups) subscription.end()
      lists?.end()
    },
  }
}

/** Subscribes to changes of lists and of watched URIs. */
export function createSubscriptions(parts: SubscriptionsParts): Subscriptions {
  const { era, capabilities } = parts.connection
  const subscriptions = era === 'legacy' ? createLegacySubscriptions(parts) : createModernSubscriptions(parts)
  return capabilities.resources?.subscribe ? subscriptions : { ...subscriptions, watch: () => undefined }
}
