// Serves two skills and the clock tools at http://127.0.0.1:3000/mcp.
import { defineConfig } from 'mcp-host'

export default defineConfig({
  server: { name: 'skills-example', version: '1.0.0' },
  http: { port: Number(process.env['PORT'] ?? 3000) },
  toolsets: { clock: '../clock/clock.ts' },
  routes: { '/mcp': { toolsets: ['clock'] } },
  plugins: { 'transport-streamable': {}, skills: { folder: './skills' } },
})
