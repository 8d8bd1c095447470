// Sessions that every node may serve: each request asks the store whether its session is still there, a session that
// this node has never seen is built again from its record, and what concerns another node's part of it is sent there.
import type { Logger } from '../../kernel/log.ts'
import { tooManyWatched } from '../../mcp/client-said.ts'
import type { RequestId } from '../../mcp/protocol.ts'
import type { SessionBounds } from '../registry.ts'
import type { Session, SessionOwner } from '../session.ts'
import { shortId } from '../session-id.ts'
import type { PeerMessage, Peers } from './peers.ts'
import { notSure, perhapsRunning, running, sessionGone, tooManySessions } from './refusals.ts'
import { createRunningElsewhere } from './running-elsewhere.ts'
import { createSessionMarks } from './session-marks.ts'
import {
  type Entered,
  FIRST_STATE,
  type SessionOpening,
  type SessionRecord,
  type SessionStore,
} from './session-store.ts'
import type { SharedVisit } from './shared-visit.ts'

export interface SharedSettings {
  /** This node. */
  readonly node: string
  readonly store: SessionStore
  readonly peers: Peers
  readonly bounds: SessionBounds
  readonly log: Logger
  /** The sessions of this node, by their digests. */
  readonly local: ReadonlyMap<string, Session>
  /** Runs the config's `runSession` for a session whose home died. */
  readonly adoptRun: (session: Session) => Promise<void>
  /** Messages for a stream or its readers. */
  readonly receiveOther: (message: OtherMessage) => void
}

export type OtherMessage = Extract<PeerMessage, { type: 'released' | 'follow' | 'written' | 'message' }>

/** How many records go to a store that has lost them at once. */
const RESTORE_BATCH = 100
/** How often streams that nobody writes to are kept from expiring, milliseconds. */
const RENEW_INTERVAL = 300_000

export interface SharedSessions
  extends Pick<SessionOwner, 'finished' | 'keep' | 'passAnswer' | 'passCancel' | 'askPrefix'> {
  readonly node: string
  readonly store: SessionStore
  readonly peers: Peers
  readonly local: ReadonlyMap<string, Session>
  /** Keeps a new session. Throws `tooManyRequests` where its holder has as many as it may. */
  create(digest: string, opening: SessionOpening): Promise<void>
  visit(visit: SharedVisit): Promise<Session>
  /** Ends a session for every node. Rejects where the store cannot be asked; it lives on then. */
  end(session: Session, reason: Error): Promise<void>
  /** How a session of this node is used. */
  mark(session: Session, inUse: boolean): void
  /** Forgets what is not used here any more, and keeps what is in use from expiring. */
  sweep(): Promise<void>
  close(): Promise<void>
}

