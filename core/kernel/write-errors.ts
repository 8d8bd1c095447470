// The one writer of error answers outside a transport: whatever is thrown becomes an answer here, and a line in the log.
// A step of the pipeline (core/kernel/pipeline.ts).
import { blamed } from '../http/describe-thrown.ts'
import { HostError, statusOf } from '../http/errors.ts'
import { isClientGone, isHttpError, textFor } from '../http/http-error.ts'
import { requestIdIn } from '../http/request-id.ts'
import { shownUrl } from '../http/shown-url.ts'
import { isShownInstead } from '../http/visit.ts'
import type { Endpoint, HostContext } from './endpoint.ts'
import type { Logger } from './log.ts'
import { mountedAppOf } from './mounted-app.ts'

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
  const requestId = requestIdIn(ctx.req.headers)
  if (kind === 'hostNotAllowed' || kind === 'originNotAllowed') {
    log.warn({ refused: kind, detail, path: shownPath(ctx), ip: ctx.ip, requestId, ...fix }, 'refused a request')
  } else {
    log.debug({ refused: kind, detail, path: shownPath(ctx), requestId }, 'refused a request')
  }
}

type TellFailure = (thrown: unknown, ctx?: HostContext) => void

/** Puts what failed into the log, once a request, and tells the `error` listeners of the mounted app that it came from. */
export function createFailureLog(log: Logger): TellFailure {
  const told = new WeakMap<object, unknown>()
  const isToClient = (thrown: unknown) => isHttpError(thrown) && thrown.expose && thrown.status < 500

  function tellApp(thrown: unknown, ctx: HostContext) {
    const app = mountedAppOf(ctx)
    try {
      if (app && app.listenerCount('error') > 0) app.emit('error', thrown, ctx)
    } catch (err) {
      log.error({ err, path: shownPath(ctx) }, 'a listener for errors of a mounted app failed')
    }
  }

  return (err, ctx) => {
    if (!ctx) return log.error({ err }, 'a request failed')
    if (HostError.is(err)) return logRefusal(log, ctx, err)
    // Of one that breaks off, Koa tells twice.
    if (told.has(ctx) && told.get(ctx) === err) return
    told.set(ctx, err)
    const fields = { err, ...blamed(err), path: shownPath(ctx), requestId: requestIdIn(ctx.req.headers) }
    if (isClientGone(err, ctx)) return log.debug(fields, 'a client left before its answer was over')
    if (!isToClient(err)) log.error(fields, 'a request failed')
    tellApp(err, ctx)
  }
}

export interface ErrorWriterSettings {
  readonly tellFailure: TellFailure
  /** The body of an error answer, as JSON. */
  readonly encode: (error: HostError) => string
}

/**
 * Answers what is thrown behind it; headers that were set before, such as CORS, stay. Where the answer has begun, its
 * connection is cut, so that nobody takes what came for all of it; `spare` leaves it alone instead.
 */
export function createErrorWriter(
  { tellFailure, encode }: ErrorWriterSettings,
  { spare = false, page }: { spare?: boolean; page?: Endpoint['page'] } = {},
) {
  function write(ctx: HostContext, thrown: unknown) {
    tellFailure(thrown, ctx)
    if (ctx.res.headersSent) return void (spare || ctx.res.destroy())
    const error = isHttpError(thrown) || HostError.is(thrown) ? thrown : new HostError('internal')
    ctx.respond = true
    ctx.status = statusOf(error)
    if (HostError.is(error)) ctx.state.refusal = error
    for (const [name, value] of Object.entries(error.headers ?? {})) ctx.set(name, value)
    if (page && isShownInstead(ctx, HostError.is(error) ? error.kind : undefined)) return page(ctx)
    ctx.type = HostError.is(error) ? 'json' : 'text'
    ctx.body = HostError.is(error) ? encode(error) : textFor(error)
  }

  return async (ctx: HostContext, next: () => Promise<unknown>) => {
    try {
      await next()
    } catch (thrown) {
      write(ctx, thrown)
    }
  }
}
