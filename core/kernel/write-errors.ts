// Writes and logs all error responses outside of transports, and serves mounted apps.

import { type IncomingMessage, STATUS_CODES } from 'node:http'
import { Readable } from 'node:stream'
import type Koa from 'koa'
import koaMount from 'koa-mount'
import { attributionOf, isError } from '../http/describe-thrown.ts'
import { HostError, type HostErrorKind, knownKind, statusOf } from '../http/errors.ts'
import { redactUrl, requestIdIn } from '../http/request-target.ts'
import type { Endpoint, HostContext, HostMiddleware, MountedApp } from './endpoint.ts'
import type { Logger } from './log.ts'

const MAX_SHOWN_TARGET = 200

function shownPath({ state, req }: HostContext): string {
  if (state.path !== undefined) return state.path
  const [target = ''] = (req.url ?? '').split(/[?#]/, 1)
  return redactUrl(target.slice(0, MAX_SHOWN_TARGET))
}

function logRefusal(log: Logger, ctx: HostContext, { kind, detail, cause }: HostError) {
  const fix = typeof cause === 'string' ? { fix: cause } : {}
  const requestId = requestIdIn(ctx.req.headers)
  if (kind === 'hostNotAllowed' || kind === 'originNotAllowed') {
    log.warn(
      { code: 'MH1224', refused: kind, detail, path: shownPath(ctx), ip: ctx.ip, requestId, ...fix },
      'refused a request',
    )
  } else {
    log.debug({ refused: kind, detail, path: shownPath(ctx), requestId }, 'refused a request')
  }
}

type LogFailure = (thrown: unknown, ctx?: HostContext) => void

export function createFailureLog(log: Logger): LogFailure {
  const isToClient = (thrown: unknown) => isHttpError(thrown) && thrown.expose && thrown.status < 500

  function emitOnApp(thrown: unknown, ctx: HostContext) {
    const { mounted: app } = ctx.state
    try {
      if (app && app.listenerCount('error') > 0) app.emit('error', thrown, ctx)
    } catch (err) {
      log.error({ code: 'MH1312', err, path: shownPath(ctx) }, 'a listener for errors of a mounted app failed')
    }
  }

  return (err, ctx) => {
    if (!ctx) return log.error({ code: 'MH1311', err }, 'a request failed')
    if (HostError.is(err)) return logRefusal(log, ctx, err)
    const { state } = ctx
    if ('reported' in state && state.reported === err) return
    state.reported = err
    const fields = { err, ...attributionOf(err), path: shownPath(ctx), requestId: requestIdIn(ctx.req.headers) }
    if (isClientGone(err, ctx)) return log.debug(fields, 'a client disconnected before the end of its response')
    if (!isToClient(err)) log.error({ code: 'MH1311', ...fields }, 'a request failed')
    emitOnApp(err, ctx)
  }
}

export interface ErrorWriterSettings {
  readonly logFailure: LogFailure
  readonly encode: (error: HostError) => string
}

const acceptedTypes = (accept: string): string[] =>
  accept.split(',').flatMap(range => {
    const [type = '', ...parameters] = range.split(';').map(part => part.trim().toLowerCase())
    return parameters.some(parameter => /^q=0(?:\.0*)?$/.test(parameter)) ? [] : [type]
  })

function isBrowserRequest({ method, headers: { accept = '' } }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const types = acceptedTypes(accept)
  return types.includes('text/html') && !types.includes('text/event-stream')
}

/**
 * True if the page is sent instead of the error. The status is then 200, except for 401. `isFront`: the page of `/`
 * without a route replaces `notFound`.
 */
function replaceWithPage(ctx: HostContext, kind: HostErrorKind | undefined, isFront: boolean): boolean {
  if (ctx.req.method === 'GET' || ctx.req.method === 'HEAD') ctx.vary('Accept')
  if (!isBrowserRequest(ctx.req) || kind === undefined) return false
  if (!(isFront ? kind === 'notFound' : knownKind(kind)?.page)) return false
  if (ctx.status !== 401) {
    ctx.status = 200
    ctx.remove('Allow')
    delete ctx.state.refusal
  }
  return true
}

/**
 * Responds to errors of inner middleware and keeps headers such as CORS. Destroys the connection of a response that has begun,
 * unless `keepOpen` is set.
 */
export function createErrorWriter(
  { logFailure, encode }: ErrorWriterSettings,
  { keepOpen = false, page, isFront = false }: { keepOpen?: boolean; page?: Endpoint['page']; isFront?: boolean } = {},
) {
  async function write(ctx: HostContext, thrown: unknown) {
    logFailure(thrown, ctx)
    if (ctx.res.headersSent) return void (keepOpen || ctx.res.destroy())
    const error = isHttpError(thrown) || HostError.is(thrown) ? thrown : new HostError('internal')
    ctx.respond = true
    ctx.status = statusOf(error)
    if (HostError.is(error)) ctx.state.refusal = error
    for (const [name, value] of Object.entries(error.headers ?? {})) ctx.set(name, value)
    const hasPage = !isFront || ctx.state.path === '/'
    if (page && hasPage && replaceWithPage(ctx, HostError.is(error) ? error.kind : undefined, isFront)) return page(ctx)
    ctx.type = HostError.is(error) ? 'json' : 'text'
    ctx.body = HostError.is(error) ? encode(error) : textFor(error)
  }

  return async (ctx: HostContext, next: () => Promise<unknown>) => {
    try {
      await next()
    } catch (thrown) {
      await write(ctx, thrown)
    }
  }
}

/** An error of http-errors, as thrown by `ctx.throw`. `expose`: the client receives the message. */
interface HttpError extends Error {
  readonly expose: boolean
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
}

function isHttpError(thrown: unknown): thrown is HttpError {
  if (!isError(thrown) || !('expose' in thrown) || typeof thrown.expose !== 'boolean') return false
  return 'status' in thrown && typeof thrown.status === 'number' && thrown.status >= 400 && thrown.status < 600
}

const textFor = ({ expose, message, status }: HttpError): string =>
  expose ? message : (STATUS_CODES[status] ?? String(status))

function isClientGone(thrown: unknown, { req, body }: { readonly req: IncomingMessage; readonly body?: unknown }) {
  if (!isError(thrown) || !('code' in thrown)) return false
  if (thrown.code === 'ERR_STREAM_PREMATURE_CLOSE') return true
  if (body instanceof Readable && body.errored === thrown) return false
  // A connection reports only the first of several parse errors.
  const isParseError = String(thrown.code).startsWith('HPE_') && req.socket.destroyed
  return isParseError || thrown === req.socket.errored
}

export const isKoaApp = (value: unknown): value is Koa =>
  typeof value === 'object' && value !== null && 'middleware' in value && Array.isArray(value.middleware)

/** Undocumented field of Koa 2 and 3: true after a status was set. */
interface KoaResponse {
  readonly _explicitStatus?: boolean
}

const isUnhandled = ({ body, respond, response, res }: HostContext): boolean =>
  !(response as KoaResponse)._explicitStatus && (body ?? null) === null && respond !== false && !res.headersSent

export function serveMounted(path: string, app: MountedApp): HostMiddleware {
  const serve = koaMount(path, app) as HostMiddleware
  return async (ctx, next) => {
    if (isKoaApp(app)) ctx.state.mounted = app
    await serve(ctx, next)
    if (isUnhandled(ctx)) throwNotFound()
  }
}

export const throwNotFound = (hint = ''): never => {
  throw new HostError('notFound', { detail: `nothing is served at this path${hint}` })
}

interface EndpointSummary {
  readonly kind: string
  readonly route?: { readonly path: string; readonly authorize: unknown } | undefined
}

export const openRoutePaths = (served: readonly EndpointSummary[]): string[] => [
  ...new Set(
    served.flatMap(({ kind, route }) => (kind === 'R' && route && route.authorize === undefined ? route.path : [])),
  ),
]

const MAX_HINTS = 20
const MAX_HINT = 500

export function formatHint(where: string, names: readonly string[]): string {
  const shown = names.slice(0, MAX_HINTS).join(', ').slice(0, MAX_HINT)
  return names.length === 0 ? '' : `; ${where}: ${shown}${names.length > MAX_HINTS ? ', …' : ''}`
}
