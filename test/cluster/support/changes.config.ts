// The config of nodes whose tools change subscribed resources, for tests of notifications between nodes.
import { defineConfig, defineResource, defineTool } from 'mcp-host'

const change = defineTool({
  name: 'change',
  input: {
    type: 'object',
    properties: { uris: { type: 'array', maxItems: 1_000, items: { type: 'string' } } },
    required: ['uris'],
  },
  handler({ uris }, { host }) {
    for (const uri of uris) host.resourceUpdated(uri)
    return 'done'
  },
})

const page = defineResource({ name: 'page', uriTemplate: 'page://{name}', handler: () => 'text' })

export default defineConfig({
  server: { name: 'changes', version: '1.0.0' },
  http: { port: Number(process.env['PORT'] ?? 0) },
  redis: { url: String(process.env['REDIS_URL']), commandTimeout: '4s' },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { all: [change, page] },
  routes: { '/': { toolsets: 'all' } },
  plugins: { 'transport-streamable': {}, 'cluster-redis': {} },
})
