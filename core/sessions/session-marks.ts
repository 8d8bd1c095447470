// How the sessions of this node are used, told to the store: it keeps what is in use, and says which idle ones are too
// many. A store in this process is told at once, a shared one now and then.
import type { Timer } from '../http/clock.ts'
import type { Session } from './session.ts'
import type { SessionUse, Victim } from './session-store.ts'
import type { ThisNode } from './this-node.ts'

/** A shared store is told this often at most, milliseconds. */
const INTERVAL = 250
/** Evictions are logged this often at most, milliseconds. */
const LOG_INTERVAL = 10_000

export interface SessionMarks {
  mark(session: Session, inUse: boolean): void
  /** Tells what is left to tell. */
  close(): Promise<void>
}

/** `evict` ends a session, unless it is in use after all. */
export function createSessionMarks(node: ThisNode, evict: (victim: Victim) => Promise<void>): SessionMarks {
  const { store, bounds, log, clock, figures } = node
  const waiting = new Map<string, Omit<SessionUse, 'ago'> & { readonly at: number }>()
  let timer: Timer | undefined
  let evicted = 0
  let loggedAt = Number.NEGATIVE_INFINITY

  const fail = (err: unknown) => log.debug({ err }, 'the use of sessions could not be told to the store')

  function logEvictions(victims: number) {
    evicted += victims
    figures.evicted(victims)
    if (clock.monotonic() - loggedAt < LOG_INTERVAL) return
    loggedAt = clock.monotonic()
    log.warn(
      { evicted, maxIdle: bounds.maxIdle },
      'ended idle sessions: more than sessions.maxIdle, or than there is room for',
    )
    evicted = 0
  }

  async function evictAll(victims: readonly Victim[]) {
    for (const victim of victims) await evict(victim).catch(fail)
    logEvictions(victims.length)
  }

  function tell(uses: readonly SessionUse[]): Promise<void> | undefined {
    const told = store.mark(uses, bounds)
    if (told instanceof Promise) return told.then(victims => (victims.length > 0 ? evictAll(victims) : undefined))
    return told.length > 0 ? evictAll(told) : undefined
  }

  async function flush() {
    timer = undefined
    const now = clock.monotonic()
    const uses = [...waiting.values()].map(({ at, ...use }) => ({ ...use, ago: now - at }))
    waiting.clear()
    await tell(uses)?.catch(fail)
  }

  return {
    mark({ digest, holder }, inUse) {
      if (!store.shared) return void tell([{ digest, holder, inUse, ago: 0 }])?.catch(fail)
      waiting.set(digest, { digest, holder, inUse, at: clock.monotonic() })
      timer ??= clock.setTimeout(() => void flush(), INTERVAL).unref()
    },
    async close() {
      clock.clear(timer)
      if (waiting.size > 0) await flush()
    },
  }
}
