// Every session of this node: opened within the bounds, found by its id for the caller who owns it, ended when idle.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { OpenSession, RequestFacts } from '../call.ts'
import { HostError } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { ChangeFeed } from './change-feed.ts'
import type { EventStore } from './event-store.ts'
import { createOwners } from './owners.ts'
import { Session, type SessionOwner } from './session.ts'
import { type Owner, type SessionIds, shortId } from './session-id.ts'

export interface SessionBounds {
  /** Milliseconds. */
  readonly idleTimeout: number
  readonly maxIdle: number
  /** Undefined: no bound. */
  readonly maxPerOwner: number | undefined
}

export interface RegistrySettings {
  readonly ids: SessionIds
  readonly bounds: SessionBounds
  readonly feed: ChangeFeed
  readonly events: () => EventStore
  readonly log: Logger
  readonly openSession: (facts: RequestFacts) => Promise<OpenSession>
}

export type Caller = Pick<RequestFacts, 'route' | 'params' | 'user' | 'ip'>

export interface SessionRegistry {
  /** Opens a session. Throws `tooManyRequests` where its owner has as many as it may. */
  open(facts: RequestFacts, transport: string): Promise<Session>
  /**
   * The session that an id names, for its owner on its route and transport. Throws `notFound` where there is none, so that the
   * client opens a new one, and `forbidden` where it is another user's.
   */
  find(id: string, caller: Caller, transport: string): Session
  /** Ends every stream with a hint to come back. */
  release(retry: number): void
  /** Ends every session, and gives each `runSession` up to `patience` milliseconds to clean up. */
  close(reason: Error, patience: number): Promise<void>
  readonly count: number
}

/** Sessions whose time is over are looked for this often at most, milliseconds. */
const SWEEP_INTERVAL = 30_000
/** Evictions are told of this often at most, milliseconds. */
const EVICTION_LOG_INTERVAL = 10_000

const ownerOf = ({ route, user }: Caller): Owner => ({ route: route.path, user })

const holderOf = ({ user, ip }: Caller) => (user ? JSON.stringify([user.issuer ?? '', user.subject]) : `address ${ip}`)

/** Made only where it is thrown: an error costs more than a call. */
const gone = () => new HostError('notFound', { detail: 'there is no such session; open a new one with initialize' })

const sameUser = (one: Caller['user'], other: Caller['user']) =>
  one?.issuer === other?.issuer && one?.subject === other?.subject

const sameParams = (a: Caller['params'], b: Caller['params']) =>
  Object.keys({ ...a, ...b }).every(name => a[name] === b[name])

/** The signal of a session's life, made only for those who look at it. */
function createLife() {
  let controller: AbortController | undefined
  let session: Session | undefined
  const abort = () => controller?.abort(new Error('the session is over'))
  return {
    signal() {
      if (!controller) session?.onDispose(abort)
      controller ??= new AbortController()
      return controller.signal
    },
    endWith(begun: Session) {
      session = begun
      if (controller) session.onDispose(abort)
    },
  }
}

export function createSessionRegistry(settings: RegistrySettings): SessionRegistry {
  const { ids, bounds, feed, events, log, openSession } = settings
  const sessions = new Map<string, Session>()
  const owners = createOwners<Session>()
  const runs = new Set<Promise<void>>()
  let evicted = 0
  let loggedAt = 0

  const owner: SessionOwner = {
    feed,
    used: (session, inUse) => (inUse ? owners.use(session) : idle(session)),
    disposed(session) {
      sessions.delete(session.id)
      owners.remove(session)
      Promise.resolve(events().drop(session.id)).catch(err =>
        log.warn({ err }, 'the event store could not drop a session'),
      )
    },
  }

  function idle(session: Session) {
    owners.idle(session)
    while (owners.idleCount > bounds.maxIdle) evict()
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
    const limit = Date.now() - bounds.idleTimeout
    for (const session of owners.oldestFirst()) {
      if (session.lastUsed > limit) return
      log.debug({ session: shortId(session.id) }, 'a session ended: idle')
      session.dispose(new Error('the session was idle for too long'))
    }
  }

  const sweeper = setInterval(sweep, Math.min(SWEEP_INTERVAL, Math.max(50, bounds.idleTimeout / 4))).unref()

  function admit(caller: Caller): string {
    const holder = holderOf(caller)
    if (bounds.maxPerOwner !== undefined && owners.countOf(holder) >= bounds.maxPerOwner) {
      throw new HostError('tooManyRequests', {
        detail: `at most ${bounds.maxPerOwner} sessions; end one with DELETE`,
        headers: { 'Retry-After': '60' },
      })
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
    const life = createLife()
    const opened = await openSession({ ...facts, sessionId: id, signal: life.signal })
    // Others may have been opened while `configureSession` took its time.
    admit(facts)
    const session = new Session({ id, holder, transport, opened, owner })
    life.endWith(session)
    sessions.set(id, session)
    owners.add(session)
    try {
      await startRun(session)
    } catch (error) {
      session.dispose(new Error('runSession failed'))
      throw error
    }
    idle(session)
    return session
  }

  /** Lets the config's `runSession` span the session's life: resolves once it called `run`. */
  async function startRun(session: Session): Promise<void> {
    if (!session.opened.spansRun) return
    const over = new Promise<void>(resolve => session.onDispose(resolve))
    await new Promise<void>((resolve, reject) => {
      let begun = false
      const body = () => {
        begun = true
        resolve()
        return over
      }
      const run = session.opened.run(body).catch(err => {
        reject(err)
        if (begun) log.error({ err, session: shortId(session.id) }, 'runSession failed')
        session.dispose(new Error('runSession failed'))
      })
      runs.add(run)
      void run.then(() => runs.delete(run))
    })
    // Whoever asked for the session is to hear of a runSession that fails at once.
    await nextTurn()
    if (session.disposed) throw new HostError('internal')
  }

  return {
    open,
    find(id, caller, transport) {
      const session = sessions.get(id)
      if (session && session.opened.route !== caller.route) throw gone()
      // An id of this node is known as it stands; any other says by its signature whose it is, before a store is asked.
      const owned = session ? sameUser(session.opened.user, caller.user) : ids.read(id)?.isOwnedBy(ownerOf(caller))
      if (owned === false) {
        log.warn({ session: shortId(id), ip: caller.ip }, 'refused a session of another user')
        throw new HostError('forbidden', { detail: 'the session is not yours' })
      }
      if (!session || session.transport !== transport || !sameParams(session.opened.params, caller.params)) throw gone()
      return session
    },
    release(retry) {
      for (const session of sessions.values()) session.release(retry)
    },
    async close(reason, patience) {
      clearInterval(sweeper)
      for (const session of [...sessions.values()]) session.dispose(reason)
      let timer: NodeJS.Timeout | undefined
      const late = new Promise(resolve => {
        timer = setTimeout(resolve, patience)
      })
      await Promise.race([Promise.all(runs), late])
      clearTimeout(timer)
      if (runs.size > 0) log.warn({ runs: runs.size }, 'left without waiting for runSession any longer')
    },
    get count() {
      return sessions.size
    },
  }
}
