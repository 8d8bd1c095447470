// Errors for sessions and events that do not exist or are not available yet.
import { addErrorKinds, errorKind, HostError } from '../http/errors.ts'
import type { RequestId } from '../mcp/wire/protocol.ts'

declare module '../http/errors.ts' {
  interface ErrorKinds {
    sessionIdMissing: ErrorKind
    sessionNotFound: ErrorKind
  }
}

// The codes of the official SDKs.
addErrorKinds({
  sessionIdMissing: errorKind(400, -32000, 'Session id missing', true),
  sessionNotFound: errorKind(404, -32001, 'Session not found'),
})

export const tooManySessions = () =>
  new HostError('tooManyRequests', {
    detail: 'too many sessions; end one with DELETE',
    headers: { 'Retry-After': '60' },
  })

export const sessionNotFound = () => new HostError('sessionNotFound', { detail: 'open a new one with initialize' })

export const notOwner = () => new HostError('forbidden', { detail: 'the session belongs to another user' })

export const restoring = () =>
  new HostError('unavailable', { detail: 'sessions are being restored; try again', headers: { 'Retry-After': '2' } })

export const running = (id: RequestId) =>
  new HostError('invalidRequest', { detail: `request ${JSON.stringify(id)} is already running` })

export const maybeRunning = (id: RequestId) =>
  new HostError('unavailable', {
    detail: `the node that may be running the request ${JSON.stringify(id)} does not respond; try again`,
    headers: { 'Retry-After': '1' },
  })

export const cannotResume = () =>
  new HostError('invalidRequest', { detail: 'this Last-Event-ID does not belong to this session' })

export const eventsExpired = () =>
  new HostError('sessionNotFound', {
    detail: 'events after this Last-Event-ID were deleted; open a new session with initialize',
  })

/** Creates the error for clients while a store does not respond. `why` is for the log. */
export const storeUnavailable = (why: { readonly cause: unknown } | { readonly reason: string }): HostError =>
  new HostError('unavailable', {
    detail: 'the session store is not available; try again',
    headers: { 'Retry-After': '2' },
    ...why,
  })
