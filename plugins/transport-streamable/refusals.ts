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

/** Runs `serve` and answers what it throws; anything but a HostError goes up. */
export async function refusing(ctx: HostContext, id: RequestId | undefined, serve: () => unknown): Promise<void> {
  try {
    await serve()
  } catch (error) {
    if (!HostError.is(error) || ctx.res.headersSent) throw error
    ctx.respond = true
    refuse(ctx, error, id)
  }
}
