// The default session store: in this process, with compact records for 100,000 idle sessions.
import { type Linked, LinkedList } from '../http/linked-list.ts'
import { MAX_WATCHED, MAX_WATCHED_BYTES } from '../mcp/client-limits.ts'
import type { RequestId } from '../mcp/protocol.ts'
import { watchedCost } from './change-feed.ts'
import type {
  Entered,
  SessionOpening,
  SessionRecord,
  SessionState,
  SessionStore,
  StateChange,
  Victim,
} from './session-store.ts'

export interface Held extends Linked {
  readonly holder: string
}

interface Holder<S extends Held> {
  readonly idle: LinkedList<S>
  count: number
}

/** Counts sessions per owner. Eviction affects the owner's own oldest sessions. */
export class Holders<S extends Held> {
  readonly #holders = new Map<string, Holder<S>>()
  idleCount = 0

  countOf(holder: string): number {
    return this.#holders.get(holder)?.count ?? 0
  }

  idleOf(holder: string): Iterable<S> {
    return this.#holders.get(holder)?.idle ?? []
  }

  add({ holder }: S): void {
    const known = this.#holders.get(holder)
    if (known) known.count++
    else this.#holders.set(holder, { idle: new LinkedList<S>(), count: 1 })
  }

  remove(session: S): void {
    const holder = this.#holders.get(session.holder)
    if (!holder) return
    this.use(session)
    if (--holder.count === 0) this.#holders.delete(session.holder)
  }

  idle(session: S): void {
    if (!session.linked) this.idleCount++
    this.#holders.get(session.holder)?.idle.add(session)
  }

