// Every session of this node: opened within the bounds, found by its id for the caller who owns it, ended when idle.
import { HostError, shuttingDown } from '../kernel/errors.ts'
import type { Logger } from '../kernel/log.ts'
import { sameUser } from '../kernel/user.ts'
import type { OpenSession, RequestFacts } from '../mcp/call.ts'
import type { RequestId } from '../mcp/protocol.ts'
import { type Caller, holderOf, openingOf, ownerOf, sameParams } from './callers.ts'
import type { ChangeFeed } from './change-feed.ts'
import type { EventStore } from './event-store.ts'
import { sessionGone as gone, tooManySessions } from './nodes/refusals.ts'
import type { SessionOpening, SessionRecord } from './nodes/session-store.ts'
import type { SharedSessions } from './nodes/shared-sessions.ts'
import { createOwners } from './owners.ts'
import { createRunningCalls, type RunningCalls } from './running-calls.ts'
import { Session, type SessionOwner } from './session.ts'
import type { SessionBounds } from './session-bounds.ts'
import { digestOf, type SessionIds, shortId } from './session-id.ts'
import { createLife } from './session-life.ts'
import { createSessionRuns } from './session-runs.ts'
import { settleStreams } from './settle-streams.ts'

export interface RegistrySettings {
  readonly ids: SessionIds
  readonly bounds: SessionBounds
  readonly feed: ChangeFeed
  readonly events: () => EventStore
  readonly log: Logger
  readonly openSession: (facts: RequestFacts) => Promise<OpenSession>
  /** Undefined where sessions live in this node alone. Asked for once a session is; plugins may fill the slots until then. */
  readonly share: (local: LocalSessions) => SharedSessions | undefined
}

/** What the sharing of sessions needs of those here. */
export interface LocalSessions {
  readonly local: ReadonlyMap<string, Session>
  readonly adoptRun: (session: Session) => Promise<void>
}

export type { Caller } from './callers.ts'
export type { SessionBounds } from './session-bounds.ts'

export interface SessionRegistry {
  /** Opens a session. Throws `tooManyRequests` where its owner has as many as it may, `unavailable` where it would end with the host. */
  open(facts: RequestFacts, transport: string): Promise<Session>
  /**
   * The session that an id names, for its owner on its route and transport. Throws `sessionNotFound` where there is none,
   * so that the client opens a new one, and `forbidden` where it is another user's. Where nodes share sessions, also
   * `invalidRequest` where one of `requests` runs already, and `unavailable` where the store cannot be asked.
   */
  find(id: string, caller: Caller, transport: string, requests?: readonly RequestId[]): Session | Promise<Session>
  /** Ends a session, for every node. Rejects with `unavailable` where others cannot be told; it lives on then. */
  end(session: Session, reason: Error): Promise<void>
  /** True once `release` was called: streams that would never end are ended as they come. */
  readonly released: boolean
  /** Undefined where sessions live in this node alone. */
  readonly shared: SharedSessions | undefined
  /** Ends every stream with a hint to come back. */
  release(retry: number): void
  /** Ends every session, and gives each `runSession` up to `patience` milliseconds to clean up. */
  close(reason: Error, patience: number): Promise<void>
  readonly count: number
  /** For transports: the requests that run. */
  readonly calls: RunningCalls
}

/** Sessions whose time is over are looked for this often at most, milliseconds. */
const SWEEP_INTERVAL = 30_000
/** Evictions are told of this often at most, milliseconds. */
const EVICTION_LOG_INTERVAL = 10_000

