// The one writer of error answers outside a transport: whatever is thrown becomes an answer here, and a line in the log.
// A step of the pipeline (core/kernel/pipeline.ts).

import { type IncomingMessage, STATUS_CODES } from 'node:http'
import { Readable } from 'node:stream'
import type Koa from 'koa'
import koaMount from 'koa-mount'
import { blamed, isError } from '../http/describe-thrown.ts'
import { HostError, statusOf } from '../http/errors.ts'
import { requestIdIn, shownUrl } from '../http/request-target.ts'
import { isShownInstead } from '../http/response.ts'
import type { Endpoint, HostContext, HostMiddleware, MountedApp } from './endpoint.ts'
import type { Logger } from './log.ts'

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

/** Its text is for the client where it says so. */
export interface HttpError extends Error {
  readonly expose: boolean
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
}

export function isHttpError(thrown: unknown): thrown is HttpError {
  if (!isError(thrown) || !('expose' in thrown) || typeof thrown.expose !== 'boolean') return false
  return 'status' in thrown && typeof thrown.status === 'number' && thrown.status >= 400 && thrown.status < 600
}

/** What a client reads of it. */
export const textFor = ({ expose, message, status }: HttpError): string =>
  expose ? message : (STATUS_CODES[status] ?? String(status))

/** Koa tells of a connection that its client broke as of anything that fails; of a body that breaks, the connection too. */
export function isClientGone(
  thrown: unknown,
  { req, body }: { readonly req: IncomingMessage; readonly body?: unknown },
) {
  if (!isError(thrown) || !('code' in thrown)) return false
  if (thrown.code === 'ERR_STREAM_PREMATURE_CLOSE') return true
  if (body instanceof Readable && body.errored === thrown) return false
  // Of what is no HTTP there may be several errors on one connection, which keeps the first.
  const isNoHttp = String(thrown.code).startsWith('HPE_') && req.socket.destroyed
  return isNoHttp || thrown === req.socket.errored
}

const apps = new WeakMap<object, Koa>()

/** The app that answers a request; undefined where middleware does. */
export const mountedAppOf = (ctx: object): Koa | undefined => apps.get(ctx)

export const isKoaApp = (value: unknown): value is Koa =>
  typeof value === 'object' && value !== null && 'middleware' in value && Array.isArray(value.middleware)

/** What Koa keeps where somebody chose a status. Not documented, the same since Koa 2. */
interface KoaResponse {
  readonly _explicitStatus?: boolean
}

const isUnanswered = ({ body, respond, response, res }: HostContext): boolean =>
  !(response as KoaResponse)._explicitStatus && (body ?? null) === null && respond !== false && !res.headersSent

/** The app at a fixed path. Its `next()` resolves with Koa's 404; where it leaves that, the host answers it. */
export function serveMounted(path: string, app: MountedApp): HostMiddleware {
  const serve = koaMount(path, app) as HostMiddleware
  return async (ctx, next) => {
    if (isKoaApp(app)) apps.set(ctx, app)
    await serve(ctx, next)
    if (isUnanswered(ctx)) refuseAddress()
  }
}

/** `hint`: what is served elsewhere, as far as anybody may know. */
export const refuseAddress = (hint = ''): never => {
  throw new HostError('notFound', { detail: `nothing is served at this path${hint}` })
}

/** What of an address says whether anybody may know it. */
interface Known {
  readonly kind: string
  readonly route?: { readonly path: string; readonly authorize: unknown } | undefined
}

/** The paths of routes that let anybody in. */
export const openPaths = (served: readonly Known[]): string[] => [
  ...new Set(
    served.flatMap(({ kind, route }) => (kind === 'R' && route && route.authorize === undefined ? route.path : [])),
  ),
]

/** Names in a refusal, and characters of all of them. */
const MAX_HINTS = 20
const MAX_HINT = 500

/** What there is instead, for a refusal; nothing where nobody may know of any. */
export function hintAt(where: string, names: readonly string[]): string {
  const shown = names.slice(0, MAX_HINTS).join(', ').slice(0, MAX_HINT)
  return names.length === 0 ? '' : `; ${where}: ${shown}${names.length > MAX_HINTS ? ', …' : ''}`
}
