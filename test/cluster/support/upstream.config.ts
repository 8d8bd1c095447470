// The config of nodes with upstream servers: `plain` has one process per node, `asking` one per call, `far` is the server in UPSTREAM.
import { defineConfig, defineTool } from 'mcp-host'

const port = Number(process.env['PORT'] ?? 0)
const program = ['node', String(process.env['PROGRAM']), String(process.env['CALLS']), String(port)]

export default defineConfig({
  server: { name: 'upstream-chaos', version: '1.0.0' },
  http: { port, keepAliveTimeout: '10s' },
  redis: { url: String(process.env['REDIS_URL']) },
  sessions: { maxPerOwner: 1_000 },
  toolsets: { own: [defineTool({ name: 'own', handler: ({ tag }: { tag?: unknown }) => String(tag) })] },
  routes: { '/': { toolsets: ['own', 'plain', 'asking', 'far'] } },
  plugins: {
    'transport-streamable': {},
    'cluster-redis': {},
    upstream: {
      servers: {
        plain: { command: program, sessions: 'shared' },
        asking: { command: program, sessions: 'per-call' },
        far: { url: String(process.env['UPSTREAM']), revision: '2025-11-25' },
      },
      callTimeout: '10s',
      held: { max: 1_000, maxPerUser: 1_000 },
    },
  },
})
