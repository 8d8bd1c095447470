// A config of such a project.
import { defineConfig } from 'mcp-host'

export default defineConfig({
  server: { name: 'consumer', version: '1.0.0' },
  http: { port: 0 },
  toolsets: { all: './tools.ts' },
  routes: { '/': { toolsets: 'all' } },
  plugins: { 'transport-streamable': {} },
})
