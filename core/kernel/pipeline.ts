// Finds the endpoint of a request and runs the steps of order.ts for it.
import Koa from 'koa'
import compose from 'koa-compose'
import { HostError, type Path, type Report, stopAtFirst, tryReport } from '../http/errors.ts'
import { createGuard, forwardedReader, type ResolvedHttp } from '../http/guard.ts'
import { readTarget } from '../http/request-target.ts'
import { createBodyReader } from './body.ts'
import type { BodyKind, Endpoint, HostContext, HostMiddleware, RequestState, Stage } from './endpoint.ts'
import type { Logger } from './log.ts'
import { type EndpointKind, type HookPoint, type Step, stepsOf } from './order.ts'
import { createPathTable, NO_PARAMS } from './path-table.ts'
import type { Route } from './route.ts'
import {
  createErrorWriter,
  createFailureLog,
  type ErrorWriterSettings,
  formatHint,
  openRoutePaths,
  throwNotFound,
} from './write-errors.ts'

export interface PipelineEndpoint {
  readonly kind: EndpointKind
  readonly route?: Route | undefined
  readonly cors?: HostMiddleware | undefined
  readonly allowsOrigin?: ((origin: string) => boolean) | undefined
  readonly hooks: Readonly<Record<HookPoint, readonly HostMiddleware[]>>
  readonly authenticate?: readonly HostMiddleware[]
  readonly body?: BodyKind | undefined
  readonly methods?: Endpoint['methods']
  readonly page?: Endpoint['page']
  readonly app?: HostMiddleware | undefined
}

export interface ServedEndpoint extends PipelineEndpoint {
  readonly path: string
  readonly plugin: string
  readonly at: Path
  readonly matchesSubpaths?: boolean
}

export interface RequestObserver {
  /** Returns the start time, for `follow`. */
  start(ctx: HostContext): number
  /** `completed` settles when all steps have ended. */
  follow(ctx: HostContext, startedAt: number, completed: Promise<unknown>): void
}

interface PipelineSettings extends Pick<ErrorWriterSettings, 'encode'> {
  readonly http: ResolvedHttp
  readonly log: Logger
  readonly report?: Report
  readonly isTimed?: boolean
  readonly watch?: RequestObserver | undefined
}

type Run = (ctx: HostContext) => Promise<unknown>

function dispatchMethod(methods: Endpoint['methods']): HostMiddleware {
  const table = new Map(Object.entries(methods))
  const allow = [...table.keys()].join(', ')
  return ctx => {
    const handler = table.get(ctx.method)
    if (!handler) throw new HostError('methodNotAllowed', { detail: ctx.method, headers: { Allow: allow } })
    // Transports mark the stages of a POST themselves.
    if (ctx.method !== 'POST') ctx.state.timeline?.mark('handler')
    return handler(ctx)
  }
}

type Check = (ctx: HostContext) => void
type Layer = HostMiddleware | Check[]

function joinChecks(layers: readonly Layer[]): HostMiddleware[] {
  const joined: Layer[] = []
  for (const layer of layers) {
    const last = joined.at(-1)
    if (Array.isArray(layer) && Array.isArray(last)) last.push(...layer)
    else joined.push(layer)
  }
  return joined.map(layer => (Array.isArray(layer) ? runChecks(layer) : layer))
}

const runChecks =
  (checks: readonly Check[]): HostMiddleware =>
  (ctx, next) => {
    for (const check of checks) check(ctx)
    return next()
  }

