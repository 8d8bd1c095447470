// Serves three long-running tools at http://127.0.0.1:3000/mcp. Their calls run as tasks if the client supports tasks.
import { defineConfig } from 'mcp-host'

export default defineConfig({
  server: { name: 'tasks-example', version: '1.0.0' },
  http: { port: Number(process.env['PORT'] ?? 3000) },
  toolsets: { months: './month-tools.ts' },
  routes: { '/mcp': { toolsets: ['months'] } },
  // Tasks are in memory. To keep them across restarts, add store-sqlite (Node.js 22.13).
  plugins: { 'transport-streamable': {}, tasks: { pollInterval: '500ms' } },
})
