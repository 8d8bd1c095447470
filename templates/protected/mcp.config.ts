// What this server serves, and to whom. Every key is typed; `npm run check` finds what is wrong.
// For a real issuer change the three lines that are marked 1, 2 and 3.
import { defineConfig } from 'mcp-host'

// 1: the address of your authorization server, such as 'https://login.example.com'
const issuer = 'http://127.0.0.1:3000/dev-auth'

export default defineConfig({
  server: { name: 'my-server', version: '0.1.0' },

  // 2: add publicUrl, how clients reach this server: { ..., publicUrl: 'https://mcp.example.com' }
  http: { host: '127.0.0.1', port: 3000 },

  // Signs session ids. The first start creates the file; MCP_HOST_SECRETS in the environment takes precedence.
  secrets: { file: './state/secrets' },

  // All that these files export is served; a new one is picked up by itself.
  toolsets: { main: './{tools,resources,prompts}/*.ts' },

  // Nobody without a token that has the scope mcp.tools.
  routes: { '/mcp': { toolsets: 'main', authorize: { scope: 'mcp.tools' } } },

  plugins: {
    'transport-streamable': {}, // MCP over HTTP, every revision since 2025-03-26
    'transport-sse': {}, // the older transport, at /mcp/sse
    health: {}, // GET /livez and /readyz for probes, /health for people
    'store-sqlite': { file: './state/mcp-host.db' }, // keeps sessions across restarts and shares them with `--workers`

    // 3: delete this line. It lets everybody in as anybody: for development, on loopback addresses only.
    'dev-auth-server': { users: [{ id: 'ada' }, { id: 'bob' }] },

    // Checks tokens: of this issuer, for this server.
    'auth-jwt': { authority: issuer },
    // Tells clients where to log in, and what they may ask for.
    'resource-metadata': { authorizationServers: [issuer], scopesSupported: ['mcp.tools', 'mcp.admin'] },
    // One tool needs more. Who calls it without that is told what is missing, and may come back with it.
    'tool-policy': { policies: { admin: { scope: 'mcp.admin' } }, rules: { server_status: 'admin' } },
  },
})
