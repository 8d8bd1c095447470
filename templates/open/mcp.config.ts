// The config of this server. Every key is typed; `npm run check` reports errors.
import { defineConfig } from 'mcp-host'

export default defineConfig({
  server: { name: 'my-server', version: '0.1.0' },

  // A loopback address: only programs on this machine can call.
  http: { host: '127.0.0.1', port: 3000 },

  // Signs session ids. The first start creates the file; MCP_HOST_SECRETS in the environment takes precedence.
  secrets: { file: './state/secrets' },

  // Serves everything that these files export. New files are added automatically.
  toolsets: { main: './{tools,resources,prompts}/*.ts' },

  // Anyone can call. `npx mcp-host init --protected` creates a server that requires a login.
  routes: { '/mcp': { toolsets: 'main' } },

  plugins: {
    'transport-streamable': {}, // MCP over HTTP, every protocol version since 2025-03-26
    'transport-sse': {}, // the older transport, at /mcp/sse
    health: {}, // GET /livez and /readyz for probes, /health for people
    'store-sqlite': { file: './state/mcp-host.db' }, // keeps sessions across restarts and shares them with `--workers`
  },
})
