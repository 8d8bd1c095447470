// The host's log: structured lines on stderr, written by pino. Never a token, a secret or a whole session id.
import { pino } from 'pino'

type Write = (fields: object, message?: string) => void

/** The part of a pino logger that the host uses; any logger of this shape will do. */
export interface Logger {
  debug: Write
  info: Write
  warn: Write
  error: Write
  child(bindings: Record<string, unknown>): Logger
}

/** `verbose` adds debug lines and the stacks of errors; `pid`, where several processes write to one log, is in each line. */
export function createLogger({ verbose = false, pid }: { verbose?: boolean; pid?: number } = {}): Logger {
  const level = verbose ? 'debug' : 'info'
  const err = (error: unknown) =>
    error instanceof Error
      ? { type: error.name, message: error.message, ...(verbose && { stack: error.stack }) }
      : { message: String(error) }
  return pino(
    { level, base: pid === undefined ? null : { pid }, serializers: { err } },
    pino.destination({ dest: 2, sync: true }),
  )
}
