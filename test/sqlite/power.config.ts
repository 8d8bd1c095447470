// The config of a host under power cuts: a tool whose numbered progress is stored in the file STORE_FILE.
import { defineConfig } from 'mcp-host'
import { loadToolset } from '../cluster/chaos/toolset.ts'

export default defineConfig({
  server: { name: 'power-cut', version: '1.0.0' },
  http: { port: Number(process.env['PORT'] ?? 0) },
  secrets: ['a secret for tests, long enough to be one'],
  sessions: { maxPerOwner: 10_000 },
  toolsets: { load: loadToolset },
  routes: { '/mcp': { toolsets: 'load' } },
  plugins: { 'transport-streamable': {}, 'store-sqlite': { file: String(process.env['STORE_FILE']) } },
})