function createSteps(
  http: ResolvedHttp,
  errors: ErrorWriterSettings,
  served: readonly ServedEndpoint[],
  isTimed: boolean,
): Record<Step, (endpoint: PipelineEndpoint) => readonly Layer[]> {
  const writeErrors = createErrorWriter(errors)
  const writeErrorsBeforeHeaders = createErrorWriter(errors, { keepOpen: true })
  const guard = createGuard(http)
  const readBody = createBodyReader(http.maxBodySize)
  const mark = (stage: Stage): Layer[] => (isTimed ? [[({ state }) => state.timeline?.mark(stage)]] : [])

  return {
    // `next()` never throws, because inner errors are already responses.
    use: ({ hooks }) => hooks.use.flatMap(middleware => [writeErrorsBeforeHeaders, middleware]),
    writeErrors: ({ page, kind }) => [page ? createErrorWriter(errors, { page, isFront: kind === 'N' }) : writeErrors],
    hostOrigin: ({ allowsOrigin }) => [
      [({ state, req }) => guard({ hosts: state.hosts, origin: req.headers.origin, alsoAllowed: allowsOrigin })],
    ],
    cors: ({ cors }) => (cors ? [cors] : []),
    length() {
      const check: Check = ({ req }) => {
        const length = req.headers['content-length']
        if (length === undefined || Number(length) <= http.maxBodySize) return
        throw new HostError('payloadTooLarge', { detail: `at most ${http.maxBodySize} bytes` })
      }
      return [[check]]
    },
    address({ kind, route }) {
      if (kind === 'N') {
        const hint = formatHint('open routes', openRoutePaths(served))
        return [[() => throwNotFound(hint)]]
      }
      if (!route) return []
      // Evaluated per request, because a reload can change the valid parameters.
      const refuse = () => throwNotFound(formatHint(`available at ${route.path}`, route.publicCategories))
      const check: Check = ({ state }) => {
        if (!route.toolsetsFor(state.params)) refuse()
      }
      return [[check]]
    },
    onRequest: ({ hooks }) => hooks.onRequest,
    authenticate: ({ authenticate = [] }) => [...mark('authenticate'), ...authenticate],
    authorize: ({ hooks }) => [...mark('authorize'), ...hooks.authorize],
    body: ({ body }) => [...mark('receive'), ...(body ? [readBody(body), ...mark('handler')] : [])],
    verb: ({ app, methods }) => (app ? [...mark('handler'), app] : methods ? [dispatchMethod(methods)] : []),
  }
}

export async function createPipeline(
  served: readonly ServedEndpoint[],
  notFound: PipelineEndpoint,
  { http, log, encode, report = stopAtFirst, isTimed = false, watch }: PipelineSettings,
): Promise<Koa<RequestState>> {
  const logFailure = createFailureLog(log)
  const steps = createSteps(http, { logFailure, encode }, served, isTimed)
  const compile = (endpoint: PipelineEndpoint): Run =>
    compose<HostContext>(
      joinChecks(
        stepsOf(endpoint.kind).flatMap(step => steps[step](endpoint)),
      ) as unknown as compose.Middleware<HostContext>[],
    )
  const ownerOf = ({ plugin: by, at, path, route }: ServedEndpoint) => ({ by, at, isRoute: path === route?.path })
  const table = createPathTable<{ readonly route: Route | undefined; readonly run: Run }>()
  for (const endpoint of served) {
    const add = endpoint.matchesSubpaths ? table.addMount : table.add
    tryReport(report, () => add(endpoint.path, { route: endpoint.route, run: compile(endpoint) }, ownerOf(endpoint)))
  }
  const runNotFound = compile(notFound)
  const forwardedBy = forwardedReader(http)

  // Koa's own proxy support would use the first address, which the client controls.
  const app = new Koa<RequestState>()
  app.use(ctx => {
    const target = readTarget(ctx.req.url ?? '')
    const found = target && table.match(target.path)
    const { ip, hosts } = forwardedBy(ctx.req)
    ctx.request.ip = ip
    const { state } = ctx
    const startedAt = watch?.start(ctx)
    state.path = target?.path
    state.hosts = target?.authority === undefined ? hosts : [...hosts, target.authority]
    state.params = found?.params ?? NO_PARAMS
    if (target) {
      ctx.req.url = target.path + target.search
      ctx.originalUrl = ctx.req.url
      ctx.request.originalUrl = ctx.req.url
    }
    if (found?.target.route) state.route = found.target.route
    const completed = found ? found.target.run(ctx) : runNotFound(ctx)
    if (startedAt !== undefined) watch?.follow(ctx, startedAt, completed)
    return completed
  })
  app.on('error', logFailure)
  return app
}
