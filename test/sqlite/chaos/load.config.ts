// The config of workers under chaos: the load of test/cluster/chaos and a tool that announces its changes. The store is
// the file STORE_FILE, or Redis with REDIS_URL for comparison.
import { defineConfig, defineTool } from 'mcp-host'
import { addressOf } from '../../cluster/chaos/load.ts'
import { loadToolset } from '../../cluster/chaos/toolset.ts'

const { STORE_FILE: file, REDIS_URL: url } = process.env

const announce = defineTool({
  name: 'announce',
  input: { type: 'object', properties: { number: { type: 'integer' } }, required: ['number'] },
  handler({ number }, { host }) {
    host.resourceUpdated(addressOf(number))
    return 'announced'
  },
})

export default defineConfig({
  server: { name: 'chaos', version: '1.0.0' },
  http: { port: Number(process.env['PORT'] ?? 0), keepAliveTimeout: '10s' },
  secrets: ['a secret for tests, long enough to be one'],
  sessions: { maxPerOwner: 1_000 },
  toolsets: { load: loadToolset, announce: [announce] },
  routes: { '/mcp': { toolsets: 'load' }, '/announce': { toolsets: 'announce' } },
  plugins: {
    'transport-streamable': {},
    ...(url === undefined ? { 'store-sqlite': { file: String(file) } } : { 'cluster-redis': { url } }),
  },
})
