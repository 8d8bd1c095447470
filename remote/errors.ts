// Errors of the MCP client engine.
import { isTooDeep } from './messages.ts'

/**
 * - `rpc`: the server sent a JSON-RPC error: `code`, `message` and `data` are the server's
 * - `refused`: an HTTP status without a JSON-RPC error; `status` has it, `challenge` the `WWW-Authenticate` header
 * - `unreachable`: no connection
 * - `lost`: the connection, process or session ended before the response
 * - `timeout`, `cancelled`: by the options of the request
 * - `too-large`: a message is larger than the limit
 * - `invalid`: the server sent an invalid MCP message
 * - `closed`: the connection was closed here
 */
export type RemoteReason =
  | 'rpc'
  | 'refused'
  | 'unreachable'
  | 'lost'
  | 'timeout'
  | 'cancelled'
  | 'too-large'
  | 'invalid'
  | 'closed'

type ErrorDetails = Partial<
  Pick<RemoteError, 'code' | 'data' | 'status' | 'challenge' | 'executed' | 'output'> & { readonly cause: unknown }
>

export class RemoteError extends Error {
  readonly reason: RemoteReason
  /** The code of a JSON-RPC error. */
  readonly code: number
  readonly data: unknown
  readonly status: number | undefined
  readonly challenge: string | undefined
  /** `no`: the server did not execute the request. `maybe`: unknown. */
  readonly executed: 'no' | 'maybe'
  /** The last output of the program. Only for its operator: it can contain secrets. */
  readonly output: string | undefined

  constructor(reason: RemoteReason, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'RemoteError'
    this.reason = reason
    this.code = details.code ?? -32_000
    this.data = isTooDeep(details.data) ? undefined : details.data
    this.status = details.status
    this.challenge = details.challenge
    this.executed = details.executed ?? 'no'
    this.output = details.output
  }
}

export const isTooLarge = (error: unknown): boolean => error instanceof RemoteError && error.reason === 'too-large'

/** Escapes control and invisible characters of a server's text. */
export const printable = (text: string): string =>
  text.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** The message for the operator of a program, with the program's last output. `shorten`: shortens the output. */
export function operatorText(error: unknown, shorten = (output: string) => output): string {
  const message = error instanceof Error ? error.message : String(error)
  const printed = error instanceof RemoteError ? error.output : undefined
  return printed === undefined ? message : `${message}; it printed: ${shorten(printed)}`
}
