// The config of the nodes under chaos: a streaming tool, and resources whose changes the test announces.
import { defineConfig } from 'mcp-host'
import { definePlugin } from 'mcp-host/plugin'
import { addressOf } from './load.ts'
import { loadToolset } from './toolset.ts'

const announcer = definePlugin<Record<never, never>>({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup(host) {
    host.onReady(() => {
      const { runtime } = host
      process.on('message', ({ announce }: { announce: number }) => runtime.resourceUpdated(addressOf(announce)))
      process.channel?.unref()
    })
  },
})

export default defineConfig({
  server: { name: 'chaos', version: '1.0.0' },
  http: { port: Number(process.env['PORT'] ?? 0), keepAliveTimeout: '10s' },
  redis: { url: String(process.env['REDIS_URL']) },
  sessions: { maxPerOwner: 1_000 },
  toolsets: { load: loadToolset },
  routes: { '/mcp': { toolsets: 'load' } },
  plugins: { 'transport-streamable': {}, 'cluster-redis': {}, announcer: announcer() },
})
