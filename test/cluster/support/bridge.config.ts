// The config of nodes with auth-bridge. PROVIDER contains the provider options as JSON, PUBLIC_URL is the URL for
// users.
import { defineConfig, defineTool } from 'mcp-host'

const whoami = defineTool({ name: 'whoami', handler: (_, { user }) => ({ user: user ?? null }) })

export default defineConfig({
  server: { name: 'test-host', version: '1.2.3' },
  http: { port: Number(process.env['PORT'] ?? 0), publicUrl: String(process.env['PUBLIC_URL']) },
  redis: { url: String(process.env['REDIS_URL']), commandTimeout: '2s' },
  toolsets: { all: [whoami] },
  routes: { '/mcp': { toolsets: 'all', authorize: true } },
  plugins: {
    'transport-streamable': {},
    'cluster-redis': {},
    'auth-jwt': {},
    'resource-metadata': { scopesSupported: ['read'] },
    'auth-bridge': {
      provider: JSON.parse(String(process.env['PROVIDER'])),
      allow: { domains: ['acme.example'] },
      clients: { redirects: ['http://127.0.0.1:*/**', 'https://client.example/**'] },
      refreshGrace: '30s',
    },
  },
})
