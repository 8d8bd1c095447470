// The one writer of error answers outside a transport: whatever is thrown becomes an answer here, and a line in the log.
// A step of the pipeline (core/kernel/pipeline.ts).
import type { HostContext } from './endpoint.ts'
import { HostError, statusOf } from './errors.ts'
import type { Logger } from './log.ts'
import { shownUrl } from './shown-url.ts'

/** What of a request target that names no path goes into a log line. */
const SHOWN_TARGET = 200

/** The path for a log line; of a target without one, what is before its query, where neither user nor password can be. */
function shownPath({ state, req }: HostContext): string {
  if (state.path !== undefined) return state.path
  const [target = ''] = (req.url ?? '').split(/[?#]/, 1)
  return shownUrl(target.slice(0, SHOWN_TARGET))
}

function logRefusal(log: Logger, ctx: HostContext, { kind, detail, cause }: HostError) {
  const fix = typeof cause === 'string' ? { fix: cause } : {}
  if (kind === 'hostNotAllowed' || kind === 'originNotAllowed') {
    log.warn({ refused: kind, detail, path: shownPath(ctx), ip: ctx.ip, ...fix }, 'refused a request')
  } else {
    log.debug({ refused: kind, detail, path: shownPath(ctx) }, 'refused a request')
  }
}

/** What `ctx.throw(403, '...')` throws, and other Koa middleware refuses with: its text is meant for the client. */
interface ExposedError extends Error {
  readonly expose: true
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
}

function isExposed(thrown: unknown): thrown is ExposedError {
  if (!(thrown instanceof Error) || !('expose' in thrown) || thrown.expose !== true) return false
  return 'status' in thrown && typeof thrown.status === 'number' && thrown.status >= 400 && thrown.status < 500
}

export interface ErrorWriterSettings {
  readonly log: Logger
  /** The body of an error answer, as JSON. */
  readonly encode: (error: HostError) => string
}

/**
 * Answers what is thrown behind it; headers that were set before, such as CORS, stay. Where the answer has begun, its
 * connection is cut, so that nobody takes what came for all of it; `spare` leaves it alone instead.
 */
export function createErrorWriter({ log, encode }: ErrorWriterSettings, { spare = false } = {}) {
  function write(ctx: HostContext, thrown: unknown) {
    const exposed = isExposed(thrown)
    if (!exposed && !HostError.is(thrown)) log.error({ err: thrown, path: shownPath(ctx) }, 'a request failed')
    const error = exposed || HostError.is(thrown) ? thrown : new HostError('internal')
    if (HostError.is(error)) logRefusal(log, ctx, error)
    if (ctx.res.headersSent) return void (spare || ctx.res.destroy())
    ctx.respond = true
    ctx.status = statusOf(error)
    for (const [name, value] of Object.entries(error.headers ?? {})) ctx.set(name, value)
    ctx.type = HostError.is(error) ? 'json' : 'text'
    ctx.body = HostError.is(error) ? encode(error) : error.message
  }

  return async (ctx: HostContext, next: () => Promise<unknown>) => {
    try {
      await next()
    } catch (thrown) {
      write(ctx, thrown)
    }
  }
}
