// Keeps one connection open for all callers, and reconnects with growing delays after failures.
import type { Clock, Timer } from '../../core/plugin.ts'
import { type Connection, RemoteError } from '../../remote/index.ts'

/** Times are milliseconds since the epoch. */
export type SupervisorState =
  | { readonly status: 'idle' | 'connecting' | 'closed' }
  | { readonly status: 'up'; readonly since: number; readonly connection: Connection }
  /** `crash loop`: too many failures in a short time. */
  | {
      readonly status: 'down' | 'crash loop'
      /** Time of the end of the last connection, or of the first failure. */
      readonly since: number
      readonly error: Error
      readonly failedAt: number
      readonly nextAttempt: number
    }

interface SupervisorOptions {
  /** Opens a connection. `closed` must be called when the server ends the connection. */
  readonly open: (closed: (error: RemoteError) => void) => Promise<Connection>
  /** `get` retries before the delay has passed, at most once a second. For servers with a URL. */
  readonly onDemand?: boolean
  readonly onState?: (state: SupervisorState) => void
  readonly clock: Clock
}

export type Supervisor = ReturnType<typeof createSupervisor>

/** First retry delay, milliseconds. */
const INITIAL_DELAY = 1_000
const MAX_DELAY = 60_000
const WINDOW = 300_000
const LOOP_DELAY = 300_000
/** Maximum failures within the window. */
const MAX_FAILURES = 5

export function createSupervisor({ open, onDemand = false, onState, clock }: SupervisorOptions) {
  let state: SupervisorState = { status: 'idle' }
  let attempt: Promise<Connection> | undefined
  let timer: Timer | undefined
  let failures: number[] = []
  /** Reset when a stable connection fails. */
  let isLoop = false
  let lastFailure = 0
  let downSince: number | undefined

  function setState(next: SupervisorState): void {
    state = next
    onState?.(next)
  }

  function schedule(delay: number): void {
    clock.clear(timer)
    timer = clock.setTimeout(() => void connect().catch(() => undefined), delay).unref()
  }

  function fail(error: Error): void {
    if (state.status === 'closed') return
    const now = clock.now()
    lastFailure = now
    downSince ??= now
    const wasStable = state.status === 'up' && now - state.since >= WINDOW
    if (wasStable) isLoop = false
    failures = [...(wasStable ? [] : failures.filter(at => now - at < WINDOW)), now]
    isLoop ||= !onDemand && failures.length >= MAX_FAILURES
    const maxDelay = Math.min(INITIAL_DELAY * 2 ** (failures.length - 1), MAX_DELAY)
    // Full jitter, so that servers that failed together do not restart together.
    const delay = isLoop ? LOOP_DELAY : Math.round(Math.max(INITIAL_DELAY / 2, Math.random() * maxDelay))
    schedule(delay)
    setState({
      status: isLoop ? 'crash loop' : 'down',
      since: downSince,
      error,
      failedAt: now,
      nextAttempt: now + delay,
    })
  }

  /** `previous`: ends first, because it can hold a port or a lock. */
  async function openOnce(previous?: Connection): Promise<Connection> {
    let connection: Connection | undefined
    let closeError: RemoteError | undefined
    try {
      if (previous) await previous.close()
      if (isClosed()) throw closed()
      clock.clear(timer)
      setState({ status: 'connecting' })
      connection = await open(error => {
        closeError = error
        if (state.status === 'up' && state.connection === connection) fail(error)
      })
      if (closeError) throw closeError
    } catch (error) {
      fail(error as Error)
      throw error
    } finally {
      attempt = undefined
    }
    if (isClosed()) {
      await connection.close()
      throw closed()
    }
    downSince = undefined
    setState({ status: 'up', since: clock.now(), connection })
    return connection
  }

  const isClosed = (): boolean => state.status === 'closed'
  const closed = () => new RemoteError('closed', 'the connection is closed')

  function connect(): Promise<Connection> {
    attempt ??= openOnce()
    return attempt
  }

  return {
    get state() {
      return state
    },
    /** Returns the connection. Rejects at once with the last error until the next attempt. */
    get(): Promise<Connection> {
      if (state.status === 'up') return attempt ?? Promise.resolve(state.connection)
      if (state.status === 'closed') return Promise.reject(closed())
      const isDue = onDemand && clock.now() - lastFailure >= INITIAL_DELAY
      if ((state.status === 'down' || state.status === 'crash loop') && !isDue) return Promise.reject(state.error)
      return connect()
    },
    /** Clears earlier failures and connects now if the server is down. Returns true if a connection attempt is in progress. */
    retry(): boolean {
      if (state.status === 'idle' || state.status === 'up' || state.status === 'closed') return false
      isLoop = false
      failures = []
      connect().catch(() => undefined)
      return true
    },
    /** Replaces the connection. */
    restart(): Promise<Connection> {
      if (state.status === 'up') attempt ??= openOnce(state.connection)
      return attempt ?? this.get()
    },
    /** Reports that the server cannot be reached. Ends the connection and schedules the next attempt. */
    lost(error: RemoteError): void {
      if (state.status !== 'up') return
      const { connection } = state
      fail(error)
      void connection.close().catch(() => undefined)
    },
    /** Ends the connection, and resolves when it has ended. */
    async close(): Promise<void> {
      const previous = state
      const pending = attempt
      clock.clear(timer)
      setState({ status: 'closed' })
      if (previous.status === 'up') await previous.connection.close()
      await pending?.catch(() => undefined)
    },
  }
}
