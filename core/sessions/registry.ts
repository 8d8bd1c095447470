// The sessions of a node: opened within limits, found by id for their owner, ended when idle.

import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { withTimeout } from '../http/clock.ts'
import { HostError, shuttingDown } from '../http/errors.ts'
import { sameUser } from '../kernel/user.ts'
import type { AuthorizeCaller, Offer, RequestInfo } from '../mcp/calls/call.ts'
import { limitOwnerOf } from '../mcp/client-limits.ts'
import type { McpRoute } from '../mcp/routes/routes.ts'
import type { RequestId } from '../mcp/wire/protocol.ts'
import { type ChangeFeed, createWatchCharges } from './change-feed.ts'
import { withoutCredentials } from './credentials.ts'
import { applyRecord, createNodeMessages, type StreamMessage } from './node-messages.ts'
import { createRunningCalls, type RunningCalls } from './running-calls.ts'
import { Session, type SessionCallbacks, type SessionFields, type ThisNode } from './session.ts'
import { notOwner, sessionNotFound, tooManySessions } from './session-errors.ts'
import { digestOf, type Owner, type SessionIds, shortId } from './session-id.ts'
import { SessionOwners } from './session-owners.ts'
import { FIRST_STATE, type SessionOpening, type SessionRecord } from './session-store.ts'
import { createSessionUpkeep } from './session-upkeep.ts'
import { type Caller, createStoreFinder, type SessionLookup, sameParams } from './store-finder.ts'

const ownerOf = ({ route, user }: Caller): Owner => ({ route: route.path, user })

export interface RegistrySettings {
  readonly node: ThisNode
  readonly ids: SessionIds
  readonly paths: readonly string[]
  readonly feedOn: (route: McpRoute) => ChangeFeed
  readonly makeOffer: (facts: RequestInfo) => Offer | Promise<Offer>
  readonly authorize: AuthorizeCaller
}

export interface SessionRegistry {
  /** Opens a session. Throws like `authorize`, `tooManyRequests` above the owner's limit, `unavailable` during shutdown. */
  open(facts: RequestInfo, transport: string): Promise<Session>
  /**
   * Finds the caller's session. Throws `sessionNotFound`, `forbidden` for another user's session, `invalidRequest` for
   * a request that runs on another node, and `unavailable` if the store or the node of the request does not respond.
   */
  find(id: string, caller: Caller, transport: string, requests?: readonly RequestId[]): Session | Promise<Session>
  /** Ends a session on every node. Rejects with `unavailable`, without a change, if the store cannot be reached. */
  end(session: Session, reason: Error): Promise<void>
  /** True after `release`: new endless streams must end at once. */
  readonly released: boolean
  /** Ends endless streams with a reconnection hint, milliseconds. */
  release(retry: number): void
  /** Ends all sessions. Waits at most `timeout` milliseconds for each `runSession`. */
  close(reason: Error, timeout: number): Promise<void>
  readonly count: number
  list(): Iterable<Session>
  readonly calls: RunningCalls
}

/** Maximum wait of `close` for stored events, milliseconds. */
const STORE_TIMEOUT = 5_000

const NO_HEADERS: RequestInfo['headers'] = Object.freeze({})

