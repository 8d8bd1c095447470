// Endpoints for probes and people: liveness, readiness, and the routes that are served.
import { isLoopback } from '../../core/auth.ts'
import { choice, closed, definePlugin, type InternalHost, words } from '../../core/internal.ts'
import type { HostContext, OptionsOf } from '../../core/plugin.ts'
import { createTokenCheck } from '../families/separate-port/index.ts'

interface DetailSettings {
  readonly details: 'local' | 'anyone' | 'nobody'
  readonly token?: string | undefined
}

const PROXY_HEADERS = /^(?:forwarded|via|x-forwarded-.*|x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip)$/

/** True if a Host header names this machine. Another name can also resolve to this machine (DNS rebinding). */
const namesLoopback = (host: string | undefined): boolean =>
  host !== undefined && isLoopback(host.toLowerCase().replace(/:\d*$/, ''))

function isLocal({ req, state }: HostContext): boolean {
  const address = req.socket.remoteAddress?.replace(/^::ffff:/, '')
  if (address === undefined || !isLoopback(address)) return false
  return state.hosts.every(namesLoopback) && !Object.keys(req.headers).some(name => PROXY_HEADERS.test(name))
}

/** True if a local proxy without forwarding headers is likely, whose requests look like those of local users. */
const isHiddenProxyLikely = ({ publicUrl, trustProxy }: InternalHost['config']['http']): boolean =>
  trustProxy === false && publicUrl !== undefined && !isLoopback(new URL(publicUrl).hostname)

function createDetailRule(
  http: InternalHost['config']['http'],
  { details, token }: DetailSettings,
): (ctx: HostContext) => boolean {
  if (details === 'anyone') return () => true
  const hasToken = token === undefined ? () => false : createTokenCheck(token)
  if (details === 'nobody' || isHiddenProxyLikely(http)) return ctx => hasToken(ctx.req.headers)
  return ctx => isLocal(ctx) || hasToken(ctx.req.headers)
}

const pathOption = <const P extends string, const D extends string>(path: P, description: D) =>
  ({
    anyOf: [
      { type: 'string', pattern: '^/' },
      { const: false, description: 'Disables the endpoint.' },
    ],
    default: path,
    description,
  }) as const

const LIVE = '/livez'
const READY = '/readyz'

const OPTIONS = closed(
  {
    path: pathOption('/health', 'Path of the endpoint for operators: readiness, server, routes and states.'),
    live: pathOption(LIVE, 'Path of the liveness endpoint: 200 while the process responds.'),
    ready: pathOption(READY, 'Path of the readiness endpoint: 200 if ready, otherwise 503.'),
    details: choice(
      ['local', 'anyone', 'nobody'],
      'Callers that receive details without `token`. `local`: callers on this machine.',
      { default: 'local' },
    ),
    token: words('Bearer token for access to details: 16 letters and digits or more.', {
      writeOnly: true,
      pattern: '^[\\w.~+/-]{16,}=*$',
      patternErrorMessage: 'at least 16 letters, digits and - . _ ~ + /, such as openssl rand -hex 24 prints',
    }),
  },
  { description: 'Endpoints for liveness and readiness probes.' },
)

export interface HealthOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledHealthOptions extends OptionsOf<typeof OPTIONS, true> {}

export const health = definePlugin<HealthOptions, FilledHealthOptions>({
  options: OPTIONS,
  setup(host, { path, live, ready, ...settings }) {
    const canSeeDetails = createDetailRule(host.config.http, settings)

    function serve(at: string | false, respond: (ctx: HostContext) => void | Promise<void>, defaultPath?: string) {
      if (at === false) return
      const respondUncached = (ctx: HostContext) => {
        ctx.set('Cache-Control', 'no-store')
        return respond(ctx)
      }
      const methods = { GET: respondUncached, HEAD: respondUncached }
      host.endpoint(at, { public: true, methods }, { fallback: at === defaultPath })
    }

    const reportReadiness = (getDetails?: () => object) => async (ctx: HostContext) => {
      const { ready: isReady, ...checks } = await host.checkReadiness()
      ctx.status = isReady ? 200 : 503
      const status = isReady ? 'ready' : 'not ready'
      ctx.body = canSeeDetails(ctx) ? { status, ...getDetails?.(), ...checks } : { status }
    }

    const listRoutes = () => host.routes.map(({ path, toolsets }) => ({ path, toolsets }))
    const describeToolsets = () =>
      Object.fromEntries(
        host.routes.flatMap(({ toolsets }) => toolsets).map(set => [set, host.services.sourceOf(set)?.describe?.()]),
      )
    const reportLive = (ctx: HostContext) => {
      ctx.body = { status: 'live' }
    }
    serve(live, reportLive, LIVE)
    serve(ready, reportReadiness(), READY)
    serve(
      path,
      reportReadiness(() => ({ server: host.config.server, routes: listRoutes(), states: describeToolsets() })),
    )
  },
})
