// Answers that are no answers of a call: accepted, refused.

import { type HostContext, HostError } from '../../core/index.ts'
import { encodeError, type RequestId, statusOf } from '../../core/transport.ts'
import { versionOf } from './classify.ts'

/** Answers 202 to what expects no answer of its own. */
export function accept(ctx: HostContext): void {
  ctx.body = null
  ctx.status = 202
}

/** Answers an error as JSON-RPC, with the id of the request where it has one. */
export function refuse(ctx: HostContext, error: HostError, id?: RequestId): void {
  ctx.status = statusOf(error)
  ctx.state.refusal = error
  for (const [name, value] of Object.entries(error.headers ?? {})) ctx.set(name, value)
  ctx.type = 'json'
  ctx.body = encodeError(error, { id, revision: versionOf(ctx.req.headers) })
}

/** Answers what serving a POST threw, with the id of its request where that was read; anything but a HostError is thrown on. */
export function refuseThrown(ctx: HostContext, thrown: unknown, id: RequestId | undefined): void {
  if (!HostError.is(thrown) || ctx.res.headersSent) throw thrown
  ctx.respond = true
  refuse(ctx, thrown, id)
}
