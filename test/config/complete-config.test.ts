// Tests that a config with every available key compiles and passes validation.
import { expect } from 'chai'
import { type Config, defineConfig } from '../../core/config/define-config.ts'
import { defineTool } from '../../core/mcp/definitions/define.ts'
import { audit, check } from './checked.ts'

type Complete<T> = { [K in keyof T]-?: T[K] }

/** Every key of the config's type: a key that the type gains and this lacks does not compile. */
const COMPLETE: Complete<Omit<Config, 'server' | 'http' | 'tools' | 'plugins'>> & {
  server: Complete<Config['server']>
  http: Complete<NonNullable<Config['http']>>
  tools: Complete<NonNullable<Config['tools']>>
  plugins: NonNullable<Config['plugins']>
} = {
  server: {
    name: 'acme-tools',
    version: '1.4.0',
    title: 'Acme',
    description: 'Acme tools',
    websiteUrl: 'https://acme.example/mcp',
    icons: [{ src: 'https://acme.example/i.png', mimeType: 'image/png', sizes: ['48x48'], theme: 'dark' }],
    instructions: 'Tools for the Acme warehouse.',
  },
  http: {
    host: '127.0.0.1',
    port: 0,
    backlog: 4096,
    tls: {
      cert: './fullchain.pem',
      key: './key.pem',
      passphrase: 'opens the key',
      minVersion: 'TLSv1.3',
      handshakeTimeout: '5s',
    },
    publicUrl: 'https://mcp.acme.example:8443/base',
    maxBodySize: '4mb',
    keepAliveTimeout: 5_000,
    requestTimeout: '60s',
    writeTimeout: '30s',
    allowedHosts: ['mcp.acme.example'],
    allowedOrigins: ['https://app.acme.example'],
    trustProxy: false,
  },
  stateless: false,
  secrets: ['a long random string', undefined],
  tools: {
    fetchTimeout: '30s',
    callTimeout: 'off',
    limits: { 'heavy_*': { timeout: '10s', concurrency: 2 } },
  },
  store: 'memory',
  sessions: { idleTimeout: '2h', maxIdle: 10_000, maxPerOwner: 100, maxCallsPerSession: 32, maxCallsPerOwner: 256 },
  redis: {
    url: 'rediss://redis.acme.example:6380/2',
    username: 'mcp',
    password: 'a password',
    tls: { ca: './ca.pem', cert: './host.pem', key: './host.key', servername: 'redis' },
    keyPrefix: 'acme:',
    commandTimeout: '2s',
    cluster: ['rediss://one.acme.example', 'rediss://two.acme.example:7000'],
  },
  toolsets: {
    clock: './tools/clock.ts',
    mixed: ['./tools/*.ts', defineTool({ name: 'purge', access: 'admin', handler: () => 'done' })],
    one: defineTool({ name: 'one', handler: () => 1 }),
    none: [],
  },
  routes: {
    '/': { toolsets: ['clock'], plugins: { health: {}, audit: false } },
    '/admin': { toolsets: 'one', authorize: true, cors: 'browser', stateless: true },
    '/who': { toolsets: 'one', authorize: 'mcp.admin', challengeScope: 'mcp.tools' },
    '/scoped': { toolsets: 'one', authorize: { scope: ['a', 'b'], role: 'admin' } },
    '/t/:category?': { toolsets: ':category', default: ['clock', 'mixed'] },
  },
  plugins: { health: { path: '/health' }, audit: audit({ file: 'audit.log' }), './mine.ts': { any: 1 }, off: false },
  configureSession(request, session) {
    if (request.user) session.addToolset('mixed')
  },
  async runSession(_request, _session, run) {
    await run()
  },
}

describe('Config with every key', () => {
  it('passes validation', () => {
    expect(check(defineConfig(COMPLETE))).to.deep.equal([])
  })
})
