// What this server serves, and to whom. Every key is typed; `npm run check` finds what is wrong.
import { defineConfig } from 'mcp-host'

export default defineConfig({
  server: { name: 'my-server', version: '0.1.0' },

  // On a loopback address only programs of this machine can call.
  http: { host: '127.0.0.1', port: 3000 },

  // Signs session ids. The first start creates the file; MCP_HOST_SECRETS in the environment takes precedence.
  secrets: { file: './state/secrets' },

  // All that these files export is served; a new one is picked up by itself.
  toolsets: { main: './{tools,resources,prompts}/*.ts' },

  // Anybody may call. `npx mcp-host init --protected` shows how to ask for a login.
  routes: { '/mcp': { toolsets: 'main' } },

  plugins: {
    'transport-streamable': {}, // MCP over HTTP, every revision since 2025-03-26
    'transport-sse': {}, // the older transport, at /mcp/sse
    health: {}, // GET /livez and /readyz for probes, /health for people
    'store-sqlite': { file: './state/mcp-host.db' }, // keeps sessions across restarts and shares them with `--workers`
  },
})
