// Serves the API of api.ts as tools at http://127.0.0.1:3000/mcp.
import { defineConfig } from 'mcp-host'

export default defineConfig({
  server: { name: 'openapi-example', version: '1.0.0' },
  http: { port: Number(process.env['PORT'] ?? 3000) },
  toolsets: {},
  routes: { '/mcp': { toolsets: 'notes' } },
  plugins: {
    'transport-streamable': {},
    openapi: {
      documents: {
        notes: { document: './notes.openapi.yaml', methods: ['get', 'post'], allowHosts: ['127.0.0.1:4000'] },
      },
    },
  },
})
