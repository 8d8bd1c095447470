// A page for load balancers and people: whether the host is ready, and what it serves. It is no part of MCP.
import { type BuiltInOptions, definePlugin, type FilledOptions, type HostContext } from '../../core/index.ts'

export type HealthOptions = BuiltInOptions['health']

export const health = definePlugin<HealthOptions, FilledOptions['health']>({
  options: {
    type: 'object',
    description: 'Readiness at a fixed path: 200 when ready, 503 when not.',
    additionalProperties: false,
    properties: {
      path: { type: 'string', pattern: '^/', default: '/health', description: 'Where the page is served.' },
    },
  },
  setup(host, { path }) {
    async function report(ctx: HostContext) {
      const { ready, checks, reasons } = await host.readiness()
      ctx.status = ready ? 200 : 503
      ctx.set('Cache-Control', 'no-store')
      ctx.body = {
        status: ready ? 'ready' : 'not ready',
        server: host.server,
        checks,
        ...(reasons && { reasons }),
        routes: host.routes.map(route => ({ path: route.path, toolsets: route.toolsets })),
      }
    }
    host.endpoint(path, { public: true, methods: { GET: report } })
  },
})
