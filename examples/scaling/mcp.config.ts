// The config of all nodes behind the load balancer (nginx.conf). Any node serves any session.
import { defineConfig } from 'mcp-host'

export default defineConfig({
  server: { name: 'acme-tools', version: '1.0.0' },
  http: {
    host: '127.0.0.1',
    port: Number(process.env['PORT'] ?? 3001),
    publicUrl: process.env['PUBLIC_URL'] ?? 'http://127.0.0.1:8080',
    trustProxy: true,
    // Longer than the idle timeout of nginx.
    keepAliveTimeout: '10s',
  },
  // MCP_HOST_SECRETS must be the same for all nodes.
  redis: { url: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379' },
  toolsets: { clock: '../clock/clock.ts' },
  routes: { '/mcp': { toolsets: 'clock' } },
  plugins: { 'transport-streamable': {}, 'cluster-redis': {}, health: {} },
})
