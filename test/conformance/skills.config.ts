// The config of the Skills scenarios: the skills of the example. skills-leg.ts starts it in the root of the repository.
import { resolve } from 'node:path'
import { defineConfig } from 'mcp-host'

export default defineConfig({
  server: { name: 'mcp-host-conformance', version: '1.0.0' },
  http: { port: Number(process.env['PORT'] ?? 0) },
  toolsets: { none: [] },
  routes: { '/mcp': { toolsets: ['none'] } },
  plugins: { 'transport-streamable': {}, skills: { folder: resolve('examples/skills/skills') } },
})
