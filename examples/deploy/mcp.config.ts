// The config of all deployments in this folder. Settings come from the environment, secrets also from files. It requires no
// login: if you overwrite the config of a protected project, add `authorize` and the plugins of the login again.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'mcp-host'

/** Folder of secret files from systemd (`LoadCredential`) or Docker (`secrets`). File names are the names of secrets. */
const SECRETS_FOLDER = process.env['CREDENTIALS_DIRECTORY'] ?? '/run/secrets'

function readSecret(name: string): string | undefined {
  const file = join(SECRETS_FOLDER, name)
  const value = existsSync(file) ? readFileSync(file, 'utf8').trim() : process.env[name]
  if (value?.includes('CHANGE-ME')) throw new Error(`${name} is still the example value: create your own`)
  return value
}

/** Number of proxies, or their addresses separated by commas. Without proxies, X-Forwarded-* headers are ignored. */
function readTrustedProxies(): false | number | string[] {
  const value = process.env['TRUST_PROXY'] ?? ''
  return /^\d*$/.test(value) ? Number(value) || false : value.split(',').map(address => address.trim())
}

const address = process.env['BIND_ADDRESS'] ?? '127.0.0.1'
const secrets = (readSecret('MCP_HOST_SECRETS') ?? '').split(',').filter(secret => secret.trim() !== '')
const redisUrl = process.env['REDIS_URL']
const redisPassword = readSecret('REDIS_PASSWORD')
const metricsToken = readSecret('METRICS_TOKEN')
/** Persistent folder, set by systemd (`StateDirectory`). */
const stateFolder = process.env['STATE_DIRECTORY']

export default defineConfig({
  server: { name: 'my-server', version: '0.1.0' },
  http: {
    host: address,
    port: Number(process.env['PORT'] ?? 3000),
    // URL for clients. Requests with another Host header are rejected, except for /livez and /readyz.
    publicUrl: process.env['PUBLIC_URL'] ?? 'http://127.0.0.1:3000',
    // Clients that can connect without the proxy could forge X-Forwarded-For and X-Forwarded-Host.
    trustProxy: readTrustedProxies(),
    // Longer than the idle timeouts of the proxies: nginx 4 s, Caddy 4 s, ingress-nginx 60 s.
    keepAliveTimeout: '75s',
  },
  // Other processes verify the signatures of this one. Required if sessions are persistent.
  secrets,
  ...(redisUrl !== undefined && {
    redis: { url: redisUrl, ...(redisPassword !== undefined && { password: redisPassword }) },
  }),
  toolsets: { main: './{tools,resources,prompts}/*.ts' },
  // Requires no login. With a login: { toolsets: 'main', authorize: { scope: 'mcp.tools' } }, and the plugins below.
  routes: { '/mcp': { toolsets: 'main' } },
  plugins: {
    'transport-streamable': {},
    'transport-sse': {},
    health: {},
    // Login with your authorization server. For alternatives such as auth-bridge, see docs/protection.md.
    // 'auth-jwt': { authority: 'https://login.acme.example' },
    // 'resource-metadata': { authorizationServers: ['https://login.acme.example'], scopesSupported: ['mcp.tools'] },
    // With Redis, any node serves any session. Without Redis, sessions of one machine are in a file (Node.js 22.13).
    ...(redisUrl !== undefined && { 'cluster-redis': {} }),
    ...(redisUrl === undefined &&
      stateFolder !== undefined && { 'store-sqlite': { file: join(stateFolder, 'sessions.db') } }),
    ...(metricsToken !== undefined && { metrics: { host: address, token: metricsToken } }),
  },
})