export function createSharedSessions(settings: SharedSettings): SharedSessions {
  const { node, store, peers, bounds, log, local, adoptRun } = settings
  const building = new Map<string, Promise<Session>>()
  const marks = createSessionMarks({
    store,
    bounds,
    log,
    evict: ({ digest, holder }) => endEverywhere(digest, holder, 'the session idled while too many did', true),
  })
  const { mark } = marks
  let renewedAt = performance.now()

  const recordOf = ({ shared, state }: Session): SessionRecord => {
    if (!shared) throw new Error('a session without a record')
    return { opening: shared.opening, state, version: shared.version, home: shared.home }
  }

  /** Told to those who have a copy; one that is not heard is found out with the next request. */
  const tell = (nodes: readonly string[], message: PeerMessage) =>
    Promise.all(nodes.map(other => peers.send(other, message)))

  function update(session: Session, { version, state, home }: SessionRecord) {
    if (!session.shared || session.shared.version >= version) return
    session.shared.version = version
    // Another node took this one for dead, and runs it now.
    if (session.shared.home === node && home !== node) session.endRun()
    session.shared.home = home
    session.apply(state)
  }

  function build(visit: SharedVisit, record: SessionRecord): Promise<Session> {
    const under = building.get(visit.digest) ?? visit.rebuild(record).finally(() => building.delete(visit.digest))
    building.set(visit.digest, under)
    return under
  }

  const runsHere = (digest: string, request: RequestId) => local.get(digest)?.runs(request) ?? false
  const elsewhere = createRunningElsewhere(node, peers, runsHere)

  /** The node that it is registered for says so; one that is gone does not run it any more. */
  async function isRunning({ request, node: at }: Extract<Entered, { kind: 'taken' }>, digest: string) {
    if (at === node) return runsHere(digest, request)
    if (!(await peers.isAlive(at))) return false
    const said = await elsewhere.ask(at, digest, request)
    if (said === undefined) throw perhapsRunning(request)
    return said
  }

  const restore = (session: Session) =>
    store.restore(
      session.digest,
      recordOf(session),
      { requests: session.running, claim: session.shared?.claim },
      bounds,
    )

  /** The store has no record. Throws, or resolves where this node could give it back. */
  async function restoreLost(digest: string, ended: boolean) {
    const held = local.get(digest)
    if (ended) held?.dispose(new Error('the session was ended'))
    if (!ended && held && (held.inUse || Date.now() - held.lastUsed < bounds.idleTimeout)) {
      if (await restore(held)) return
    }
    throw !ended && !held && store.unsure ? notSure() : sessionGone()
  }

  async function enter(visit: SharedVisit): Promise<SessionRecord | undefined> {
    const { digest, requests } = visit
    const from: string[] = []
    let restored = false
    for (;;) {
      const version = local.get(digest)?.shared?.version ?? 0
      const entered = await store.enter(digest, { version, requests, from }, bounds)
      if (entered.kind === 'entered') {
        if (entered.record || local.has(digest)) return entered.record
        // The copy went while the store was asked.
        from.push(node)
      } else if (entered.kind === 'taken') {
        if (await isRunning(entered, digest)) throw running(entered.request)
        from.push(entered.node)
      } else {
        if (restored) throw notSure()
        await restoreLost(digest, entered.ended)
        restored = true
      }
    }
  }

  async function adopt(session: Session) {
    const { shared } = session
    if (!shared || shared.home === node || !session.opened.spansRun) return
    if (await peers.isAlive(shared.home)) return
    if (!(await store.adopt(session.digest, shared.home))) return
    shared.home = node
    shared.version++
    await adoptRun(session)
  }

  async function visitSession(visit: SharedVisit): Promise<Session> {
    const { digest, requests, check } = visit
    const here = local.get(digest)
    // Not to be forgotten for being idle while the store is asked.
    if (here) here.lastUsed = Date.now()
    const record = await enter(visit)
    try {
      if (record) check(record.opening)
      const session = local.get(digest) ?? (record && (await build(visit, record)))
      if (!session?.shared || session.disposed) throw sessionGone()
      // It may have been built for another request meanwhile, at another address.
      check(session.shared.opening)
      if (record) update(session, record)
      await adopt(session)
      return session
    } catch (error) {
      store.leave(digest, requests)
      throw error
    }
  }

  /** `end` for a session that may not be here. */
  async function endEverywhere(digest: string, holder: string, reason: string, onlyIdle: boolean) {
    const nodes = await store.end(digest, holder, onlyIdle)
    if (nodes === undefined && onlyIdle) return
    local.get(digest)?.dispose(new Error(reason))
    await tell(nodes ?? [], { type: 'ended', session: digest, reason })
  }

  function receive(message: PeerMessage) {
    const session = local.get(message.session)
    if (message.type === 'written' || message.type === 'message' || message.type === 'follow') {
      return settings.receiveOther(message)
    }
    if (message.type === 'runs?') return elsewhere.tell(message)
    if (message.type === 'runs') return elsewhere.told(message)
    if (!session) return
    if (message.type === 'answer') session.answerHere(message.id, message.body)
    else if (message.type === 'cancel') session.cancelHere(message.request, message.reason)
    else if (message.type === 'ended') session.dispose(new Error(message.reason))
    else if (message.type === 'changed') {
      const { version, state } = message
      update(session, { ...recordOf(session), version, state })
    } else settings.receiveOther(message)
  }

  async function restoreAll() {
    const sessions = [...local.values()]
    let lost = 0
    for (let at = 0; at < sessions.length; at += RESTORE_BATCH) {
      const batch = sessions.slice(at, at + RESTORE_BATCH)
      const kept = await Promise.all(batch.map(restore))
      batch.forEach((session, index) => {
        if (!kept[index]) session.dispose(new Error('the session was ended'))
        else for (const stream of session.streams.values()) stream.reopen()
        if (kept[index]) mark(session, session.inUse)
        else lost++
      })
    }
    if (sessions.length > 0)
      log.info({ sessions: sessions.length - lost, ended: lost }, 'told the store of every session here')
  }

  peers.receive(receive)
  store.onReturn(() => {
    restoreAll().catch(err => log.warn({ err }, 'the store could not be told of the sessions here'))
  })

  return {
    node,
    store,
    peers,
    local,
    async create(digest, opening) {
      if (await store.create(digest, { opening, state: FIRST_STATE, version: 1, home: node }, bounds)) return
      throw tooManySessions(bounds.maxPerOwner)
    },
    visit: visitSession,
    async end(session, reason) {
      await endEverywhere(session.digest, session.holder, reason.message, false)
      session.dispose(reason)
    },
    mark,
    async sweep() {
      const limit = Date.now() - bounds.idleTimeout
      const renews = performance.now() - renewedAt > RENEW_INTERVAL
      if (renews) renewedAt = performance.now()
      for (const session of [...local.values()]) {
        if (renews) for (const stream of session.streams.values()) stream.reopen()
        if (session.inUse) mark(session, true)
        else if (session.lastUsed <= limit) await sweepIdle(session)
      }
    },
    async close() {
      await marks.close()
      await peers.leave()
    },
    finished: (session, id) => store.leave(session.digest, [id]),
    async keep(session, change) {
      const changed = await store.change(session.digest, change)
      if (changed === undefined) return
      if (changed === 'full') {
        // Other nodes watch for it too: all together they have come to the bound.
        if ('watch' in change) session.unwatch(change.watch)
        throw tooManyWatched()
      }
      const { record, nodes } = changed
      update(session, record)
      await tell(nodes, { type: 'changed', session: session.digest, version: record.version, state: record.state })
    },
    askPrefix: () => `ask-${node}-${Math.random().toString(36).slice(2, 8)}-`,
    passAnswer(session, id, body) {
      const asker = typeof id === 'string' ? /^ask-([0-9a-z]+)-/.exec(id)?.[1] : undefined
      if (asker === undefined || asker === node) return undefined
      return peers.send(asker, { type: 'answer', session: session.digest, id, body }).then(() => undefined)
    },
    async passCancel(session, id, reason) {
      const at = await store.nodeOf(session.digest, id)
      if (at === undefined || at === node) return
      await peers.send(at, { type: 'cancel', session: session.digest, request: id, reason })
    },
  }

  /** Used elsewhere or not at all: this node need not keep it, unless it runs it. */
  async function sweepIdle(session: Session) {
    const before = session.lastUsed
    const left = await store.timeLeft(session.digest)
    if (session.inUse || session.lastUsed !== before) return
    if (left === undefined) {
      log.debug({ session: shortId(session.id) }, 'a session ended: idle')
      session.dispose(new Error('the session was idle for too long'))
    } else if (session.opened.spansRun && session.shared?.home === node) {
      session.lastUsed = Date.now() - Math.max(0, bounds.idleTimeout - left)
    } else session.dispose(new Error('the session is not used here'), true)
  }
}
