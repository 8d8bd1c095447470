// Sessions at a server: opens one for each group of callers that shares it, and ends idle ones.
import { ToolError } from '../../core/index.ts'
import type { Call, Clock, Timer } from '../../core/plugin.ts'
import { holderOf } from '../../core/transport.ts'
import type { Connection, ServerNotification, ServerRequest } from '../../remote/index.ts'
import type { Run } from './run.ts'
import type { ServerSettings } from './settings.ts'

/** A session at a server, with its running calls. */
export interface ServerSession {
  readonly connection: Connection
  readonly runs: Set<Run>
  /** The log level that was last requested from the server. */
  logLevel: string | undefined
}

interface SessionEntry {
  readonly key: string
  session: ServerSession | undefined
  readonly opening: Promise<ServerSession>
  users: number
  timer: Timer | undefined
  isClosed: boolean
}

/** `call`: the call that opens the session. */
type OpenSession = (call: Call, events: SessionEvents) => Promise<Connection>

export interface SessionEvents {
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
  /** Only this machine can reach the host, so anonymous callers count as one user. */
  readonly isLocal: boolean
  readonly open: OpenSession
  /** Receives notifications that belong to no call. */
  readonly onNotification: (notification: ServerNotification) => void
}

type Session = NonNullable<Call['session']>

/** Returns the run that a message of the server belongs to. */
function runOf(owner: unknown, runs: ReadonlySet<Run>): Run | undefined {
  for (const run of runs) if (run === owner) return run
  // All runs of a session have the same user.
  return [...runs].at(-1)
}

export function createSessions({ settings, clock, processes, isLocal, ...parts }: SessionParts) {
  const entries = new Map<string, SessionEntry>()
  const ofSession = new WeakMap<Session, string>()
  let lastSession = 0

  /** Returns undefined if the call gets its own session. */
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

  function close(one: SessionEntry) {
    if (one.isClosed) return
    one.isClosed = true
    clock.clear(one.timer)
    if (entries.get(one.key) === one) entries.delete(one.key)
    if (settings.command) processes.count--
    one.opening.then(({ connection }) => connection.close()).catch(() => undefined)
  }

  function end(key: string) {
    const one = entries.get(key)
    if (one) close(one)
  }

  /** Closes the least recently used idle session if a limit is reached. */
  function makeRoom() {
    const isFull = () => entries.size >= settings.maxSessions || (settings.command && processes.count >= processes.max)
    if (!isFull()) return
    const idle = [...entries.values()].find(({ users }) => users === 0)
    if (idle) close(idle)
    if (isFull()) throw new ToolError(`The server "${settings.name}" has too many sessions. Try again later.`)
  }

  function open(key: string, call: Call): SessionEntry {
    makeRoom()
    const runs = new Set<Run>()
    const events: SessionEvents = {
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
      one.session = { connection, runs, logLevel: undefined }
      return one.session
    })
    const one: SessionEntry = { key, session: undefined, opening, users: 0, timer: undefined, isClosed: false }
    if (settings.command) processes.count++
    entries.set(key, one)
    opening.catch(() => close(one))
    return one
  }

  let lastCall = 0

  return {
    get size() {
      return entries.size
    },
    /** Returns the session for a call. Call `leave` when the call ends. */
    async enter(call: Call): Promise<{ readonly session: ServerSession; leave(): void }> {
      const shared = keyOf(call)
      const key = shared ?? `call ${++lastCall}`
      const one = entries.get(key) ?? open(key, call)
      // Moves the session to the end: the least recently used session is closed first.
      entries.delete(key)
      entries.set(key, one)
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
        return { session: await one.opening, leave }
      } catch (error) {
        leave()
        throw error
      }
    },
    async close() {
      const all = [...entries.values()]
      for (const one of all) close(one)
      await Promise.allSettled(all.map(({ opening }) => opening.then(({ connection }) => connection.close())))
    },
  }
}

export type Sessions = ReturnType<typeof createSessions>
