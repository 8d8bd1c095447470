// A protected server and its authorization server in one process. Start it with `npm run demo:auth`; see README.md.
import { defineConfig, defineTool } from 'mcp-host'

const port = Number(process.env['PORT'] ?? 3000)
const origin = `http://127.0.0.1:${port}`
// In production, use your authorization server and remove `dev-auth-server`.
const authority = `${origin}/dev-auth`

const clearCache = defineTool({
  name: 'clear_cache',
  description: 'Clears the cache. Only for administrators.',
  annotations: { destructiveHint: true },
  handler: (_, { user }) => `The cache was cleared for ${user?.subject}.`,
})

export default defineConfig({
  server: { name: 'protected-example', version: '1.0.0' },
  http: { host: '127.0.0.1', port },

  toolsets: { clock: '../clock/clock.ts', admin: [clearCache] },

  // Requires a token with the scope mcp.tools.
  routes: { '/': { toolsets: ['clock', 'admin'], authorize: { scope: 'mcp.tools' }, cors: 'inspector' } },

  plugins: {
    'transport-streamable': {},
    // Signs in anyone as any user. Only allowed on loopback addresses.
    'dev-auth-server': {
      users: [
        { id: 'ada', name: 'Ada, an administrator', roles: ['admin'] },
        { id: 'bob', name: 'Bob' },
      ],
    },
    // Verifies tokens of this issuer for this server.
    'auth-jwt': { authority },
    // Tells clients the authorization server and the available scopes.
    'resource-metadata': { authorizationServers: [authority], scopesSupported: ['mcp.tools', 'mcp.admin'] },
    // Some tools require another scope and role. Calls without the scope get a challenge that names it.
    'tool-policy': {
      policies: { admin: { scope: 'mcp.admin', role: 'admin' } },
      rules: { 'clear_*': 'admin' },
    },
    // For the MCP Inspector.
    cors: { policies: { inspector: { origins: ['http://localhost:6274'] } } },
  },
})
