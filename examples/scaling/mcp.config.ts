// One of several nodes: every one of them runs this config, and any of them serves any session. nginx.conf is the
// balancer in front; README.md starts all of it on one machine.
import { defineConfig } from 'mcp-host'

export default defineConfig({
  server: { name: 'acme-tools', version: '1.0.0' },
  http: {
    host: '127.0.0.1',
    port: Number(process.env['PORT'] ?? 3001),
    publicUrl: process.env['PUBLIC_URL'] ?? 'http://127.0.0.1:8080',
    trustProxy: true,
    // Longer than nginx keeps an idle connection.
    keepAliveTimeout: '10s',
  },
  // Sign session ids: the same for every node, from MCP_HOST_SECRETS.
  redis: { url: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379' },
  toolsets: { clock: '../clock/clock.ts' },
  routes: { '/mcp': { toolsets: 'clock' } },
  plugins: { 'transport-streamable': {}, 'cluster-redis': {}, health: {} },
})
