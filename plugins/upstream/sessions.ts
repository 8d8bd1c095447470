// Sessions at a server: who shares one, and when it ends.
import { ToolError } from '../../core/index.ts'
import type { Call, Clock, Timer } from '../../core/plugin.ts'
import { holderOf } from '../../core/transport.ts'
import type { Connection, ServerNotification, ServerRequest } from '../../remote/index.ts'
import type { Run } from './run.ts'
import type { ServerSettings } from './settings.ts'

/** A connection with its running calls. */
export interface Lane {
  readonly connection: Connection
  readonly runs: Set<Run>
  /** The level that the server was last asked for. */
  logLevel: string | undefined
}

interface Kept {
  readonly key: string
  lane: Lane | undefined
  readonly opening: Promise<Lane>
  users: number
  timer: Timer | undefined
  isClosed: boolean
}

/** `call`: the first one. */
type OpenLane = (call: Call, events: LaneEvents) => Promise<Connection>

export interface LaneEvents {
  onRequest(request: ServerRequest): Promise<Record<string, unknown>>
  onNotification(notification: ServerNotification): void
  onClosed(): void
}

/** Counts processes of all servers. */
export interface ProcessLimit {
  readonly max: number
  count: number
}

interface SessionParts {
  readonly settings: Pick<ServerSettings, 'name' | 'sessions' | 'maxSessions' | 'idle' | 'command'>
  readonly clock: Clock
  readonly processes: ProcessLimit
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

export function createSessions({ settings, clock, processes, isLocal, ...parts }: SessionParts) {
  const kept = new Map<string, Kept>()
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

  function close(one: Kept) {
    if (one.isClosed) return
    one.isClosed = true
    clock.clear(one.timer)
    if (kept.get(one.key) === one) kept.delete(one.key)
    if (settings.command) processes.count--
    one.opening.then(({ connection }) => connection.close()).catch(() => undefined)
  }

  function end(key: string) {
    const one = kept.get(key)
    if (one) close(one)
  }

  /** Closes the session without calls that was used first. */
  function makeRoom() {
    const isFull = () => kept.size >= settings.maxSessions || (settings.command && processes.count >= processes.max)
    if (!isFull()) return
    const idle = [...kept.values()].find(({ users }) => users === 0)
    if (idle) close(idle)
    if (isFull()) throw new ToolError(`The server "${settings.name}" has too many sessions. Try again later.`)
  }

  function open(key: string, call: Call): Kept {
    makeRoom()
    const runs = new Set<Run>()
    const events: LaneEvents = {
      onRequest: request => {
        const run = runOf(request.owner, runs)
        return run ? run.ask(request).then(answer => ({ ...answer })) : Promise.reject(new Error('no call is running'))
      },
      onNotification: notification => {
        if (notification.method === 'notifications/message') runOf(notification.owner, runs)?.log(notification.params)
        else parts.onNotification(notification)
      },
      onClosed: () => close(one),
    }
    const opening = parts.open(call, events).then(connection => {
      one.lane = { connection, runs, logLevel: undefined }
      return one.lane
    })
    const one: Kept = { key, lane: undefined, opening, users: 0, timer: undefined, isClosed: false }
    if (settings.command) processes.count++
    kept.set(key, one)
    opening.catch(() => close(one))
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
      kept.delete(key)
      kept.set(key, one)
      one.users++
      clock.clear(one.timer)
      let isOver = false
      const leave = () => {
        if (isOver) return
        isOver = true
        if (--one.users > 0 || one.isClosed) return
        if (shared === undefined) close(one)
        else if (settings.idle > 0) one.timer = clock.setTimeout(() => close(one), settings.idle).unref()
      }
      try {
        return { lane: await one.opening, leave }
      } catch (error) {
        leave()
        throw error
      }
    },
    async close() {
      const all = [...kept.values()]
      for (const one of all) close(one)
      await Promise.allSettled(all.map(({ opening }) => opening.then(({ connection }) => connection.close())))
    },
  }
}

export type Sessions = ReturnType<typeof createSessions>
