// The config of the nodes of `npm run scale`: one tool, and one resource that the script announces as changed.
import { defineConfig, defineResource, defineTool } from 'mcp-host'
import { definePlugin } from 'mcp-host/plugin'

const echo = defineTool({
  name: 'echo',
  input: { type: 'object', properties: { text: { type: 'string' } } },
  handler: ({ text }: { text?: string }) => text ?? '',
})
const page = defineResource({ name: 'page', uri: 'page://one', handler: () => 'text' })

const announcer = definePlugin<Record<never, never>>({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup(host) {
    host.onReady(() => {
      process.on('message', () => host.runtime.resourceUpdated('page://one'))
      process.channel?.unref()
    })
  },
})

export default defineConfig({
  server: { name: 'scale', version: '1.0.0' },
  http: { port: Number(process.env['PORT'] ?? 0) },
  redis: { cluster: String(process.env['REDIS_URL']).split(',') },
  sessions: { maxPerOwner: 1_000_000, maxIdle: 1_000_000 },
  toolsets: { all: [echo, page] },
  routes: { '/mcp': { toolsets: 'all' } },
  plugins: { 'transport-streamable': {}, 'cluster-redis': {}, announcer: announcer() },
})
