// Plugins: names, options of each that is built in, those of third parties.
import { code, config, GOOD_TOOL, type Row, tools, withPlugin } from './row.ts'

const local = (text: string) => ({
  ...config({ plugins: 'plugins:\n  transport-streamable: {}\n  ./mine.mjs: {} # HERE' }),
  'mine.mjs': (code('')['mcp.config.ts'] ?? '') + text,
})
const SECRET = 'secrets: ["a secret of more than 32 characters, surely"]'

export const PLUGIN_ROWS: readonly Row[] = [
  {
    mistake: 'a plugin that is nearly a built-in one',
    files: withPlugin('  helth: {} # HERE'),
    names: ['"health"'],
  },
  {
    mistake: 'a plugin that is not installed',
    files: withPlugin('  acme-mcp-metrics: {} # HERE'),
    names: ['npm install acme-mcp-metrics'],
  },
  {
    mistake: 'a local plugin that is not there',
    files: { ...withPlugin('  ./plugins/audit.mjs: {} # HERE'), 'plugins/audits.mjs': '' },
    names: ['<folder>/plugins/audit.mjs', '"./plugins/audits.mjs"'],
  },
  {
    mistake: 'a misspelt name that is disabled',
    files: withPlugin('  helth: false # HERE'),
    names: ['"health"'],
  },
  {
    mistake: 'a plugin that exports nothing',
    files: local('export const x = 1'),
    names: ['definePlugin', 'export default definePlugin({ options, setup })'],
  },
  {
    mistake: 'a module of two plugins without a default export',
    files: local(
      "const options = { type: 'object', additionalProperties: false, properties: {} }\nexport const one = definePlugin({ options, setup() {} })\nexport const two = definePlugin({ options, setup() {} })",
    ),
    names: ['export default definePlugin'],
  },
  {
    mistake: 'a plugin with a misspelt declaration',
    files: local(
      "export default definePlugin({ options: { type: 'object', properties: {} }, provide: ['x'], setup() {} })",
    ),
    names: ['definePlugin', '"provides"'],
  },
  {
    mistake: 'a plugin without setup',
    files: local("export default definePlugin({ options: { type: 'object', properties: {} } })"),
    names: ['definePlugin'],
  },
  {
    mistake: 'a plugin with an unmet dependency',
    files: local(
      "export default definePlugin({ options: { type: 'object', properties: {} }, needs: ['user'], setup() {} })",
    ),
    names: ['"user"', 'auth-jwt', 'auth-introspection'],
  },
  {
    mistake: 'a plugin that throws while it is set up',
    files: local(
      "export default definePlugin({ options: { type: 'object', properties: {} }, setup() { throw new Error('no licence') } })",
    ),
    names: ['plugins../mine.mjs'],
  },
  {
    mistake: 'an option of a local plugin that is not known',
    files: {
      ...config({ plugins: 'plugins:\n  transport-streamable: {}\n  ./mine.mjs:\n    flie: x # HERE' }),
      'mine.mjs': `${code('')['mcp.config.ts']}export default definePlugin({ options: { type: 'object', additionalProperties: false, properties: { file: { type: 'string' } } }, setup() {} })`,
    },
    names: ['"file"'],
  },
  {
    mistake: 'a plugin that reports a mistake of its options',
    files: {
      ...config({ plugins: 'plugins:\n  transport-streamable: {}\n  ./mine.mjs:\n    file: x\n    level: 99 # HERE' }),
      'mine.mjs': `${(code('')['mcp.config.ts'] ?? '').replace('defineTool', 'StartError')}export default definePlugin({ options: { type: 'object', additionalProperties: false, properties: { file: { type: 'string' }, level: { type: 'number' } } }, setup(host, { level }) { if (level > 9) host.report(new StartError('MINE1', 'it is more than 9; write 0 to 9', { at: [...host.config.at, 'level'] })) } })`,
    },
    names: ["plugins['./mine.mjs'].level"],
  },
  {
    mistake: 'a plugin that is not called',
    files: {
      ...code(
        "const mine = definePlugin({ options: { type: 'object', additionalProperties: false, properties: {} }, setup() {} })\nexport default { server: { name: 'a', version: '1' }, toolsets: { a: './tools.mjs' }, routes: { '/': { toolsets: 'a' } },\n  plugins: {\n    'transport-streamable': {},\n    mine, // HERE\n  },\n}",
      ),
      ...tools(GOOD_TOOL),
    },
    names: ['thePlugin'],
  },
  {
    mistake: 'a Koa app given to use',
    files: local(
      "export default definePlugin({ options: { type: 'object', properties: {} }, setup(host) { host.use({}) } })",
    ),
    names: ['host.use()'],
  },
  {
    mistake: 'an option of health that is not known',
    files: withPlugin('  health:\n    pth: /x # HERE'),
    names: ['"path"'],
  },
  {
    mistake: 'a health path without a slash',
    files: withPlugin('  health:\n    path: healthz # HERE'),
    names: ['"healthz"'],
  },
  {
    mistake: 'a health page that is enabled',
    files: withPlugin('  health:\n    live: true # HERE'),
    names: ['false'],
  },
  {
    mistake: 'a token for health that is guessed soon',
    files: withPlugin('  health:\n    token: hunter2 # HERE'),
    names: ['16'],
  },
  {
    mistake: 'an option of the transport that is not known',
    files: config({ plugins: 'plugins:\n  transport-streamable:\n    keepalive: 5s # HERE' }),
    names: ['expected'],
  },
  {
    mistake: 'calls of a session that are none',
    files: withPlugin('  transport-sse:\n    maxConcurrent: 0 # HERE'),
    names: ['0', '1'],
  },
  {
    mistake: 'cors without policies',
    files: withPlugin('  cors: {} # HERE'),
    names: ['missing'],
  },
  {
    mistake: 'an origin without a scheme',
    files: withPlugin('  cors:\n    policies:\n      web:\n        origins:\n          - app.acme.example # HERE'),
    names: ['"app.acme.example"'],
  },
  {
    mistake: 'a star among origins',
    files: withPlugin("  cors:\n    policies:\n      web:\n        origins: ['*', 'https://a.example'] # HERE"),
    names: ['plugins.cors.policies.web.origins'],
  },
  {
    mistake: 'credentials for any origin',
    files: withPlugin("  cors:\n    policies:\n      web:\n        origins: ['*']\n        credentials: true # HERE"),
    names: ['credentials', 'origins'],
  },
  {
    mistake: 'no Redis named',
    files: withPlugin('  event-store-redis: {} # HERE'),
    names: ['redis://127.0.0.1:6379'],
  },
  {
    mistake: 'a Redis URL of another scheme',
    files: withPlugin('  event-store-redis: {}', { more: 'redis: { url: "http://127.0.0.1:6379" } # HERE' }),
    names: ['URL', 'redis://127.0.0.1:6379', 'rediss://', 'TLS'],
  },
  {
    mistake: 'an invalid Redis URL',
    files: withPlugin('  event-store-redis: {}', { more: 'redis: { url: localhost } # HERE' }),
    names: ['redis.password'],
  },
  {
    mistake: 'a Redis with a url and a cluster',
    files: withPlugin('  event-store-redis: {}', {
      more: 'redis: { url: "redis://a", cluster: ["redis://b"] } # HERE',
    }),
    names: ['url', 'cluster'],
  },
  {
    mistake: 'TLS without rediss',
    files: withPlugin('  event-store-redis: {}', {
      more: 'redis: { url: "redis://a", tls: { servername: a } } # HERE',
    }),
    names: ['redis.tls', 'URL', 'rediss://'],
  },
  {
    mistake: 'an unknown key of the section of Redis',
    files: withPlugin('  event-store-redis: {}', { more: 'redis:\n  url: "redis://a"\n  keyPrefx: x # HERE' }),
    names: ['"keyPrefix"'],
  },
  {
    mistake: 'events that are kept for less than a second',
    files: withPlugin('  event-store-redis:\n    url: "redis://a"\n    ttl: 10ms # HERE'),
    names: ['1s'],
  },
  {
    mistake: 'shared sessions without secrets',
    files: withPlugin('  cluster-redis: { url: "redis://a" } # HERE'),
    names: ['MCP_HOST_SECRETS'],
  },
  {
    mistake: 'shared sessions without a way to other nodes',
    files: withPlugin('  session-store-redis: { url: "redis://a" } # HERE', { more: SECRET }),
    names: ['"peers"', 'cluster-redis', 'change-bus-redis'],
  },
  {
    mistake: 'cluster-redis together with one of its parts',
    files: withPlugin('  cluster-redis: { url: "redis://a" }\n  event-store-redis: { url: "redis://a" } # HERE', {
      more: SECRET,
    }),
    names: ['eventStore'],
  },
  {
    mistake: 'the development server on an address of the network',
    files: withPlugin('  dev-auth-server: {} # HERE', { more: 'http: { host: 0.0.0.0 }' }),
    names: ['http.host', '0.0.0.0'],
  },
  {
    mistake: 'the development server in production',
    files: withPlugin('  dev-auth-server: {} # HERE'),
    env: { NODE_ENV: 'production' },
    names: ['production'],
  },
]
