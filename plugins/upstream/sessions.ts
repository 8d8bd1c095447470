// Sessions at a server: opens one for each group of callers that shares it, and ends idle ones.
import type { Call, Clock, Timer } from '../../core/plugin.ts'
import { limitOwnerOf } from '../../core/transport.ts'
import { type Connection, RemoteError, type ServerNotification, type ServerRequest } from '../../remote/index.ts'
import { type LimitedSession, SessionLimit } from './session-limit.ts'
import type { ServerSettings } from './settings.ts'
import type { UpstreamRequest } from './upstream-request.ts'

/** A session at a server, with its running calls. */
export interface ServerSession {
  readonly connection: Connection
  /** The running calls. Undefined for the host's connection, which all callers share. */
  readonly runs: Set<UpstreamRequest> | undefined
  /** The log level that was last requested from the server. */
  logLevel: string | undefined
  /** Ends the session of one caller or user. */
  close?(): void
}

export interface SessionLease {
  readonly session: ServerSession
  /** Must be called when the call ends. */
  release(): void
}

interface SessionEntry extends LimitedSession {
  readonly key: string
  session: ServerSession | undefined
  readonly opening: Promise<ServerSession>
  users: number
  timer: Timer | undefined
  isClosed: boolean
}

/** `call`: the call that opens the session. `signal`: aborts when the session is closed. */
type OpenSession = (call: Call, events: SessionEvents, signal: AbortSignal) => Promise<Connection>

export interface SessionEvents {
  onRequest(request: ServerRequest): Promise<Record<string, unknown>>
  onNotification(notification: ServerNotification): void
  onClosed(): void
}

interface SessionParts {
  readonly settings: Pick<ServerSettings, 'name' | 'sessions' | 'maxSessions' | 'idle' | 'command'>
  readonly clock: Clock
  /** The processes of all servers. */
  readonly processes: SessionLimit
  /** True if only this machine can reach the host, so anonymous callers count as one user. */
  readonly isLocal: boolean
  readonly open: OpenSession
  /** Receives notifications that belong to no call. */
  readonly onNotification: (notification: ServerNotification) => void
}

type Session = NonNullable<Call['session']>

/** Returns the upstream request that a message of the server belongs to. */
function findRun(owner: unknown, runs: ReadonlySet<UpstreamRequest>): UpstreamRequest | undefined {
  // All upstream requests of a session have the same user.
  if (owner === undefined) return [...runs].at(-1)
  return [...runs].find(run => run === owner)
}

/** Rejects when the caller disconnects, because it need not wait for its session. */
async function raceAbort<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  let abort: () => void = () => undefined
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(new RemoteError('cancelled', 'the call was cancelled'))
  })
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

export function createSessions({ settings, clock, processes, isLocal, ...parts }: SessionParts) {
  const entries = new Map<string, SessionEntry>()
  const sessionLimit = new SessionLimit(settings.maxSessions, !isLocal)
  const sessionKeys = new WeakMap<Session, string | undefined>()
  let lastSession = 0

  /** Returns undefined if the call gets its own session. */
  function selectKey(call: Call): string | undefined {
    const { sessions } = settings
    const { session, user } = call
    if (sessions === 'per-call') return undefined
    if (session && sessions !== 'per-user') {
      if (!sessionKeys.has(session)) {
        const key = `session ${++lastSession}`
        sessionKeys.set(session, key)
        session.onDispose(() => {
          sessionKeys.set(session, undefined)
          entries.get(key)?.close()
        })
      }
      // After the end of the client session, a call gets its own session, which ends with the call.
      return sessionKeys.get(session)
    }
    if (user) return limitOwnerOf({ user, ip: '' })
    return isLocal ? 'local' : undefined
  }

  function open(key: string, call: Call): SessionEntry {
    const owner = limitOwnerOf({ user: call.user, ip: call.offer.ip })
    const limits = settings.command ? [processes, sessionLimit] : [sessionLimit]
    const evicted = limits.map(limit => limit.findEvictable(owner, settings.name))
    const runs = new Set<UpstreamRequest>()
    const controller = new AbortController()
    const events: SessionEvents = {
      onRequest: request => {
        const run = findRun(request.owner, runs)
        return run ? run.relay(request).then(reply => ({ ...reply })) : Promise.reject(new Error('no call is running'))
      },
      onNotification: notification => {
        if (notification.method === 'notifications/message') findRun(notification.owner, runs)?.log(notification.params)
        else parts.onNotification(notification)
      },
      onClosed: () => entry.close(),
    }
    async function connect(): Promise<ServerSession> {
      await Promise.all(evicted.map(other => other?.ended))
      controller.signal.throwIfAborted()
      const connection = await parts.open(call, events, controller.signal)
      entry.session = { connection, runs, logLevel: undefined, close: entry.close }
      return entry.session
    }
    let finish: () => void = () => undefined
    const ended = new Promise<void>(resolve => {
      finish = resolve
    })
    // Connects in a later microtask, after `entry` is initialised.
    const opening = Promise.resolve().then(connect)
    const entry: SessionEntry = {
      key,
      owner,
      session: undefined,
      opening,
      ended,
      users: 0,
      timer: undefined,
      isClosed: false,
      close() {
        if (entry.isClosed) return
        entry.isClosed = true
        clock.clear(entry.timer)
        if (entries.get(key) === entry) entries.delete(key)
        controller.abort(new RemoteError('closed', 'the session was closed'))
        // The session keeps its slot until its process has ended.
        opening
          .then(({ connection }) => connection.close())
          .catch(() => undefined)
          .finally(() => {
            for (const limit of limits) limit.free(entry)
            finish()
          })
      },
    }
    for (const [index, limit] of limits.entries()) limit.take(entry, evicted[index])
    entries.set(key, entry)
    opening.catch(() => entry.close())
    return entry
  }

  let lastCall = 0

  return {
    get size() {
      return entries.size
    },
    /** Returns the session for a call. */
    async acquire(call: Call): Promise<SessionLease> {
      const shared = selectKey(call)
      const key = shared ?? `call ${++lastCall}`
      const entry = entries.get(key) ?? open(key, call)
      // Moves the session to the end: the least recently used session is closed first.
      sessionLimit.used(entry)
      if (settings.command) processes.used(entry)
      entry.users++
      clock.clear(entry.timer)
      let isReleased = false
      const release = () => {
        if (isReleased) return
        isReleased = true
        if (--entry.users > 0 || entry.isClosed) return
        if (shared === undefined) entry.close()
        else if (settings.idle > 0) entry.timer = clock.setTimeout(() => entry.close(), settings.idle).unref()
      }
      try {
        return { session: entry.session ?? (await raceAbort(entry.opening, call.signal)), release }
      } catch (error) {
        release()
        throw error
      }
    },
    async close() {
      const { all } = sessionLimit
      for (const entry of all) entry.close()
      await Promise.all(all.map(({ ended }) => ended))
    },
  }
}

export type Sessions = ReturnType<typeof createSessions>