  use(session: S): void {
    if (this.#holders.get(session.holder)?.idle.delete(session)) this.idleCount--
  }

  /** Returns the longest idle session of the holder with most idle sessions. */
  victim(): S | undefined {
    let most: Holder<S> | undefined
    for (const holder of this.#holders.values()) if (holder.idle.size > (most?.idle.size ?? 0)) most = holder
    return most?.idle.oldest
  }
}

class Kept implements Held {
  readonly digest: string
  readonly opening: SessionOpening
  readonly holder: string
  state: SessionState
  version: number
  home: string
  expires: number
  inUse = true
  requests: RequestId[] | undefined
  claim: { readonly stream: string; readonly epoch: number } | undefined
  older: this | undefined
  newer: this | undefined
  linked = false

  constructor(digest: string, { opening, state, version, home }: SessionRecord, expires: number) {
    this.digest = digest
    this.opening = opening
    this.holder = opening.holder
    this.state = state
    this.version = version
    this.home = home
    this.expires = expires
    this.requests = this.claim = this.older = this.newer = undefined
  }

  get record(): SessionRecord {
    const { opening, state, version, home } = this
    return { opening, state, version, home }
  }

  begin(requests: readonly RequestId[]) {
    for (const request of requests) {
      if (this.requests === undefined) this.requests = [request]
      else if (!this.requests.includes(request)) this.requests.push(request)
    }
  }
}

const ENTERED: Entered = { kind: 'entered', record: undefined }
const MISSING: Entered = { kind: 'missing', ended: false }
const NO_NODES: readonly string[] = []
const NO_VICTIMS: readonly Victim[] = []

function changed(state: SessionState, change: StateChange): SessionState | 'full' {
  const { watched } = state
  if ('unwatch' in change) return { ...state, watched: watched.filter(uri => uri !== change.unwatch) }
  if (!('watch' in change)) return { ...state, ...change }
  if (watched.includes(change.watch)) return state
  const more = [...watched, change.watch]
  return more.length > MAX_WATCHED || watchedCost(more) > MAX_WATCHED_BYTES ? 'full' : { ...state, watched: more }
}

export function createMemorySessionStore(node: string, now: () => number = Date.now): SessionStore {
  const sessions = new Map<string, Kept>()
  const holders = new Holders<Kept>()

  function find(digest: string): Kept | undefined {
    const kept = sessions.get(digest)
    if (!kept || kept.inUse || kept.expires > now()) return kept
    forget(kept)
    return undefined
  }

  function add(digest: string, record: SessionRecord, idleTimeout: number): Kept {
    const kept = new Kept(digest, record, now() + idleTimeout)
    sessions.set(digest, kept)
    holders.add(kept)
    return kept
  }

  function forget(kept: Kept) {
    sessions.delete(kept.digest)
    holders.remove(kept)
  }

  function admits(holder: string, most: number | undefined): boolean {
    if (most === undefined || holders.countOf(holder) < most) return true
    for (const kept of holders.idleOf(holder)) find(kept.digest)
    return holders.countOf(holder) < most
  }

  function victims(maxIdle: number): readonly Victim[] {
    const found: Victim[] = []
    while (holders.idleCount > maxIdle) {
      const victim = holders.victim()
      if (!victim) break
      holders.use(victim)
      found.push({ digest: victim.digest, holder: victim.holder })
    }
    return found
  }

  return {
    node,
    shared: false,
    unsure: false,
    create(digest, record, { idleTimeout, maxPerOwner }) {
      if (!admits(record.opening.holder, maxPerOwner)) return undefined
      return add(digest, record, idleTimeout).version
    },
    enter(digest, { version, requests, from }, { idleTimeout }) {
      const kept = find(digest)
      if (!kept) return MISSING
      const taken = kept.requests && !from.includes(node) ? requests.find(id => kept.requests?.includes(id)) : undefined
      if (taken !== undefined) return { kind: 'taken', request: taken, node }
      kept.expires = now() + idleTimeout
      kept.begin(requests)
      return version === kept.version ? ENTERED : { kind: 'entered', record: kept.record }
    },
    leave(digest, requests) {
      const kept = sessions.get(digest)
      if (!kept?.requests) return
      for (const request of requests) {
        const at = kept.requests.indexOf(request)
        if (at !== -1) kept.requests.splice(at, 1)
      }
      if (kept.requests.length === 0) kept.requests = undefined
    },
    change(digest, change) {
      const kept = find(digest)
      if (!kept) return undefined
      const state = changed(kept.state, change)
      if (state === 'full') return state
      kept.state = state
      kept.version++
      return { record: kept.record, nodes: NO_NODES }
    },
    nodeOf: (digest, request) => (find(digest)?.requests?.includes(request) ? node : undefined),
    adopt(digest, from) {
      const kept = find(digest)
      if (kept?.home !== from) return false
      kept.home = node
      kept.version++
      return true
    },
    claimStream(digest, stream) {
      const kept = find(digest)
      if (!kept) return undefined
      const had = kept.claim
      const before = had && { node, stream: had.stream }
      if (had?.stream !== stream) kept.claim = { stream, epoch: (had?.epoch ?? 0) + 1 }
      return { epoch: kept.claim?.epoch ?? 0, before }
    },
    end(digest, _holder, onlyIdle = false) {
      const kept = find(digest)
      if (!kept || (onlyIdle && (kept.inUse || kept.requests))) return undefined
      forget(kept)
      return NO_NODES
    },
    mark(uses, { idleTimeout, maxIdle }) {
      for (const { digest, inUse, ago } of uses) {
        const kept = find(digest)
        if (!kept) continue
        kept.inUse = inUse
        if (inUse) holders.use(kept)
        else {
          kept.expires = now() - ago + idleTimeout
          holders.idle(kept)
        }
      }
      return holders.idleCount > maxIdle ? victims(maxIdle) : NO_VICTIMS
    },
    timeLeft(digest) {
      const kept = find(digest)
      return kept && Math.max(0, kept.expires - now())
    },
    restore(digest, record, { requests, claim }, { idleTimeout, maxPerOwner }) {
      const found = find(digest)
      if (found) return { record: found.record, nodes: NO_NODES }
      if (!admits(record.opening.holder, maxPerOwner)) return undefined
      const kept = add(digest, record, idleTimeout)
      kept.inUse = false
      kept.begin(requests)
      kept.claim = claim
      return { record: kept.record, nodes: NO_NODES }
    },
    onReturn() {},
  }
}
