// What `npm start` serves: a config to try by hand and to copy. Every key is typed; unknown ones stop the start.
// examples/README.md has a request for each feature.
import { defineConfig } from 'mcp-host'

export default defineConfig({
  // What clients see; `instructions` tell the model what the server is for.
  server: {
    name: 'mcp-host-examples',
    version: '0.1.0',
    instructions: 'Time zones and arithmetic at /mcp, notes at /notes, a savings plan at /savings.',
  },

  // The defaults. Bound to loopback, only local programs and pages can call.
  http: { host: '127.0.0.1', port: 3000 },

  // What signs session ids and seals `requestState` is MCP_HOST_SECRETS of the environment: at least 32 characters. Without
  // it a secret is made at start, and nothing of it holds on another node or after a restart.

  // Clients of 2026-07-28 are served request by request; older ones get sessions, kept in this process.
  // `stateless: true` serves those request by request as well, so that any number of nodes may answer.
  sessions: { idleTimeout: '2h', maxIdle: 10_000 },

  // A toolset is a name for modules; their exports made by defineTool, defineResource and definePrompt are served.
  // Paths are relative to this file.
  toolsets: {
    clock: './examples/clock/clock.ts',
    calculator: './examples/calculator/calculator.ts',
    savings: './examples/apps/savings/savings.ts', // with a page that clients show
    notes: './examples/notes/notes.ts', // kept in examples/notes/notes.json; NOTES_FILE puts them elsewhere
  },

  // Each route is an endpoint of its own and serves its toolsets only.
  routes: {
    '/mcp': { toolsets: ['clock', 'calculator'] },
    '/notes': { toolsets: ['notes'] },
    '/savings': { toolsets: ['savings'] },
    // The path chooses the toolset: /t/calculator serves `calculator`, and /t serves the default.
    '/t/:category?': { toolsets: { param: 'category', of: ['clock', 'calculator'] }, default: ['clock'] },
  },

  // Name -> options; `false` switches one off.
  plugins: {
    'transport-streamable': {}, // MCP over HTTP
    apps: {}, // the pages of tools that have an `app`
    'transport-sse': {}, // the transport of 2024-11-05: GET <route>/sse
    health: {}, // GET /livez and /readyz for probes, /health for people
  },
})
