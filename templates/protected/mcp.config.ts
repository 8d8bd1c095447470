// The config of this server. Every key is typed; `npm run check` reports errors.
// For a real authorization server, change the lines marked 1, 2 and 3.
import { defineConfig } from 'mcp-host'

export default defineConfig({
  server: { name: 'my-server', version: '0.1.0' },

  // 2: add publicUrl, the URL for clients: { ..., publicUrl: 'https://mcp.example.com' }
  http: { host: '127.0.0.1', port: 3000 },

  // Signs session ids. The first start creates the file; MCP_HOST_SECRETS in the environment takes precedence.
  secrets: { file: './state/secrets' },

  // Serves everything that these files export. New files are added automatically.
  toolsets: { main: './{tools,resources,prompts}/*.ts' },

  // Requires a token with the scope mcp.tools.
  routes: { '/mcp': { toolsets: 'main', authorize: { scope: 'mcp.tools' } } },

  plugins: {
    'transport-streamable': {}, // MCP over HTTP, every protocol version since 2025-03-26
    'transport-sse': {}, // the older transport, at /mcp/sse
    health: {}, // GET /livez and /readyz for probes, /health for people
    'store-sqlite': { file: './state/mcp-host.db' }, // keeps sessions across restarts and shares them with `--workers`

    // 3: delete this line. It signs in anyone as any user: for development, on loopback addresses only.
    'dev-auth-server': { users: [{ id: 'ada' }, { id: 'bob' }] },

    // Verifies tokens for this server.
    // 1: add the URL of your authorization server: { authority: 'https://login.example.com' }
    'auth-jwt': {},
    // Metadata for clients: where to log in, and the available scopes.
    // 1: add authorizationServers: ['https://login.example.com']
    'resource-metadata': { scopesSupported: ['mcp.tools', 'mcp.admin'] },
    // One tool requires another scope. Calls without it get a challenge that names the scope.
    'tool-policy': { policies: { admin: { scope: 'mcp.admin' } }, rules: { server_status: 'admin' } },
  },
})
