// A host for 2026-07-28 only: Streamable HTTP without sessions.
import { definePlugin } from '../../core/index.ts'
import { MODERN_REVISION, transportOf } from '../../core/transport.ts'
import { addListen } from '../../plugins/families/per-request/index.ts'
import { createPostHandler } from '../../plugins/transport-streamable/serve.ts'
import { type StartedHost, startHost, type TestConfig } from './start-host.ts'

const modernOnly = definePlugin({
  provides: ['transport'],
  setup(host) {
    host.revisions(() => [MODERN_REVISION])
    host.serving(services => {
      const transport = transportOf(host, services)
      addListen(host, services)
      host.routeEndpoint('', route => ({ methods: { POST: createPostHandler(transport, route) } }))
    })
  },
})

export const startModernHost = (toolsets: TestConfig['toolsets']): Promise<StartedHost> =>
  startHost({
    toolsets,
    routes: { '/mcp': { toolsets: Object.keys(toolsets), stateless: true, listen: true } },
    plugins: { 'modern-only': modernOnly() },
  })
