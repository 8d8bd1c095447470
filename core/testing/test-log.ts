// Keeps the log lines and the changes of a test host.
import type { Logger } from '../kernel/log.ts'
import type { ChangeBus } from '../mcp/definitions/change-bus.ts'

/** A log line of a host. */
export interface LoggedLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string | undefined
  readonly [field: string]: unknown
}

export function createTestLog(): Logger & { readonly lines: LoggedLine[] } {
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
  // `limitLog` suppresses no lines at this level.
  return Object.assign(logger({}), { lines, level: 'debug' })
}

export interface RecordedChange {
  readonly changed: 'tools' | 'resources' | 'prompts' | 'resource'
  readonly uri?: string
}

/** Adds changes to `list` until the returned function is called. */
export function recordChanges(bus: Pick<ChangeBus, 'subscribe'>, list: RecordedChange[]): () => void {
  return bus.subscribe(change => {
    if (change.kind === 'missed') return
    list.push(change.kind === 'resource' ? { changed: 'resource', uri: change.uri } : { changed: change.kind })
  })
}
