// Every session of this node: opened within the bounds, found by its id for the caller who owns it, ended when idle. What
// is written down of them is in the store, here or where every node finds it.
import { setTimeout as pause } from 'node:timers/promises'
import { HostError, shuttingDown } from '../http/errors.ts'
import { sameUser } from '../kernel/user.ts'
import type { AdmitCaller, Offer, RequestFacts } from '../mcp/call.ts'
import type { RequestId } from '../mcp/protocol.ts'
import type { McpRoute } from '../mcp/routes.ts'
import { buildSession } from './build-session.ts'
import { type Caller, openingOf, ownerOf, sameParams } from './callers.ts'
import type { ChangeFeed } from './change-feed.ts'
import { createEntrance, type Entering } from './entrance.ts'
import { createNodeMessages, type StreamMessage } from './nodes/messages.ts'
import { createRestoring } from './nodes/restoring.ts'
import { sessionGone as gone, tooManySessions } from './refusals.ts'
import { createRunningCalls, type RunningCalls } from './running-calls.ts'
import type { Session, SessionFacts } from './session.ts'
import { digestOf, type SessionIds, shortId } from './session-id.ts'
import type { SessionKeeper } from './session-keeper.ts'
import { createSessionMarks } from './session-marks.ts'
import { FIRST_STATE, type SessionRecord } from './session-record.ts'
import { createSessionRuns } from './session-runs.ts'
import { createKeeping } from './state-changes.ts'
import { startSweeping } from './sweep.ts'
import { takeRecord } from './take-record.ts'
import type { ThisNode } from './this-node.ts'
import { createWatchCharges } from './watched-uris.ts'

export interface RegistrySettings {
  readonly node: ThisNode
  readonly ids: SessionIds
  /** The paths of all routes of the host, those whose sessions are kept elsewhere too. */
  readonly paths: readonly string[]
  /** What brings changes to the sessions of a route. */
  readonly feedOn: (route: McpRoute) => ChangeFeed
  readonly makeOffer: (facts: RequestFacts) => Offer | Promise<Offer>
  /** Asked of callers whom no HTTP request brought through `admit`. */
  readonly admit: AdmitCaller
}

/** The sessions of a node. */
export interface SessionRegistry {
  /** Opens a session. Throws as `admit` for who was not admitted, `tooManyRequests` where its owner has as many as it may, `unavailable` where it would end with the host. */
  open(facts: RequestFacts, transport: string): Promise<Session>
  /**
   * The session that an id names, for its owner on its route and transport. Throws `sessionNotFound` where there is none,
   * so that the client opens a new one, `forbidden` where it is another user's, `invalidRequest` where one of `requests`
   * runs at another node, and `unavailable` where the store cannot be asked. At once where nothing is to be waited for.
   */
  find(id: string, caller: Caller, transport: string, requests?: readonly RequestId[]): Session | Promise<Session>
  /** Ends a session, for every node. Rejects with `unavailable` where the store cannot be told; it lives on then. */
  end(session: Session, reason: Error): Promise<void>
  /** True once `release` was called: streams that would never end are ended as they come. */
  readonly released: boolean
  /** Ends every stream with a hint to come back. */
  release(retry: number): void
  /** Ends every session, and gives each `runSession` up to `patience` milliseconds to clean up. */
  close(reason: Error, patience: number): Promise<void>
  readonly count: number
  /** For transports: the requests that run. */
  readonly calls: RunningCalls
}

/** What is written to streams has this long to get into a store, milliseconds. */
const STORE_PATIENCE = 5_000

