// HTTP endpoints of auth-bridge. Client endpoints allow all origins and use no cookies.
import { HostError } from '../../core/index.ts'
import type { InternalHost } from '../../core/internal.ts'
import type { HostContext, HostMiddleware } from '../../core/plugin.ts'
import { sendPage } from '../families/pages/index.ts'
import type { Handlers } from './browser/handlers.ts'
import { MAX_SIGN_INS, refusePeople } from './browser/sign-in.ts'
import { refuseForeignRequest } from './development/upstream.ts'
import { createAddressLimit } from './limits.ts'
import type { Bridge } from './make.ts'
import { type FilledAuthBridge, isDevelopment } from './options.ts'
import { discoveryPaths, handOver, openToPages, RETRY_AFTER, ROUTES } from './server/oidc-provider.ts'

type GetBridge = () => Promise<{ readonly bridge: Bridge; readonly handlers: Handlers }>
type Handler = (ctx: HostContext) => Promise<void>

const MAX_REGISTRATIONS = 60
const WINDOW = '60'
const MAX_QUERY = 6_000
/** The only paths of oidc-provider for browsers. */
const AUTHORIZATION = /^\/authorize(?:\/[\w-]+)?$/

/** True for a subresource request of another site, which does not count against its address. */
const isPartOfPage = ({ req: { headers } }: HostContext): boolean =>
  headers['sec-fetch-site'] === 'cross-site' && (headers['sec-fetch-dest'] ?? 'document') !== 'document'

const forPeople =
  (handler: Handler): Handler =>
  ctx => {
    if (isPartOfPage(ctx)) throw new HostError('forbidden', { detail: 'another website cannot load this page' })
    if (ctx.querystring.length > MAX_QUERY) throw new HostError('invalidRequest', { detail: 'the query is too long' })
    return handler(ctx)
  }

function refuseRegistration(ctx: HostContext): void {
  ctx.status = 429
  ctx.set('Retry-After', WINDOW)
  ctx.set('Cache-Control', 'no-store')
  const error_description = 'too many registrations from this address; wait a minute'
  ctx.body = { error: 'temporarily_unavailable', error_description }
}

const isAway = (error: unknown): error is Error => error instanceof Error && 'status' in error && error.status === 503

function sayAway(ctx: HostContext, { log, pages }: Bridge, err: Error): void {
  log.warn({ code: 'MH2130', err }, 'cannot serve a page of auth-bridge')
  const text = 'A part of this service is not available. Reload this page in a moment.'
  ctx.set('Retry-After', RETRY_AFTER)
  sendPage(ctx, pages.message({ title: 'Temporarily unavailable', text, isError: true }), 503)
}

function completeScope(ctx: HostContext, { resources }: Bridge): void {
  if (ctx.method !== 'GET' || ctx.path !== ROUTES.authorization) return
  const { scope: requested, max_age: maxAge } = ctx.query
  const scope = requested ?? resources.defaultScope
  if (typeof scope !== 'string') return
  const isWhole = maxAge === undefined || scope.split(' ').includes('openid')
  ctx.query = { ...ctx.query, scope: isWhole ? scope : `openid ${scope}` }
}

export function addEndpoints(host: InternalHost, options: FilledAuthBridge, getBridge: GetBridge): void {
  const { path: base } = options
  const inDevelopment = isDevelopment(options)
  const guard = (ctx: HostContext) => {
    if (inDevelopment) refuseForeignRequest(ctx)
  }
  const serve = handOver(async () => (await getBridge()).bridge.provider)
  const at =
    (path: string): Handler =>
    ctx => {
      ctx.path = path
      return serve(ctx)
    }
  const page =
    (name: keyof Handlers): Handler =>
    async ctx => {
      guard(ctx)
      const { bridge, handlers } = await getBridge()
      try {
        await handlers[name](ctx, bridge)
      } catch (error) {
        if (!isAway(error)) throw error
        sayAway(ctx, bridge, error)
      }
    }
  const limited = (what: string, most: number, handler: Handler, refuse: (ctx: HostContext) => unknown): Handler => {
    const logLimited = (ip: string) =>
      host.log.warn(
        { code: 'MH2131', ip, what, most },
        'too many requests from one address: further ones are refused for a minute',
      )
    const may = createAddressLimit(most, host.clock, logLimited)
    return async ctx => {
      if (may(ctx.ip)) await handler(ctx)
      else await refuse(ctx)
    }
  }
  const loginPage = (what: string, handler: Handler): Handler =>
    forPeople(limited(what, MAX_SIGN_INS, handler, async ctx => refusePeople(ctx, (await getBridge()).bridge)))
  const cors: HostMiddleware = (ctx, next) => {
    guard(ctx)
    return openToPages(ctx, next)
  }
  const open = { public: true, cors }
  const discovery = { ...open, methods: { GET: at('/.well-known/openid-configuration') } }
  for (const path of discoveryPaths(base, host.config.http.publicUrl)) host.endpoint(path, discovery)
  host.endpoint(`${base}${ROUTES.jwks}`, { ...open, methods: { GET: at(ROUTES.jwks) } })
  for (const path of [ROUTES.token, ROUTES.revocation])
    host.endpoint(`${base}${path}`, { ...open, methods: { POST: at(path) } })
  const register = limited('register', MAX_REGISTRATIONS, at(ROUTES.registration), refuseRegistration)
  host.endpoint(`${base}${ROUTES.registration}`, { ...open, methods: { POST: register } })
  host.endpoint(`${base}/interaction/:uid`, {
    body: 'form',
    methods: { GET: loginPage('interaction', page('interact')), POST: page('answer') },
  })
  if (inDevelopment) host.endpoint(`${base}/sign-in`, { methods: { GET: loginPage('sign-in', page('chooseUser')) } })
  host.endpoint(`${base}/callback`, { methods: { GET: loginPage('callback', page('comeBack')) } })
  host.endpoint(`${base}/account`, {
    body: 'form',
    methods: { GET: page('showAccount'), POST: page('changeAccount') },
  })
  host.endpoint(`${base}/account/sign-in`, { methods: { GET: loginPage('account', page('signInForAccount')) } })
  const authorize = loginPage('authorize', async ctx => {
    completeScope(ctx, (await getBridge()).bridge)
    ctx.set('Referrer-Policy', 'no-referrer')
    ctx.set('X-Frame-Options', 'DENY')
    await serve(ctx)
  })
  host.mount(base, async ctx => {
    guard(ctx)
    if (ctx.path === '/' && ctx.method === 'GET') return ctx.redirect(`${new URL(host.url(base)).pathname}/account`)
    if (AUTHORIZATION.test(ctx.path)) await authorize(ctx)
  })
}
