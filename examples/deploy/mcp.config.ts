// A server as it is deployed: every file below this folder starts it. What differs from place to place comes from the
// environment; secrets may be files, too. Anybody may call what it serves: copied over the config of a protected project it takes
// the login away, so bring yours along (below: a route's `authorize`, and three plugins), or take from here what your own lacks.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'mcp-host'

/** Where systemd (`LoadCredential`) and Docker (`secrets`) put files, each with the name of its secret. */
const FILES = process.env['CREDENTIALS_DIRECTORY'] ?? '/run/secrets'

function secret(name: string): string | undefined {
  const file = join(FILES, name)
  const value = existsSync(file) ? readFileSync(file, 'utf8').trim() : process.env[name]
  // As an example has it, everybody knows it.
  if (value?.includes('CHANGE-ME')) throw new Error(`${name} is still that of the example: make one of your own`)
  return value
}

/** Proxies in front: how many, or their addresses with commas between them. Without one nobody is believed who names a caller. */
function proxies(): false | number | string[] {
  const given = process.env['TRUST_PROXY'] ?? ''
  return /^\d*$/.test(given) ? Number(given) || false : given.split(',').map(each => each.trim())
}

const address = process.env['BIND_ADDRESS'] ?? '127.0.0.1'
const secrets = (secret('MCP_HOST_SECRETS') ?? '').split(',').filter(each => each.trim() !== '')
const redisUrl = process.env['REDIS_URL']
const redisPassword = secret('REDIS_PASSWORD')
const metricsToken = secret('METRICS_TOKEN')
/** A folder that outlives the process: systemd names the one that it made (`StateDirectory`). */
const state = process.env['STATE_DIRECTORY']

export default defineConfig({
  server: { name: 'my-server', version: '0.1.0' },
  http: {
    host: address,
    port: Number(process.env['PORT'] ?? 3000),
    // How clients reach it; another Host is refused. Probes ask /livez and /readyz by any.
    publicUrl: process.env['PUBLIC_URL'] ?? 'http://127.0.0.1:3000',
    // X-Forwarded-For and X-Forwarded-Host: clients that reach the host without a proxy write in them what they like.
    trustProxy: proxies(),
    // Longer than any of the proxies here keeps an idle connection: nginx 4 s, Caddy 4 s, ingress-nginx 60 s.
    keepAliveTimeout: '75s',
  },
  // What one process signs, the next one has to verify. Without any the start stops where sessions outlive it.
  secrets,
  ...(redisUrl !== undefined && {
    redis: { url: redisUrl, ...(redisPassword !== undefined && { password: redisPassword }) },
  }),
  toolsets: { main: './{tools,resources,prompts}/*.ts' },
  // Anybody may call. With a login: { toolsets: 'main', authorize: { scope: 'mcp.tools' } }, and the plugins below.
  routes: { '/mcp': { toolsets: 'main' } },
  plugins: {
    'transport-streamable': {},
    'transport-sse': {},
    health: {},
    // A login at an authorization server of yours; docs/protection.md has the other ways, such as auth-bridge.
    // 'auth-jwt': { authority: 'https://login.acme.example' },
    // 'resource-metadata': { authorizationServers: ['https://login.acme.example'], scopesSupported: ['mcp.tools'] },
    // Any node serves any session. Without Redis: one machine, whose sessions are in a file (Node 22.13) where it has a place.
    ...(redisUrl !== undefined && { 'cluster-redis': {} }),
    ...(redisUrl === undefined && state !== undefined && { 'store-sqlite': { file: join(state, 'sessions.db') } }),
    ...(metricsToken !== undefined && { metrics: { host: address, token: metricsToken } }),
  },
})