export function createSessionRegistry(settings: RegistrySettings) {
  const { node, ids, paths, feedOn, makeOffer, authorize } = settings
  const { name, store, peers, events, limits, log, clock, metrics, sessions: byDigest } = node
  const sessions = new Map<string, Session>()
  const owners = new SessionOwners<Session>()
  const runs = new Set<Promise<void>>()
  const charge = createWatchCharges()
  const { notify, isRunningAt, listen, ...messages } = createNodeMessages(node)
  const upkeep = createSessionUpkeep({
    node,
    notify,
    evict: ({ digest, holder }) =>
      endEverywhere(digest, holder, 'the session was idle, and the limit for idle sessions was reached', true),
  })
  const adoptRun = (session: Session) => startRun(session, true)
  const findSession = store
    ? createStoreFinder({ node: { ...node, store }, isRunningAt, restore: upkeep.restore, rebuild, adoptRun })
    : findLocal
  let released = false
  /** Event streams of ended sessions that are being deleted. */
  const dropping = new Set<Promise<void>>()

  const callbacks: SessionCallbacks = {
    ...messages,
    clock,
    feedOn,
    used(session, inUse) {
      if (store) return upkeep.mark(session, inUse)
      if (inUse) return owners.use(session)
      owners.idle(session)
      const victim = owners.idleCount > limits.maxIdle ? owners.victim() : undefined
      if (!victim) return
      owners.use(victim)
      upkeep.evict(victim)
    },
    disposed(session, continuesElsewhere) {
      sessions.delete(session.id)
      byDigest.delete(session.digest)
      if (continuesElsewhere) return
      if (store) upkeep.forget(session)
      else owners.remove(session)
      // Runs on each node with a copy, but only the session's home node counts the end.
      if (session.home === name) metrics.ended(session)
      const dropped = Promise.resolve(events(session).drop(session.digest))
        .catch(err => log.warn({ code: 'MH1415', err }, 'the event store could not delete the events of a session'))
        .finally(() => dropping.delete(dropped))
      dropping.add(dropped)
    },
    finished: (session, requests) => store?.leave(session.digest, requests),
    // An ended session is not charged: a call can outlive it, and nothing would release the charge.
    charge: (session, bytes, force) => session.disposed || charge(session.holder, bytes, force),
  }

  function refuseWhenReleased() {
    if (released && !store) throw shuttingDown()
  }

  async function open(facts: RequestInfo, transport: string): Promise<Session> {
    try {
      return await openAuthorized(facts, transport)
    } catch (thrown) {
      if (HostError.is(thrown)) throw thrown
      log.error({ code: 'MH1410', err: thrown, route: facts.route.path }, 'a session could not be opened')
      throw new HostError('internal')
    }
  }

  async function openAuthorized(facts: RequestInfo, transport: string): Promise<Session> {
    refuseWhenReleased()
    if (!facts.authorized) authorize(facts)
    const { route, params, user, ip } = facts
    const id = ids.create(ownerOf(facts), clock.now())
    const digest = digestOf(id)
    const holder = limitOwnerOf(facts)
    const headers = store ? withoutCredentials(facts.headers) : NO_HEADERS
    const opening = { transport, route: route.path, params, holder, user, ip, headers }
    const version = store
      ? await store.create(digest, { opening, state: FIRST_STATE, version: 1, home: name }, limits)
      : countLocal(opening)
    if (version === undefined) throw tooManySessions()
    let session: Session
    try {
      session = await build(facts, { id, digest, callbacks, opening, home: name, version })
    } catch (error) {
      if (!store) owners.discount(opening)
      store
        ?.end(digest, holder)
        .catch(err => log.debug({ err }, 'a session that failed to open stays in the store until its idle timeout'))
      throw error
    }
    const leave = session.use()
    try {
      await startRun(session)
    } catch (error) {
      await endQuietly(session, new Error('runSession failed'))
      throw error
    }
    metrics.opened(session)
    leave()
    return session
  }

  /** Counts a new session without a store. Returns its version; undefined if the owner has too many sessions. */
  function countLocal(opening: SessionOpening): number | undefined {
    const { maxPerOwner = Number.POSITIVE_INFINITY } = limits
    const isFull = () => owners.countOf(opening.holder) >= maxPerOwner
    if (isFull()) for (const session of owners.idleOf(opening.holder)) endExpired(session)
    if (isFull()) return undefined
    owners.add(opening)
    return 1
  }

  /** The periodic check can be up to 30 seconds late. */
  function endExpired(session: Session) {
    if (!session.inUse && session.lastUsed <= clock.now() - limits.idleTimeout) upkeep.endIdle(session)
  }

  function findLocal({ digest }: SessionLookup): Session {
    const session = byDigest.get(digest)
    if (session) endExpired(session)
    if (!session || session.disposed) throw sessionNotFound()
    session.lastUsed = clock.now()
    return session
  }

  async function build(facts: RequestInfo, fields: Omit<SessionFields, 'offer'>): Promise<Session> {
    let lifetime: AbortController | undefined
    let session: Session | undefined
    const abort = () => lifetime?.abort(new Error('the session has ended'))
    function signal() {
      if (!lifetime) {
        lifetime = new AbortController()
        session?.onDispose(abort)
      }
      return lifetime.signal
    }
    const offer = await makeOffer({ ...facts, sessionId: fields.id, signal })
    session = new Session({ ...fields, offer })
    if (lifetime) session.onDispose(abort)
    // Shutdown can begin during `configureSession`.
    refuseWhenReleased()
    sessions.set(session.id, session)
    byDigest.set(session.digest, session)
    return session
  }

  async function rebuild({ id, digest, caller }: SessionLookup, record: SessionRecord): Promise<Session> {
    const { opening, home } = record
    const { user, headers, ip, params } = opening
    const signal = () => new AbortController().signal
    const facts = { route: caller.route, params, user, headers, ip, signal, authorized: true as const }
    const session = await build(facts, { id, digest, callbacks, opening, home, version: 0 })
    applyRecord(session, record, name)
    return session
  }

  async function startRun(session: Session, restored = false): Promise<void> {
    if (!session.offer.hasRunSession) return
    const ended = new Promise<void>(resolve => session.onRunEnd(resolve))
    await new Promise<void>((resolve, reject) => {
      let started = false
      const body = () => {
        started = true
        resolve()
        return ended
      }
      const run = session.offer.run(body, restored).catch(err => {
        reject(err)
        if (started) log.error({ code: 'MH1411', err, session: shortId(session.id) }, 'runSession failed')
        void endQuietly(session, new Error('runSession failed'))
      })
      runs.add(run)
      void run.then(() => runs.delete(run))
    })
    // The request also fails if `runSession` fails right after `run`.
    await nextTurn()
    if (session.disposed) throw new HostError('internal')
  }

  async function awaitRuns(timeout: number) {
    await withTimeout(Promise.all(runs), timeout, () => undefined)
    if (runs.size > 0)
      log.warn(
        { code: 'MH1412', runs: runs.size },
        'runSession did not end in time: the host closes without waiting for it',
      )
  }

  async function endEverywhere(digest: string, holder: string, reason: string, onlyIdle: boolean) {
    // Always asynchronous: an evicted session may have an unsent response.
    const nodes = await store?.end(digest, holder, onlyIdle)
    const session = byDigest.get(digest)
    if (onlyIdle && (store ? nodes === undefined : session?.inUse)) return
    session?.dispose(new Error(reason))
    await notify(nodes ?? [], { type: 'ended', session: digest, reason })
  }

  async function end(session: Session, reason: Error): Promise<void> {
    await endEverywhere(session.digest, session.holder, reason.message, false)
    session.dispose(reason)
  }

  /** Nodes that miss the message detect the end after the idle timeout. */
  async function endQuietly(session: Session, reason: Error) {
    session.dispose(reason)
    try {
      await end(session, reason)
    } catch (err) {
      log.warn(
        { code: 'MH1413', err, session: shortId(session.id) },
        'could not notify other nodes that a session ended',
      )
    }
  }

  async function awaitStreams(timeout: number) {
    const end = performance.now() + Math.min(timeout, STORE_TIMEOUT)
    const isEnding = () =>
      [...sessions.values()].some(({ streams }) => [...streams.values()].some(({ ending }) => ending))
    while (performance.now() < end && isEnding()) await pause(10)
  }

  const registry: SessionRegistry = {
    open,
    calls: createRunningCalls(limits),
    find(id, caller, transport, requests = []) {
      if (!caller.authorized) authorize(caller)
      const session = sessions.get(id)
      if (session && session.offer.route !== caller.route) throw sessionNotFound()
      // The signature of an id covers its owner, so ownership is checked before the store request.
      const facts = session ? undefined : ids.verify(id)
      const offer = session?.offer
      const owned = offer
        ? offer.user === caller.user || sameUser(offer.user, caller.user)
        : facts?.isOwnedBy(ownerOf(caller))
      if (owned === false) {
        if (paths.some(route => facts?.isOwnedBy({ route, user: caller.user }))) throw sessionNotFound()
        log.warn({ code: 'MH1414', session: shortId(id), ip: caller.ip }, 'refused a session of another user')
        throw notOwner()
      }
      if (!owned) throw sessionNotFound()
      const hasSameUrl = !offer || offer.params === caller.params || sameParams(offer.params, caller.params)
      if (!hasSameUrl || (session && session.opening.transport !== transport)) throw sessionNotFound()
      return findSession({ id, digest: session?.digest ?? digestOf(id), caller, transport, requests })
    },
    end,
    release(retry) {
      released = true
      for (const session of sessions.values()) session.release(retry)
    },
    get released() {
      return released
    },
    async close(reason, timeout) {
      upkeep.stop()
      if (store) await awaitStreams(timeout)
      for (const session of [...sessions.values()]) session.dispose(reason, store !== undefined)
      await awaitRuns(timeout)
      await upkeep.flush()
      await withTimeout(Promise.all(dropping), STORE_TIMEOUT, () => undefined)
      await peers.leave()
    },
    get count() {
      return sessions.size
    },
    list: () => sessions.values(),
  }

  return {
    registry,
    start(receiveOther: (message: StreamMessage) => void) {
      listen(receiveOther)
      upkeep.start()
    },
  }
}
