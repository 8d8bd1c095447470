// Sessions at a server: who shares one, and when it ends.
import type { Call, Clock, Timer } from '../../core/plugin.ts'
import { holderOf } from '../../core/transport.ts'
import { type Connection, RemoteError, type ServerNotification, type ServerRequest } from '../../remote/index.ts'
import { type Placed, Places } from './places.ts'
import type { Run } from './run.ts'
import type { ServerSettings } from './settings.ts'

/** A connection with its running calls. */
export interface Lane {
  readonly connection: Connection
  readonly runs: Set<Run>
  /** The level that the server was last asked for. */
  logLevel: string | undefined
}

interface Kept extends Placed {
  readonly key: string
  lane: Lane | undefined
  readonly opening: Promise<Lane>
  users: number
  timer: Timer | undefined
  isClosed: boolean
}

/** `call`: the first one. `signal`: aborts when the session is closed. */
type OpenLane = (call: Call, events: LaneEvents, signal: AbortSignal) => Promise<Connection>

export interface LaneEvents {
  onRequest(request: ServerRequest): Promise<Record<string, unknown>>
  onNotification(notification: ServerNotification): void
  onClosed(): void
}

interface SessionParts {
  readonly settings: Pick<ServerSettings, 'name' | 'sessions' | 'maxSessions' | 'idle' | 'command'>
  readonly clock: Clock
  /** Of all servers. */
  readonly processes: Places
  /** Anonymous callers are one user: only this machine can reach the host. */
  readonly isLocal: boolean
  readonly open: OpenLane
  /** Messages of a lane to all of its callers. */
  readonly onNotification: (notification: ServerNotification) => void
}

type Session = NonNullable<Call['session']>

/** The run that a message of the server belongs to. */
function runOf(owner: unknown, runs: ReadonlySet<Run>): Run | undefined {
  for (const run of runs) if (run === owner) return run
  // All runs of a lane have the same user.
  return [...runs].at(-1)
}

/** A caller that is gone does not wait for its session. */
async function unlessAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
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
  const kept = new Map<string, Kept>()
  const places = new Places(settings.maxSessions, !isLocal)
  const ofSession = new WeakMap<Session, string>()
  let lastSession = 0

  /** Undefined: a session for this call only. */
  function keyOf(call: Call): string | undefined {
    const { sessions } = settings
    const { session, user } = call
    if (sessions === 'per-call') return undefined
    if (session && sessions !== 'per-user') {
      const known = ofSession.get(session)
      if (known !== undefined) return known
      const key = `session ${++lastSession}`
      ofSession.set(session, key)
      session.onDispose(() => end(key))
      return key
    }
    if (user) return holderOf({ user, ip: '' })
    return isLocal ? 'local' : undefined
  }

  function end(key: string) {
    kept.get(key)?.close()
  }

  function open(key: string, call: Call): Kept {
    const holder = holderOf({ user: call.user, ip: call.offer.ip })
    const limits = settings.command ? [processes, places] : [places]
    const replaced = limits.map(limit => limit.toReplace(holder, settings.name))
    const runs = new Set<Run>()
    const stop = new AbortController()
    const events: LaneEvents = {
      onRequest: request => {
        const run = runOf(request.owner, runs)
        return run ? run.ask(request).then(answer => ({ ...answer })) : Promise.reject(new Error('no call is running'))
      },
      onNotification: notification => {
        if (notification.method === 'notifications/message') runOf(notification.owner, runs)?.log(notification.params)
        else parts.onNotification(notification)
      },
      onClosed: () => one.close(),
    }
    async function connect(): Promise<Lane> {
      await Promise.all(replaced.map(other => other?.ended))
      stop.signal.throwIfAborted()
      const connection = await parts.open(call, events, stop.signal)
      one.lane = { connection, runs, logLevel: undefined }
      return one.lane
    }
    let finish: () => void = () => undefined
    const ended = new Promise<void>(resolve => {
      finish = resolve
    })
    // The connection is made after this turn, when `one` is complete.
    const opening = Promise.resolve().then(connect)
    const one: Kept = {
      key,
      holder,
      lane: undefined,
      opening,
      ended,
      users: 0,
      timer: undefined,
      isClosed: false,
      close() {
        if (one.isClosed) return
        one.isClosed = true
        clock.clear(one.timer)
        if (kept.get(key) === one) kept.delete(key)
        stop.abort(new RemoteError('closed', 'the session was closed'))
        // It keeps its place until its process has ended.
        opening
          .then(({ connection }) => connection.close())
          .catch(() => undefined)
          .finally(() => {
            for (const limit of limits) limit.free(one)
            finish()
          })
      },
    }
    for (const [index, limit] of limits.entries()) limit.take(one, replaced[index])
    kept.set(key, one)
    opening.catch(() => one.close())
    return one
  }

  let lastCall = 0

  return {
    get size() {
      return kept.size
    },
    /** The session for a call. `leave` must be called at its end. */
    async enter(call: Call): Promise<{ readonly lane: Lane; leave(): void }> {
      const shared = keyOf(call)
      const key = shared ?? `call ${++lastCall}`
      const one = kept.get(key) ?? open(key, call)
      // The last used one is the last to be closed.
      places.used(one)
      if (settings.command) processes.used(one)
      one.users++
      clock.clear(one.timer)
      let isOver = false
      const leave = () => {
        if (isOver) return
        isOver = true
        if (--one.users > 0 || one.isClosed) return
        if (shared === undefined) one.close()
        else if (settings.idle > 0) one.timer = clock.setTimeout(() => one.close(), settings.idle).unref()
      }
      try {
        return { lane: one.lane ?? (await unlessAborted(one.opening, call.signal)), leave }
      } catch (error) {
        leave()
        throw error
      }
    },
    async close() {
      const { all } = places
      for (const one of all) one.close()
      await Promise.all(all.map(({ ended }) => ended))
    },
  }
}

export type Sessions = ReturnType<typeof createSessions>
