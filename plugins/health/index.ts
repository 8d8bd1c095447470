// Pages for load balancers and people: whether the process lives, whether it may be sent requests, and what it serves. They
// are no part of MCP. What readiness is made of, plugins name with `host.ready`; core/readiness.ts asks them.
import { type BuiltInOptions, definePlugin, type FilledOptions, type HostContext } from '../../core/index.ts'
import { createDetailRule } from './may-see-details.ts'

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
