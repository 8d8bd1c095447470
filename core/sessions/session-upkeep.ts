// Keeps the session store up to date: session use, idle sessions, and lost records.
import type { Timer } from '../http/clock.ts'
import { applyRecord } from './node-messages.ts'
import type { PeerMessage } from './peers.ts'
import type { Session, ThisNode } from './session.ts'
import { shortId } from './session-id.ts'
import type { SessionUse, Victim } from './session-store.ts'

/** Minimum interval of reports to the store, milliseconds. */
const MARK_INTERVAL = 250
/** Minimum interval of log lines about evictions, milliseconds. */
const LOG_INTERVAL = 10_000
/** Maximum interval of idle checks, milliseconds. */
const SWEEP_INTERVAL = 30_000
/** Renewal interval of unused streams, milliseconds. */
const RENEW_INTERVAL = 300_000
const RESTORE_BATCH = 100

interface UpkeepParts {
  readonly node: ThisNode
  readonly evict: (victim: Victim) => Promise<void>
  readonly notify: (nodes: readonly string[], message: PeerMessage) => Promise<unknown> | undefined
}

export function createSessionUpkeep({ node, evict, notify }: UpkeepParts) {
  const { name, store, peers, limits, log, clock, metrics, sessions } = node
  const waiting = new Map<string, Omit<SessionUse, 'ago'> & { readonly at: number }>()
  let timer: Timer | undefined
  let evicted = 0
  let loggedAt = Number.NEGATIVE_INFINITY
  let renewedAt = clock.monotonic()
  let sweptAt = clock.now()

  const logFailure = (err: unknown) => log.debug({ err }, 'could not report the use of sessions to the store')

  async function evictAll(victims: readonly Victim[]) {
    if (victims.length === 0) return
    for (const victim of victims) await evict(victim).catch(logFailure)
    evicted += victims.length
    metrics.evicted(victims.length)
    if (clock.monotonic() - loggedAt < LOG_INTERVAL) return
    loggedAt = clock.monotonic()
    const what = 'ended idle sessions: their number exceeded sessions.maxIdle or the capacity of the store'
    log.warn({ code: 'MH1420', evicted, maxIdle: limits.maxIdle }, what)
    evicted = 0
  }

  async function flush() {
    clock.clear(timer)
    timer = undefined
    if (!store || waiting.size === 0) return
    const now = clock.monotonic()
    const uses = [...waiting.values()].map(({ at, ...use }) => ({ ...use, ago: now - at }))
    waiting.clear()
    await store.mark(uses, limits).then(evictAll).catch(logFailure)
  }

  function mark({ digest, holder }: Session, inUse: boolean) {
    waiting.set(digest, { digest, holder, inUse, at: clock.monotonic() })
    timer ??= clock.setTimeout(() => void flush(), MARK_INTERVAL).unref()
  }

  function endIdle(session: Session) {
    log.debug({ session: shortId(session.id) }, 'a session ended: idle')
    session.dispose(new Error('the session was idle for too long'))
  }

  /** Ends sessions that are idle everywhere. Forgets sessions of other nodes, unless `runSession` runs here. */
  async function sweepIdle(session: Session) {
    const before = session.lastUsed
    const left = await store?.timeLeft(session.digest)
    if (session.inUse || session.lastUsed !== before) return
    if (left === undefined) endIdle(session)
    else if (session.offer.hasRunSession && session.home === name) {
      session.lastUsed = clock.now() - Math.max(0, limits.idleTimeout - left)
    } else session.dispose(new Error('the session is not used here'), true)
  }

  /** `mcp_host_sessions` counts a session at its home. Requests check the home only if `runSession` has to continue. */
  async function adoptUsed(since: number) {
    const alive = new Map<string, boolean>()
    for (const session of sessions.values()) {
      const { home } = session
      if (home === name || session.offer.hasRunSession || !(session.inUse || session.lastUsed >= since)) continue
      const isAlive = alive.get(home) ?? (await peers.isAlive(home))
      alive.set(home, isAlive)
      if (!isAlive && (await store?.adopt(session.digest, home))) session.home = name
    }
  }

  async function sweep() {
    const since = sweptAt
    sweptAt = clock.now()
    if (store) await adoptUsed(since)
    const limit = clock.now() - limits.idleTimeout
    const isRenewal = clock.monotonic() - renewedAt > RENEW_INTERVAL
    if (isRenewal) renewedAt = clock.monotonic()
    for (const session of sessions.values()) {
      if (isRenewal) for (const stream of session.streams.values()) stream.reopen()
      if (session.inUse) {
        if (store) mark(session, true)
      } else if (session.lastUsed <= limit) await sweepIdle(session)
    }
  }

  /** Returns false if the session was ended. */
  async function restore(session: Session): Promise<boolean> {
    const { digest, running: requests, claim } = session
    const restored = await store?.restore(digest, session.record, { requests, claim }, limits)
    if (!restored) return false
    const { version, state } = restored.record
    session.isUnrestored = false
    applyRecord(session, restored.record, name)
    await notify(restored.nodes, { type: 'restored', session: digest, version, state })
    return true
  }

  async function restoreAll() {
    const here = [...sessions.values()]
    for (const session of here) session.isUnrestored = true
    let lost = 0
    for (let at = 0; at < here.length; at += RESTORE_BATCH) {
      const batch = here.slice(at, at + RESTORE_BATCH)
      const kept = await Promise.all(batch.map(restore))
      batch.forEach((session, index) => {
        if (kept[index]) {
          for (const stream of session.streams.values()) stream.reopen()
          mark(session, session.inUse)
        } else {
          session.dispose(new Error('the session was ended'))
          lost++
        }
      })
    }
    if (here.length > 0)
      log.info(
        { code: 'MH1421', sessions: here.length - lost, ended: lost },
        'registered the sessions of this node again at the session store',
      )
  }

  const sweeping = clock
    .setInterval(
      () => void sweep().catch(err => log.debug({ err }, 'the store could not be read')),
      Math.min(SWEEP_INTERVAL, Math.max(50, limits.idleTimeout / 4)),
    )
    .unref()

  return {
    mark,
    /** Drops the unreported use of an ended session. */
    forget: ({ digest }: Session) => void waiting.delete(digest),
    evict: (victim: Victim) => void evictAll([victim]),
    endIdle,
    restore,
    start: () =>
      store?.onReturn(() => {
        restoreAll().catch(err =>
          log.warn({ code: 'MH1422', err }, 'could not register the sessions of this node at the session store'),
        )
      }),
    stop: () => clock.clear(sweeping),
    flush,
  }
}
