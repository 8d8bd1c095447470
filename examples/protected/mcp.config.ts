// A protected server and its authorization server in one process: the whole of OAuth on one machine.
// `npm run demo:auth` starts it; README.md beside this file walks through it.
import { defineConfig, defineTool } from 'mcp-host'

const port = Number(process.env['PORT'] ?? 3000)
const origin = `http://127.0.0.1:${port}`
// In production: your own authorization server, and no `dev-auth-server` below.
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

  // Nobody without a token that has the scope mcp.tools.
  routes: { '/': { toolsets: ['clock', 'admin'], authorize: { scope: 'mcp.tools' }, cors: 'inspector' } },

  plugins: {
    'transport-streamable': {},
    // Signs people in. Everybody may be anybody: it runs on loopback addresses only.
    'dev-auth-server': {
      users: [
        { id: 'ada', name: 'Ada, an administrator', roles: ['admin'] },
        { id: 'bob', name: 'Bob' },
      ],
    },
    // Checks tokens: of this issuer, for this address.
    'auth-jwt': { authority },
    // Tells clients where to sign in and what they may ask for.
    'resource-metadata': { authorizationServers: [authority], scopesSupported: ['mcp.tools', 'mcp.admin'] },
    // Some tools need more. Who calls them without it is told what it lacks, and may come back with it.
    'tool-policy': {
      policies: { admin: { scope: 'mcp.admin', role: 'admin' } },
      rules: { 'clear_*': 'admin' },
    },
    // The page of the MCP Inspector.
    cors: { policies: { inspector: { origins: ['http://localhost:6274'] } } },
  },
})
