// How the sessions of this node are used, told to the store now and then: it keeps what is in use, and says which idle
// ones are too many for all nodes together.
import type { Logger } from '../../kernel/log.ts'
import type { SessionBounds } from '../registry.ts'
import type { Session } from '../session.ts'
import type { SessionStore, SessionUse } from './session-store.ts'

/** The store is told this often at most, milliseconds. */
const INTERVAL = 250

export interface MarkSettings {
  readonly store: SessionStore
  readonly bounds: SessionBounds
  readonly log: Logger
  /** Ends a session, unless it is in use after all. */
  readonly evict: (victim: { readonly digest: string; readonly holder: string }) => Promise<void>
}

export interface SessionMarks {
  mark(session: Session, inUse: boolean): void
  /** Tells what is left to tell. */
  close(): Promise<void>
}

export function createSessionMarks({ store, bounds, log, evict }: MarkSettings): SessionMarks {
  const marks = new Map<string, Omit<SessionUse, 'ago'> & { readonly at: number }>()
  let timer: NodeJS.Timeout | undefined

  async function flush() {
    timer = undefined
    const now = performance.now()
    const uses = [...marks.values()].map(({ at, ...use }) => ({ ...use, ago: now - at }))
    marks.clear()
    try {
      const victims = await store.mark(uses, bounds)
      for (const victim of victims) await evict(victim)
      if (victims.length === 0) return
      log.warn({ evicted: victims.length, maxIdle: bounds.maxIdle }, 'ended idle sessions: more than sessions.maxIdle')
    } catch (err) {
      log.debug({ err }, 'the use of sessions could not be told to the store')
    }
  }

  return {
    mark({ digest, holder }, inUse) {
      marks.set(digest, { digest, holder, inUse, at: performance.now() })
      timer ??= setTimeout(() => void flush(), INTERVAL).unref()
    },
    async close() {
      clearTimeout(timer)
      if (marks.size > 0) await flush()
    },
  }
}
