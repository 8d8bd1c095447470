// The path of a request, in the order it happens: catchErrors, match, guard, CORS, edge, identify, admit, the endpoint.
// Plugins hang their middleware on these points; the order of the points is fixed here and nowhere else.
import Koa from 'koa'
import compose from 'koa-compose'
import { encodeError } from '../mcp/wire.ts'
import type { CrossOrigin, Endpoint, HostContext, HostMiddleware, RequestState } from './endpoint.ts'
import { HostError } from './errors.ts'
import { createForwarded } from './forwarded.ts'
import { createGuard } from './guard.ts'
import type { ResolvedHttp } from './http-settings.ts'
import type { Logger } from './log.ts'
import { createPathTable } from './path-table.ts'
import { readTarget } from './request-target.ts'
import type { Route } from './route.ts'
import { shownUrl } from './shown-url.ts'

/** The points at which plugins add middleware, in the order in which they act. */
export const HOOK_POINTS = ['edge', 'identify', 'admit'] as const
export type HookPoint = (typeof HOOK_POINTS)[number]

/** An endpoint at its path, with the middleware that acts before it. */
export interface Served {
  readonly path: string
  /** Undefined for a fixed path outside every route. */
  readonly route: Route | undefined
  readonly endpoint: Endpoint
  readonly crossOrigin: CrossOrigin | undefined
  readonly middleware: readonly HostMiddleware[]
}

interface Entry {
  readonly route: Route | undefined
  readonly open: boolean
  readonly allowsOrigin: ((origin: string) => boolean) | undefined
  readonly run: (ctx: HostContext) => Promise<unknown>
}

/** What of a request target that names no path goes into a log line. */
const SHOWN_TARGET = 200

/** The path for a log line; of a target without one, what is before its query, where neither user nor password can be. */
function shownPath({ state, req }: HostContext): string {
  if (state.path !== undefined) return state.path
  const [target = ''] = (req.url ?? '').split(/[?#]/, 1)
  return shownUrl(target.slice(0, SHOWN_TARGET))
}

/** The one writer of error answers outside a transport. Headers that were set before, such as CORS, stay. */
function catchErrors(log: Logger) {
  return async (ctx: HostContext, next: () => Promise<unknown>) => {
    try {
      await next()
    } catch (thrown) {
      if (!HostError.is(thrown)) log.error({ err: thrown, path: shownPath(ctx) }, 'a request failed')
      const error = HostError.is(thrown) ? thrown : new HostError('internal')
      logRefusal(log, ctx, error)
      if (ctx.res.headersSent) return void ctx.res.destroy()
      ctx.respond = true
      ctx.status = error.status === 200 ? 400 : error.status
      for (const [name, value] of Object.entries(error.headers ?? {})) ctx.set(name, value)
      ctx.type = 'json'
      ctx.body = encodeError(error)
    }
  }
}

function logRefusal(log: Logger, ctx: HostContext, error: HostError) {
  const { kind, detail, cause } = error
  const fix = typeof cause === 'string' ? { fix: cause } : {}
  if (kind === 'hostNotAllowed' || kind === 'originNotAllowed') {
    log.warn({ refused: kind, detail, path: shownPath(ctx), ip: ctx.ip, ...fix }, 'refused a request')
  } else {
    log.debug({ refused: kind, detail, path: shownPath(ctx) }, 'refused a request')
  }
}

/** Answers 405 with the verbs that the endpoint has. */
function dispatchVerb({ methods }: Endpoint) {
  const table = new Map(Object.entries(methods))
  const allow = [...table.keys()].join(', ')
  return (ctx: HostContext) => {
    const handler = table.get(ctx.method)
    if (!handler) throw new HostError('methodNotAllowed', { detail: ctx.method, headers: { Allow: allow } })
    return handler(ctx)
  }
}

function checkLength({ req }: HostContext, most: number) {
  const length = req.headers['content-length']
  if (length === undefined || Number(length) <= most) return
  // What was declared is not read: the connection ends with the answer.
  throw new HostError('payloadTooLarge', { detail: `at most ${most} bytes`, headers: { Connection: 'close' } })
}

const nothingHere = () => new HostError('notFound', { detail: 'nothing is served at this path' })

/** Refuses what is declared too large, and an address whose parameter names nothing. */
function checkAddress(route: Route | undefined, most: number): HostMiddleware {
  return (ctx, next) => {
    checkLength(ctx, most)
    if (route && !route.serves(ctx.state.params)) throw nothingHere()
    return next()
  }
}

/** The Koa application that serves these endpoints. Throws a StartError where two have one path. */
export function createPipeline(served: readonly Served[], http: ResolvedHttp, log: Logger): Koa<RequestState> {
  const table = createPathTable<Entry>()
  for (const { path, route, endpoint, crossOrigin, middleware } of served) {
    const cors = endpoint.cors ?? crossOrigin?.middleware
    const acts = [...(cors ? [cors] : []), checkAddress(route, http.maxBodySize), ...middleware]
    const run = compose<HostContext>([...(acts as compose.Middleware<HostContext>[]), dispatchVerb(endpoint)])
    table.add(path, { route, open: endpoint.public ?? false, allowsOrigin: crossOrigin?.allows, run })
  }
  const guard = createGuard(http)
  const forwardedBy = createForwarded(http)
  // Koa itself believes no forwarded header: it would take the first address, which the client wrote.
  const app = new Koa<RequestState>()
  app.use(catchErrors(log))
  app.use(ctx => {
    const target = readTarget(ctx.req.url ?? '')
    const found = target && table.match(target.path)
    const { ip, host } = forwardedBy(ctx.req)
    ctx.request.ip = ip
    ctx.state.path = target?.path
    if (!found?.target.open) {
      const hosts = target?.authority === undefined ? [host] : [host, target.authority]
      guard({ hosts, origin: ctx.req.headers.origin, alsoAllowed: found?.target.allowsOrigin })
    }
    if (!found) {
      checkLength(ctx, http.maxBodySize)
      throw nothingHere()
    }
    // Whoever reads the path by another name, such as ctx.path, reads the same.
    ctx.req.url = target.path + target.search
    if (found.target.route) ctx.state.route = found.target.route
    ctx.state.params = found.params
    return found.target.run(ctx)
  })
  app.silent = true
  return app
}