export function createSessionRegistry(settings: RegistrySettings) {
  const { node, ids, paths, feedOn, makeOffer, admit } = settings
  const { name, store, peers, events, bounds, log, clock, figures, sessions: byDigest } = node
  const sessions = new Map<string, Session>()
  const runs = createSessionRuns(log, (session, reason) => void endQuietly(session, reason))
  const charge = createWatchCharges()
  const messages = createNodeMessages(node)
  const marks = createSessionMarks(node, ({ digest, holder }) =>
    endEverywhere(digest, holder, 'the session idled while too many did', true),
  )
  const { restore, begin: beginRestoring } = createRestoring(node, marks)
  const enter = createEntrance({ node, runsAt: messages.runsAt, restore, rebuild, adoptRun: s => runs.start(s, true) })
  const stopSweeping = startSweeping(node, marks)
  let released = false

  const keeper: SessionKeeper<Session> = {
    clock,
    feedOn,
    used: marks.mark,
    disposed(session, elsewhere) {
      sessions.delete(session.id)
      byDigest.delete(session.digest)
      if (elsewhere) return
      // Every node that has it hears of its end; one counts it.
      if (session.home === name) figures.ended(session)
      Promise.resolve(events(session).drop(session.id)).catch(err =>
        log.warn({ err }, 'the event store could not drop a session'),
      )
    },
    finished: (session, requests) => store.leave(session.digest, requests),
    keep: createKeeping(node, messages.tell),
    passAnswer: messages.passAnswer,
    passCancel: messages.passCancel,
    nameQuestions: messages.nameQuestions,
    // A call may outlive its session; nobody would give back what it takes then.
    charge: (session, bytes, letIn) => session.disposed || charge(session.holder, bytes, letIn),
  }

  /** Throws where nobody could go on with a new session. */
  function refuseWhenReleased() {
    if (released && !store.shared) throw shuttingDown()
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
    refuseWhenReleased()
    // Before the store hears of it.
    if (!facts.admitted) admit(facts)
    const id = ids.create(ownerOf(facts), clock.now())
    const digest = digestOf(id)
    const opening = openingOf(facts, transport, store.shared !== false)
    const record = { opening, state: FIRST_STATE, version: 1, home: name }
    const created = store.create(digest, record, bounds)
    if (!(created instanceof Promise ? await created : created)) throw tooManySessions(bounds.maxPerOwner)
    const session = await buildNew(facts, { id, digest, keeper, opening, home: name, version: 1 })
    try {
      await runs.start(session)
    } catch (error) {
      await endQuietly(session, new Error('runSession failed'))
      throw error
    }
    figures.opened(session)
    marks.mark(session, session.inUse)
    return session
  }

  /** `build`, of which nothing stays where it fails. */
  async function buildNew(facts: RequestFacts, made: Omit<SessionFacts, 'offer'>): Promise<Session> {
    try {
      return await build(facts, made)
    } catch (error) {
      void forgetFailed(made.digest, made.opening.holder)
      throw error
    }
  }

  async function forgetFailed(digest: string, holder: string) {
    try {
      await store.end(digest, holder)
    } catch (err) {
      log.debug({ err }, 'a session that failed to open stays in the store until it has idled')
    }
  }

  async function build(facts: RequestFacts, made: Omit<SessionFacts, 'offer'>): Promise<Session> {
    const session = await buildSession(makeOffer, facts, made)
    // The host may have begun to close while `configureSession` took its time.
    refuseWhenReleased()
    sessions.set(session.id, session)
    byDigest.set(session.digest, session)
    return session
  }

  /** A session that this node has never seen, as its record says. */
  async function rebuild({ id, digest, caller }: Entering, record: SessionRecord): Promise<Session> {
    const { opening, home } = record
    const { user, headers, ip, params } = opening
    const signal = () => new AbortController().signal
    // Whoever names it by its id was admitted.
    const facts = { route: caller.route, params, user, headers, ip, signal, admitted: true as const }
    const session = await build(facts, { id, digest, keeper, opening, home, version: 0 })
    takeRecord(session, record, name)
    return session
  }

  /** Undone where the store cannot be asked. `onlyIdle`: not one that is in use. */
  async function endEverywhere(digest: string, holder: string, reason: string, onlyIdle: boolean) {
    const nodes = await store.end(digest, holder, onlyIdle)
    if (nodes === undefined && onlyIdle) return
    byDigest.get(digest)?.dispose(new Error(reason))
    await messages.tell(nodes ?? [], { type: 'ended', session: digest, reason })
  }

  async function end(session: Session, reason: Error): Promise<void> {
    await endEverywhere(session.digest, session.holder, reason.message, false)
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

  /** Lets what was answered get into the store, for those who come back for it elsewhere. */
  async function settleStreams(patience: number) {
    const end = performance.now() + Math.min(patience, STORE_PATIENCE)
    const unsettled = () =>
      [...sessions.values()].some(({ streams }) => [...streams.values()].some(({ ending }) => ending))
    while (performance.now() < end && unsettled()) await pause(10)
  }

  const registry: SessionRegistry = {
    open,
    calls: createRunningCalls(bounds),
    find(id, caller, transport, requests = []) {
      if (!caller.admitted) admit(caller)
      const session = sessions.get(id)
      if (session && session.offer.route !== caller.route) throw gone()
      // An id of this node is known as it stands; any other says by its signature whose it is, before a store is asked.
      const facts = session ? undefined : ids.read(id)
      const owned = session ? sameUser(session.offer.user, caller.user) : facts?.isOwnedBy(ownerOf(caller))
      if (owned === false) {
        if (paths.some(route => facts?.isOwnedBy({ route, user: caller.user }))) throw gone()
        log.warn({ session: shortId(id), ip: caller.ip }, 'refused a session of another user')
        throw new HostError('forbidden', { detail: 'the session is not yours' })
      }
      if (!owned) throw gone()
      if (session && (session.transport !== transport || !sameParams(session.offer.params, caller.params))) throw gone()
      return enter({ id, digest: session?.digest ?? digestOf(id), caller, transport, requests })
    },
    end,
    release(retry) {
      released = true
      for (const session of sessions.values()) session.release(retry)
    },
    get released() {
      return released
    },
    async close(reason, patience) {
      stopSweeping()
      const shared = store.shared !== false
      if (shared) await settleStreams(patience)
      for (const session of [...sessions.values()]) session.dispose(reason, shared)
      await runs.close(patience)
      await marks.close()
      await peers.leave()
    },
    get count() {
      return sessions.size
    },
  }

  return {
    registry,
    /** From now on other nodes are heard: the slots are filled. `receiveOther` takes what concerns streams. */
    start(receiveOther: (message: StreamMessage) => void) {
      messages.listen(receiveOther)
      beginRestoring()
    },
  }
}