export function createSessionRegistry(settings: RegistrySettings): SessionRegistry {
  const { ids, bounds, feed, events, log, openSession } = settings
  const sessions = new Map<string, Session>()
  /** The same, where nodes share them. */
  const byDigest = new Map<string, Session>()
  const owners = createOwners<Session>()
  const runs = createSessionRuns(log, (session, reason) => void endQuietly(session, reason))
  let evicted = 0
  let loggedAt = 0
  let released = false
  let sharing: { readonly with: SharedSessions | undefined } | undefined

  function shared(): SharedSessions | undefined {
    sharing ??= { with: settings.share({ local: byDigest, adoptRun: session => runs.start(session, true) }) }
    return sharing.with
  }

  const owner: SessionOwner = {
    feed,
    used(session, inUse) {
      if (inUse) owners.use(session)
      else idle(session)
      if (session.shared) shared()?.mark(session, inUse)
    },
    disposed(session, elsewhere) {
      sessions.delete(session.id)
      if (session.shared) byDigest.delete(session.digest)
      owners.remove(session)
      if (elsewhere) return
      Promise.resolve(events().drop(session.id)).catch(err =>
        log.warn({ err }, 'the event store could not drop a session'),
      )
    },
    finished: (session, id) => shared()?.finished(session, id),
    keep: (session, change) => shared()?.keep(session, change),
    passAnswer: (session, id, body) => shared()?.passAnswer(session, id, body),
    passCancel: (session, id, reason) => shared()?.passCancel(session, id, reason),
    askPrefix: () => shared()?.askPrefix() ?? 'ask-',
    // A call may outlive its session; nobody would give back what it takes then.
    charge: (session, bytes, letIn) => session.disposed || owners.charge(session, bytes, letIn),
  }

  function idle(session: Session) {
    owners.idle(session)
    // Where nodes share sessions, all idle ones are counted together.
    while (owners.idleCount > bounds.maxIdle && !shared()) evict()
  }

  function evict() {
    const victim = owners.victim()
    if (!victim) return
    victim.dispose(new Error('the session idled while too many did'))
    evicted++
    if (Date.now() - loggedAt < EVICTION_LOG_INTERVAL) return
    loggedAt = Date.now()
    log.warn({ evicted, maxIdle: bounds.maxIdle }, 'ended idle sessions: more than sessions.maxIdle')
    evicted = 0
  }

  function sweep() {
    const together = sharing?.with
    if (together) return void together.sweep().catch(err => log.debug({ err }, 'the store could not be asked'))
    const limit = Date.now() - bounds.idleTimeout
    for (const session of owners.oldestFirst()) {
      if (session.lastUsed > limit) return
      log.debug({ session: shortId(session.id) }, 'a session ended: idle')
      session.dispose(new Error('the session was idle for too long'))
    }
  }

  const sweeper = setInterval(sweep, Math.min(SWEEP_INTERVAL, Math.max(50, bounds.idleTimeout / 4))).unref()

  function admit(caller: Caller): string {
    // Nobody else could go on with it.
    if (released && !shared()) throw shuttingDown()
    const holder = holderOf(caller)
    if (bounds.maxPerOwner !== undefined && owners.countOf(holder) >= bounds.maxPerOwner && !shared()) {
      throw tooManySessions(bounds.maxPerOwner)
    }
    return holder
  }

  async function open(facts: RequestFacts, transport: string): Promise<Session> {
    try {
      return await begin(facts, transport)
    } catch (thrown) {
      if (HostError.is(thrown)) throw thrown
      log.error({ err: thrown, route: facts.route.path }, 'a session could not be opened')
      throw new HostError('internal')
    }
  }

  async function begin(facts: RequestFacts, transport: string): Promise<Session> {
    const holder = admit(facts)
    const id = ids.create(ownerOf(facts))
    const together = shared()
    const opening = together && openingOf(facts, transport, holder)
    if (opening) await together.create(digestOf(id), opening)
    const session = await buildNew(id, facts, { transport, holder, opening, home: together?.node ?? '' })
    try {
      await runs.start(session)
    } catch (error) {
      await endQuietly(session, new Error('runSession failed'))
      throw error
    }
    idle(session)
    if (together) together.mark(session, session.inUse)
    return session
  }

  /** `build`, of which nothing stays where it fails. */
  async function buildNew(id: string, facts: RequestFacts, making: Making): Promise<Session> {
    try {
      return await build(id, facts, making)
    } catch (error) {
      const ended = making.opening && shared()?.store.end(digestOf(id), making.holder)
      ended?.catch(err => log.debug({ err }, 'a session that failed to open stays in the store until it has idled'))
      throw error
    }
  }

  interface Making {
    readonly transport: string
    readonly holder: string
    readonly opening: SessionOpening | undefined
    readonly home: string
  }

  async function build(
    id: string,
    facts: RequestFacts,
    { transport, holder, opening, home }: Making,
  ): Promise<Session> {
    const life = createLife()
    const opened = await openSession({ ...facts, sessionId: id, signal: life.signal })
    // Others may have been opened while `configureSession` took its time.
    admit(facts)
    const kept = opening && { opening, home, version: home === shared()?.node ? 1 : 0 }
    const session = new Session({ id, holder, transport, opened, owner, shared: kept })
    life.endWith(session)
    sessions.set(id, session)
    if (kept) byDigest.set(session.digest, session)
    owners.add(session)
    return session
  }

  /** A session that this node has never seen, as its record says. */
  async function rebuild(id: string, caller: Caller, { opening, home, state, version }: SessionRecord) {
    const { user, headers, ip, params, transport, holder } = opening
    const facts = { route: caller.route, params, user, headers, ip, signal: () => new AbortController().signal }
    const session = await build(id, facts, { transport, holder, opening, home })
    session.apply(state)
    if (session.shared) session.shared.version = version
    owners.idle(session)
    return session
  }

  async function end(session: Session, reason: Error): Promise<void> {
    if (session.shared) await shared()?.end(session, reason)
    session.dispose(reason)
  }

  /** For ends that nobody waits for: where the others cannot be told, they find out when the session has idled. */
  async function endQuietly(session: Session, reason: Error) {
    session.dispose(reason)
    try {
      await end(session, reason)
    } catch (err) {
      log.warn({ err, session: shortId(session.id) }, 'other nodes could not be told that a session ended')
    }
  }

  function visit(id: string, caller: Caller, transport: string, requests: readonly RequestId[]): Promise<Session> {
    return (shared() as SharedSessions).visit({
      digest: sessions.get(id)?.digest ?? digestOf(id),
      requests,
      check(opening) {
        const { route, params, user } = opening
        if (!sameUser(user, caller.user)) throw new HostError('forbidden', { detail: 'the session is not yours' })
        if (opening.transport !== transport || route !== caller.route.path || !sameParams(params, caller.params))
          throw gone()
      },
      rebuild: record => rebuild(id, caller, record),
    })
  }

  return {
    open,
    calls: createRunningCalls(bounds),
    find(id, caller, transport, requests = []) {
      const session = sessions.get(id)
      if (session && session.opened.route !== caller.route) throw gone()
      // An id of this node is known as it stands; any other says by its signature whose it is, before a store is asked.
      const owned = session ? sameUser(session.opened.user, caller.user) : ids.read(id)?.isOwnedBy(ownerOf(caller))
      if (owned === false) {
        log.warn({ session: shortId(id), ip: caller.ip }, 'refused a session of another user')
        throw new HostError('forbidden', { detail: 'the session is not yours' })
      }
      if (!owned) throw gone()
      if (session && (session.transport !== transport || !sameParams(session.opened.params, caller.params)))
        throw gone()
      if (shared()) return visit(id, caller, transport, requests)
      if (!session) throw gone()
      return session
    },
    end,
    release(retry) {
      released = true
      for (const session of sessions.values()) session.release(retry)
    },
    get released() {
      return released
    },
    get shared() {
      return shared()
    },
    async close(reason, patience) {
      clearInterval(sweeper)
      const together = sharing?.with
      if (together) await settleStreams(sessions, patience)
      for (const session of [...sessions.values()]) session.dispose(reason, session.shared !== undefined)
      await runs.close(patience)
      await together?.close()
    },
    get count() {
      return sessions.size
    },
  }
}
