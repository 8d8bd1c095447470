// The config of the nodes for client journeys: `/mcp` for sessions, `/modern` for clients of 2026-07-28, and `/guarded`
// for users with tokens of the issuer in ISSUER. `/far` has the tools of the legacy server in UPSTREAM.
import { defineConfig } from 'mcp-host'
import { journey } from '../../fixtures/journey-toolset.ts'
import { sessionToolset } from '../../fixtures/session-toolset.ts'
import { createNodeHalf } from './remote-puppet.ts'

const { puppet, addTool, strings } = createNodeHalf()
const issuer = process.env['ISSUER']
const upstream = process.env['UPSTREAM']
const far = { url: String(upstream), prefix: '', revision: '2025-11-25' as const, asks: { roots: true } }

export const AUDIENCE = 'https://mcp.example'

export default defineConfig({
  server: { name: 'test-host', version: '1.2.3' },
  http: { port: Number(process.env['PORT'] ?? 0), keepAliveTimeout: '10s' },
  redis: { url: String(process.env['REDIS_URL']) },
  toolsets: { session: [...sessionToolset.filter(({ name }) => name !== 'add_tool'), puppet, addTool], journey },
  routes: {
    '/mcp': { toolsets: 'session' },
    '/modern': { toolsets: 'journey' },
    ...(issuer !== undefined && { '/guarded': { toolsets: 'session', authorize: true as const } }),
    ...(upstream !== undefined && { '/far': { toolsets: 'far' } }),
  },
  plugins: {
    'transport-streamable': {},
    'transport-sse': {},
    'cluster-redis': {},
    ...(issuer !== undefined && { 'auth-jwt': { authority: issuer, audience: AUDIENCE } }),
    ...(upstream !== undefined && { upstream: { servers: { far } } }),
    strings,
  },
})
