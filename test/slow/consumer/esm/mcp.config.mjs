import { defineConfig } from 'mcp-host'
import { repeat } from './tools.mjs'

export default defineConfig({
  server: { name: 'consumer', version: '1.0.0' },
  http: { port: 0 },
  toolsets: { all: [repeat] },
  routes: { '/': { toolsets: 'all' } },
  plugins: { 'transport-streamable': {} },
})
