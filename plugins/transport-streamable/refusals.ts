// Answers that are no answers of a call: accepted, refused.
import { encodeError, type HostContext, HostError, type RequestId } from '../../core/index.ts'
import { revisionHint } from './classify.ts'

/** Answers 202 to what expects no answer of its own. */
export function accept(ctx: HostContext): void {
  ctx.body = null
  ctx.status = 202
}

/** Answers an error as JSON-RPC, with the id of the request where it has one. */
export function refuse(ctx: HostContext, error: HostError, id?: RequestId): void {
  ctx.status = error.status
  for (const [name, value] of Object.entries(error.headers ?? {})) ctx.set(name, value)
  ctx.type = 'json'
  ctx.body = encodeError(error, { id, revision: revisionHint(ctx.req.headers) })
}

/** Refusals that an older client is told by HTTP as well: it must sign in, or come back later. */
const STATUS_FOR_ALL: ReadonlySet<number> = new Set([401, 403, 429, 503])

/** The status of an error answer. An older client takes 404 for the end of its session, and 400 for a bug of its own. */
export const answerStatus = ({ status }: HostError, modern: boolean): number =>
  modern || STATUS_FOR_ALL.has(status) ? status : 200

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
