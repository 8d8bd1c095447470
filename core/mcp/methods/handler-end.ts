// What the three kinds of handler have in common once they ran: a value, or something thrown.

import { HostError } from '../../http/errors.ts'
import { ToolError } from '../tool-error.ts'

/** Maps the end of `run`, without a promise where the handler needed none. */
export function afterHandler(
  run: () => unknown,
  succeeded: (value: unknown) => object | Promise<object>,
  failed: (error: unknown) => object,
): object | Promise<object> {
  try {
    const value = run()
    return value instanceof Promise ? value.then(succeeded).catch(failed) : onValue(succeeded(value), failed)
  } catch (error) {
    return failed(error)
  }
}

const onValue = (value: object | Promise<object>, failed: (error: unknown) => object) =>
  value instanceof Promise ? value.catch(failed) : value

/**
 * What left a handler, as the client is told of it. It answers a request that was well formed, so it rides an HTTP 200,
 * except for what the host itself decided there: a capability that the client lacks, and a login that has ended, whose
 * challenge a client reads with a 401 alone. A ToolError's text is meant for the client; anything else that is no HostError
 * stays as it is, to be logged and hidden.
 */
export function handlerFailure(error: unknown): unknown {
  if (ToolError.is(error)) return new HostError('internal', { detail: error.message }).within200()
  if (!HostError.is(error)) return error
  const isChallenge = error.kind === 'unauthorized' && error.headers?.['WWW-Authenticate'] !== undefined
  return isChallenge || error.kind === 'missingCapability' ? error : error.within200()
}
