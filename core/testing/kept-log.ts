// The log of a test's host: nothing is written, everything is kept.
import type { Logger } from '../kernel/log.ts'

/** A line that a host logged: its fields beside `level` and `message`. */
export interface LoggedLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string | undefined
  readonly [field: string]: unknown
}

/** A log whose lines are kept in `lines`, in order. */
export function createKeptLog(): Logger & { readonly lines: LoggedLine[] } {
  const lines: LoggedLine[] = []
  const logger = (bindings: object): Logger => {
    const write = (level: LoggedLine['level']) => (fields: object, message?: string) =>
      void lines.push({ ...bindings, ...fields, level, message })
    return {
      debug: write('debug'),
      info: write('info'),
      warn: write('warn'),
      error: write('error'),
      child: more => logger({ ...bindings, ...more }),
    }
  }
  return Object.assign(logger({}), { lines })
}
