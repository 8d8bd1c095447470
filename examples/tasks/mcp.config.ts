// Three tools that take long, at http://127.0.0.1:3000/mcp: their calls become tasks for clients that know them.
import { defineConfig } from 'mcp-host'

export default defineConfig({
  server: { name: 'tasks-example', version: '1.0.0' },
  http: { port: Number(process.env['PORT'] ?? 3000) },
  toolsets: { months: './month-tools.ts' },
  routes: { '/mcp': { toolsets: ['months'] } },
  // Tasks are in this process: a restart loses them. From Node 22.13 on `'store-sqlite': { file: './state/mcp-host.db' }` keeps them.
  plugins: { 'transport-streamable': {}, tasks: { pollInterval: '500ms' } },
})
