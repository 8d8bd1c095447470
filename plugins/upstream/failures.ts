// Converts failures of a server to errors for the caller.
import { HostError, ToolError } from '../../core/index.ts'
import { isObject } from '../../core/plugin.ts'
import { operatorText, RemoteError, type RemoteReason } from '../../remote/index.ts'
import { visibleText } from '../families/texts/index.ts'

const MAX_MESSAGE = 2_000
const MISSING_CAPABILITY = -32_021
const RESOURCE_NOT_FOUND = -32_002
const METHOD_NOT_FOUND = -32_601
const UNSUPPORTED_VERSION = -32_022
const ERROR_LINE = /^\S*(?:Error|Exception)\b/

const truncate = (text: string) => {
  const visible = visibleText(text)
  return visible.length <= MAX_MESSAGE ? visible : `${visible.slice(0, MAX_MESSAGE)}…`
}

/** MCP Apps: the only extension that is forwarded. */
export const UI = 'io.modelcontextprotocol/ui'

export const MAY_BE_EXECUTED = 'The call may have been executed: check before you repeat it.'

/** True for a resource that the server does not have. */
export const isNotFound = (error: unknown): boolean =>
  error instanceof RemoteError &&
  error.reason === 'rpc' &&
  (error.code === RESOURCE_NOT_FOUND ||
    (isObject(error.data) && error.data['uri'] !== undefined && error.code === -32_602))

/** True if the server does not know the item, so its lists have changed. */
export const isUnknownItem = (error: unknown): boolean =>
  error instanceof RemoteError &&
  error.reason === 'rpc' &&
  (error.code === -32_602 || error.code === -32_601) &&
  /unknown|not found|no such|does not exist/i.test(error.message)

/** True if the server has lost the session, and opens no other one of the same protocol version. */
export const isSessionLost = (error: unknown): error is RemoteError =>
  error instanceof RemoteError && error.reason === 'lost' && error.executed === 'no'

/** True for a refusal that can mean that the server has changed its protocol version. */
export const isVersionRefused = (error: unknown): error is RemoteError =>
  isSessionLost(error) ||
  (error instanceof RemoteError &&
    ([UNSUPPORTED_VERSION, METHOD_NOT_FOUND].includes(error.code) || [400, 404, 405].includes(error.status ?? 0)))

/** Some servers send the status with a JSON-RPC error. */
export const isUnauthorized = (error: unknown): boolean => error instanceof RemoteError && error.status === 401

export const isLoginNeeded = (error: unknown): boolean =>
  isUnauthorized(error) || (error instanceof RemoteError && error.reason === 'refused' && error.status === 403)

/** Fixed texts: messages contain URLs, commands and output, which are only for the operator. */
const REASON_TEXTS: Readonly<Record<RemoteReason, string>> = {
  rpc: 'an error response',
  refused: 'the request was refused',
  unreachable: 'no connection',
  lost: 'the connection ended',
  timeout: 'no response in time',
  cancelled: 'the call was cancelled',
  'too-large': 'a message was too large',
  invalid: 'an invalid response',
  closed: 'the connection was closed',
}

/** The reason of a failure, for the log and the operator. */
export const reasonOf = (error: unknown): string => visibleText(operatorText(error))

/** The reason with one line of a longer output, such as a stack trace: its error, or its last line. */
export const shortReasonOf = (error: unknown): string =>
  visibleText(
    operatorText(error, output => {
      const lines = output.split('\n')
      if (lines.length < 3) return output
      return `${lines.find(line => ERROR_LINE.test(line)) ?? lines.at(-1)} (the log has all lines: MH2946)`
    }),
  )

/** The kind of a failure, for callers. */
export function reasonText(error: unknown): string {
  if (!(error instanceof RemoteError)) return 'the connection failed'
  return error.status === undefined ? REASON_TEXTS[error.reason] : `HTTP ${error.status}`
}

/** The error for calls while a server is down. `since`: the start of the outage, ISO 8601. */
export const unavailableError = (name: string, since: string, reason: string): ToolError =>
  new ToolError(`The server "${name}" has been unavailable since ${since} (last error: ${reason}). Try again later.`)

/** Converts a failure of the server `name` to the error for the caller. `since`: the time of the failure, ISO 8601. */
export function toCallError(name: string, error: unknown, since: string): Error {
  if (HostError.is(error) || ToolError.is(error)) return error as Error
  if (!(error instanceof RemoteError)) return error instanceof Error ? error : new Error(String(error))
  const { reason, code, data, status, executed } = error
  const note = executed === 'maybe' ? ` ${MAY_BE_EXECUTED}` : ''
  if (reason === 'rpc' && code === MISSING_CAPABILITY && isObject(data)) {
    const { requiredCapabilities } = data
    const { extensions } = isObject(requiredCapabilities) ? requiredCapabilities : {}
    const [unsupported] = Object.keys(isObject(extensions) ? extensions : {}).filter(id => id !== UI)
    if (unsupported !== undefined)
      return new ToolError(
        `The server "${name}" requires the extension ${truncate(unsupported)}, which is not forwarded.`,
      )
    return new HostError('missingCapability', { detail: truncate(error.message), data: { requiredCapabilities } })
  }
  if (isLoginNeeded(error)) {
    return new ToolError(`The server "${name}" refused the credentials (HTTP ${status}).`)
  }
  if (reason === 'rpc') return new ToolError(truncate(error.message))
  if (reason === 'timeout') return new ToolError(`The server "${name}" did not respond in time.${note}`)
  if (reason === 'too-large') return new ToolError(`The result of the server "${name}" is too large.`)
  if (reason === 'unreachable') return unavailableError(name, since, reasonText(error))
  if (reason === 'lost' || reason === 'closed') {
    const advice = note === '' ? ' Try again later.' : note
    return new ToolError(`The connection to the server "${name}" ended at ${since}.${advice}`)
  }
  return new ToolError(`The server "${name}" did not execute the call (${reasonText(error)}).${note}`)
}
