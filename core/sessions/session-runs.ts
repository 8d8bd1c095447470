// The config's `runSession` around sessions: begun before a session is used, waited for when the host closes.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { HostError } from '../http/errors.ts'
import type { Logger } from '../kernel/log.ts'
import type { Session } from './session.ts'
import { shortId } from './session-id.ts'

export interface SessionRuns {
  /** Resolves once `runSession` called `run`; rejects with what it throws before. */
  start(session: Session, restored?: boolean): Promise<void>
  /** Gives each up to `patience` milliseconds to clean up. */
  close(patience: number): Promise<void>
}

/** `end` ends a session whose `runSession` failed. */
export function createSessionRuns(log: Logger, end: (session: Session, reason: Error) => void): SessionRuns {
  const runs = new Set<Promise<void>>()
  return {
    async start(session, restored = false) {
      if (!session.offer.spansRun) return
      const over = new Promise<void>(resolve => session.onRunOver(resolve))
      await new Promise<void>((resolve, reject) => {
        let begun = false
        const body = () => {
          begun = true
          resolve()
          return over
        }
        const run = session.offer.run(body, restored).catch(err => {
          reject(err)
          if (begun) log.error({ err, session: shortId(session.id) }, 'runSession failed')
          end(session, new Error('runSession failed'))
        })
        runs.add(run)
        void run.then(() => runs.delete(run))
      })
      // Whoever asked for the session is to hear of a runSession that fails at once.
      await nextTurn()
      if (session.disposed) throw new HostError('internal')
    },
    async close(patience) {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise(resolve => {
        timer = setTimeout(resolve, patience)
      })
      await Promise.race([Promise.all(runs), late])
      clearTimeout(timer)
      if (runs.size > 0) log.warn({ runs: runs.size }, 'left without waiting for runSession any longer')
    },
  }
}
