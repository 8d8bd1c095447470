// Pages for load balancers and people: whether the process lives, whether it may be sent requests, and what it serves. They
// are no part of MCP. What readiness is made of, plugins name with `host.ready`; core/readiness.ts asks them.

import { createHash, timingSafeEqual } from 'node:crypto'
import { isLoopback } from '../../core/auth.ts'
import {
  type BuiltInOptions,
  definePlugin,
  type FilledOptions,
  type HostContext,
  type PluginHost,
} from '../../core/index.ts'

interface DetailSettings {
  readonly details: 'local' | 'anyone' | 'nobody'
  readonly token?: string | undefined
}

const digest = (text: string) => createHash('sha256').update(text).digest()

/** Knows the token by `Authorization: Bearer`, in a time that tells nothing of it. */
function createBearerCheck(token: string): (ctx: HostContext) => boolean {
  const expected = digest(token)
  return ({ req }) => {
    const [, given] = /^Bearer +(\S+)$/i.exec(req.headers.authorization ?? '') ?? []
    return given !== undefined && timingSafeEqual(digest(given), expected)
  }
}

/** What proxies add to a request that they pass on. */
const OF_PROXIES = /^(?:forwarded|via|x-forwarded-.*|x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip)$/

/** The host of a Host header is a name of this machine: a page of a foreign one that resolves to it is not (DNS rebinding). */
const namesLoopback = (host: string | undefined): boolean =>
  host !== undefined && isLoopback(host.toLowerCase().replace(/:\d*$/, ''))

function isLocal({ req, state }: HostContext): boolean {
  const address = req.socket.remoteAddress?.replace(/^::ffff:/, '')
  if (address === undefined || !isLoopback(address)) return false
  return state.hosts.every(namesLoopback) && !Object.keys(req.headers).some(name => OF_PROXIES.test(name))
}

/**
 * A proxy on this machine is a loopback peer as well. Where one is to be expected, and by the config none that says for whom
 * it asks, it cannot be told from people.
 */
const isHiddenProxyLikely = ({ publicUrl, trustProxy }: PluginHost['http']): boolean =>
  trustProxy === false && publicUrl !== undefined && !isLoopback(new URL(publicUrl).hostname)

/** Whether a caller may read details. */
function createDetailRule(http: PluginHost['http'], { details, token }: DetailSettings): (ctx: HostContext) => boolean {
  if (details === 'anyone') return () => true
  const hasToken = token === undefined ? () => false : createBearerCheck(token)
  if (details === 'nobody' || isHiddenProxyLikely(http)) return hasToken
  return ctx => isLocal(ctx) || hasToken(ctx)
}

export type HealthOptions = BuiltInOptions['health']

const pathOr = (path: string, description: string) => ({
  anyOf: [
    { type: 'string', pattern: '^/' },
    { const: false, description: 'It is not served.' },
  ],
  default: path,
  description,
})

const TOKEN_SCHEMA = {
  type: 'string' as const,
  writeOnly: true as const,
  pattern: '^[\\w.~+/-]{16,}=*$',
  patternErrorMessage: 'at least 16 letters, digits and - . _ ~ + /, such as openssl rand -hex 24 prints',
  description: 'Who sends it as `Authorization: Bearer` may read the details: 16 letters and digits or more.',
}

const LIVE = '/livez'
const READY = '/readyz'

export const health = definePlugin<HealthOptions, FilledOptions['health']>({
  options: {
    type: 'object',
    description: 'Pages for probes: whether the process lives, and whether the host is ready.',
    additionalProperties: false,
    properties: {
      path: pathOr('/health', 'Where the page for people is: readiness, and what is served.'),
      live: pathOr(LIVE, 'Where liveness is: 200 as long as the process turns.'),
      ready: pathOr(READY, 'Where readiness is: 200 when ready, 503 when not.'),
      details: {
        type: 'string',
        enum: ['local', 'anyone', 'nobody'],
        default: 'local',
        description:
          'Who may read more than the status, beside those who bring the token. `local`: who asks from this machine.',
      },
      token: TOKEN_SCHEMA,
    },
  },
  setup(host, { path, live, ready, ...settings }) {
    const maySeeDetails = createDetailRule(host.http, settings)

    /** At its `standard` path it gives way to whatever else is served there. */
    function serve(at: string | false, answer: (ctx: HostContext) => void | Promise<void>, standard?: string) {
      if (at === false) return
      const answerUncached = (ctx: HostContext) => {
        ctx.set('Cache-Control', 'no-store')
        return answer(ctx)
      }
      const methods = { GET: answerUncached, HEAD: answerUncached }
      host.endpoint(at, { public: true, methods }, { fallback: at === standard })
    }

    const report = (more?: () => object) => async (ctx: HostContext) => {
      const { ready: isReady, ...found } = await host.readiness()
      ctx.status = isReady ? 200 : 503
      const status = isReady ? 'ready' : 'not ready'
      ctx.body = maySeeDetails(ctx) ? { status, ...more?.(), ...found } : { status }
    }

    const routesNow = () => host.routes.map(({ path, toolsets }) => ({ path, toolsets }))
    const liveNow = (ctx: HostContext) => {
      ctx.body = { status: 'live' }
    }
    serve(live, liveNow, LIVE)
    serve(ready, report(), READY)
    serve(
      path,
      report(() => ({ server: host.server, routes: routesNow() })),
    )
  },
})
