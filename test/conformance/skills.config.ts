// The config that the suite's scenarios of Skills are run against: the skills of the example. Started by skills-leg.ts, from the
// repository's root.
import { resolve } from 'node:path'
import { defineConfig } from 'mcp-host'

export default defineConfig({
  server: { name: 'mcp-host-conformance', version: '1.0.0' },
  http: { port: Number(process.env['PORT'] ?? 0) },
  toolsets: { none: [] },
  routes: { '/mcp': { toolsets: ['none'] } },
  plugins: { 'transport-streamable': {}, skills: { folder: resolve('examples/skills/skills') } },
})
