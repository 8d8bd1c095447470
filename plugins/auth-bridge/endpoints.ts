// The addresses of the bridge, and what holds for each: clients' endpoints are open to pages of any origin and depend on no
// cookie; people's pages are behind the host's guard.
import { type HostContext, HostError, type PluginHost } from '../../core/index.ts'
import { discoveryPaths, handOver, openToPages } from '../families/oidc-provider/index.ts'
import { type Bridge, sendPage } from './browser/bridge.ts'
import type { Handlers } from './browser/handlers.ts'
import { createLimit } from './limits.ts'
import { RETRY_AFTER, ROUTES } from './places.ts'

/** Loaded and made with the first request. */
export type GetBridge = () => Promise<{ readonly bridge: Bridge; readonly handlers: Handlers }>
type Handler = (ctx: HostContext) => Promise<void>

/** In a minute, of one address. People of one office may have one. */
const MOST_SIGN_INS = 300
const MOST_REGISTRATIONS = 60

function limited(most: number, handler: Handler): Handler {
  const may = createLimit(most)
  return ctx => {
    if (!may(ctx.ip)) throw new HostError('tooManyRequests', { detail: 'too many from this address; wait a minute' })
    return handler(ctx)
  }
}

/** What keeps logins does not answer, or the provider does not. */
const isAway = (error: unknown): error is Error => error instanceof Error && 'status' in error && error.status === 503

function sayAway(ctx: HostContext, { log, pages }: Bridge, err: Error): void {
  log.warn({ err }, 'a page of the bridge cannot be served now')
  const text = 'Something that this service needs does not answer. Load this page again in a moment.'
  ctx.set('Retry-After', RETRY_AFTER)
  sendPage(ctx, pages.message({ title: 'Not now', text, isError: true }), 503)
}

/** A client that names no scope is given what everybody may have (RFC 6749 3.3). */
function nameScope(ctx: HostContext, defaultScope: string): void {
  if (ctx.method !== 'GET' || ctx.path !== ROUTES.authorization || 'scope' in ctx.query) return
  ctx.querystring = `${ctx.querystring}&scope=${encodeURIComponent(defaultScope)}`
}

/** Everything that the bridge serves. `base`: its path; `defaultScope`: of a client that names none. */
export function addEndpoints(host: PluginHost, base: string, getBridge: GetBridge, defaultScope: () => string): void {
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
      const { bridge, handlers } = await getBridge()
      try {
        await handlers[name](ctx, bridge)
      } catch (error) {
        if (!isAway(error)) throw error
        sayAway(ctx, bridge, error)
      }
    }
  const open = { public: true, cors: openToPages }
  const discovery = { ...open, methods: { GET: at('/.well-known/openid-configuration') } }
  for (const path of discoveryPaths(base)) host.endpoint(path, discovery)
  host.endpoint(`${base}${ROUTES.jwks}`, { ...open, methods: { GET: at(ROUTES.jwks) } })
  for (const path of [ROUTES.token, ROUTES.revocation])
    host.endpoint(`${base}${path}`, { ...open, methods: { POST: at(path) } })
  const register = limited(MOST_REGISTRATIONS, at(ROUTES.registration))
  host.endpoint(`${base}${ROUTES.registration}`, { ...open, methods: { POST: register } })
  host.endpoint(`${base}/interaction/:uid`, {
    body: 'form',
    methods: { GET: limited(MOST_SIGN_INS, page('interact')), POST: page('answer') },
  })
  host.endpoint(`${base}/callback`, { methods: { GET: limited(MOST_SIGN_INS, page('comeBack')) } })
  host.endpoint(`${base}/account`, {
    body: 'form',
    methods: { GET: page('showAccount'), POST: page('changeAccount') },
  })
  host.endpoint(`${base}/account/sign-in`, { methods: { GET: limited(MOST_SIGN_INS, page('signInForAccount')) } })
  const authorize = limited(MOST_SIGN_INS, async ctx => {
    nameScope(ctx, defaultScope())
    ctx.set('Referrer-Policy', 'no-referrer')
    ctx.set('X-Frame-Options', 'DENY')
    await serve(ctx)
  })
  host.mount(base, ctx => authorize(ctx))
}
