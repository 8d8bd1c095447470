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
    says: ['there is no such plugin', 'did you mean "health"?'],
  },
  {
    mistake: 'a plugin that is not installed',
    files: withPlugin('  acme-mcp-metrics: {} # HERE'),
    says: ['there is no such plugin, and no package of that name', 'npm install acme-mcp-metrics'],
  },
  {
    mistake: 'a local plugin that is not there',
    files: { ...withPlugin('  ./plugins/audit.mjs: {} # HERE'), 'plugins/audits.mjs': '' },
    says: ['there is no file <folder>/plugins/audit.mjs', 'did you mean "./plugins/audits.mjs"?'],
  },
  {
    mistake: 'a misspelt name that is switched off',
    files: withPlugin('  helth: false # HERE'),
    says: ['there is no such plugin to switch off', 'did you mean "health"?'],
  },
  {
    mistake: 'a plugin that exports nothing',
    files: local('export const x = 1'),
    says: [
      'must export one plugin, made with definePlugin; it exports none',
      'export default definePlugin({ options, setup })',
    ],
  },
  {
    mistake: 'a module of two plugins without a default export',
    files: local(
      "const options = { type: 'object', additionalProperties: false, properties: {} }\nexport const one = definePlugin({ options, setup() {} })\nexport const two = definePlugin({ options, setup() {} })",
    ),
    says: ['it exports 2 and none of them as its default', 'export default definePlugin'],
  },
  {
    mistake: 'a plugin with a misspelt declaration',
    files: local(
      "export default definePlugin({ options: { type: 'object', properties: {} }, provide: ['x'], setup() {} })",
    ),
    says: ['what definePlugin was given: provide: unknown option', 'did you mean "provides"?'],
  },
  {
    mistake: 'a plugin without setup',
    files: local("export default definePlugin({ options: { type: 'object', properties: {} } })"),
    says: ['what definePlugin was given: setup: missing', 'a function'],
  },
  {
    mistake: 'a plugin with an unmet dependency',
    files: local(
      "export default definePlugin({ options: { type: 'object', properties: {} }, needs: ['user'], setup() {} })",
    ),
    says: ['it needs "user", which no plugin of this config provides', 'switch on auth-jwt or auth-introspection'],
  },
  {
    mistake: 'a plugin that throws while it is set up',
    files: local(
      "export default definePlugin({ options: { type: 'object', properties: {} }, setup() { throw new Error('no licence') } })",
    ),
    says: ['plugins../mine.mjs failed to start', 'no licence'],
  },
  {
    mistake: 'an option of a local plugin that is not known',
    files: {
      ...config({ plugins: 'plugins:\n  transport-streamable: {}\n  ./mine.mjs:\n    flie: x # HERE' }),
      'mine.mjs': `${code('')['mcp.config.ts']}export default definePlugin({ options: { type: 'object', additionalProperties: false, properties: { file: { type: 'string' } } }, setup() {} })`,
    },
    says: ['unknown option', 'did you mean "file"?'],
  },
  {
    mistake: 'a plugin that reports a mistake of its options',
    files: {
      ...config({ plugins: 'plugins:\n  transport-streamable: {}\n  ./mine.mjs:\n    file: x\n    level: 99 # HERE' }),
      'mine.mjs': `${(code('')['mcp.config.ts'] ?? '').replace('defineTool', 'StartError')}export default definePlugin({ options: { type: 'object', additionalProperties: false, properties: { file: { type: 'string' }, level: { type: 'number' } } }, setup(host, { level }) { if (level > 9) host.report(new StartError('it is more than 9; write 0 to 9', { at: [...host.at, 'level'] })) } })`,
    },
    says: ["plugins['./mine.mjs'].level: it is more than 9", 'write 0 to 9'],
  },
  {
    mistake: 'a plugin that is not called',
    files: {
      ...code(
        "const mine = definePlugin({ options: { type: 'object', additionalProperties: false, properties: {} }, setup() {} })\nexport default { server: { name: 'a', version: '1' }, toolsets: { a: './tools.mjs' }, routes: { '/': { toolsets: 'a' } },\n  plugins: {\n    'transport-streamable': {},\n    mine, // HERE\n  },\n}",
      ),
      ...tools(GOOD_TOOL),
    },
    says: ['found a plugin that is not called', 'thePlugin({ ... })'],
  },
  {
    mistake: 'a Koa app given to use',
    files: local(
      "export default definePlugin({ options: { type: 'object', properties: {} }, setup(host) { host.use({}) } })",
    ),
    says: ['host.use() takes Koa middleware', 'not an object'],
  },
  {
    mistake: 'an option of health that is not known',
    files: withPlugin('  health:\n    pth: /x # HERE'),
    says: ['unknown option', 'did you mean "path"?'],
  },
  {
    mistake: 'a health path without a slash',
    files: withPlugin('  health:\n    path: healthz # HERE'),
    says: ['found "healthz"', 'did you mean "/healthz"?'],
  },
  {
    mistake: 'a health page that is switched on',
    files: withPlugin('  health:\n    live: true # HERE'),
    says: ['found true', "starts with '/'", 'false'],
  },
  {
    mistake: 'a token for health that is guessed soon',
    files: withPlugin('  health:\n    token: hunter2 # HERE'),
    says: ['not shown', 'at least 16 letters'],
  },
  {
    mistake: 'an option of the transport that is not known',
    files: config({ plugins: 'plugins:\n  transport-streamable:\n    keepalive: 5s # HERE' }),
    says: ['unknown option', 'expected'],
  },
  {
    mistake: 'calls of a session that are none',
    files: withPlugin('  transport-sse:\n    maxConcurrent: 0 # HERE'),
    says: ['found 0', 'at least 1'],
  },
  {
    mistake: 'cors without policies',
    files: withPlugin('  cors: {} # HERE'),
    says: ['missing', 'an object'],
  },
  {
    mistake: 'an origin without a scheme',
    files: withPlugin('  cors:\n    policies:\n      web:\n        origins:\n          - app.acme.example # HERE'),
    says: ['found "app.acme.example"', 'expected'],
  },
  {
    mistake: 'a star among origins',
    files: withPlugin("  cors:\n    policies:\n      web:\n        origins: ['*', 'https://a.example'] # HERE"),
    says: ['plugins.cors.policies.web.origins: "*" stands alone', 'remove the other origins'],
  },
  {
    mistake: 'credentials for any origin',
    files: withPlugin("  cors:\n    policies:\n      web:\n        origins: ['*']\n        credentials: true # HERE"),
    says: ['credentials need a list of origins', 'with "*" any page could use them'],
  },
  {
    mistake: 'no Redis named',
    files: withPlugin('  event-store-redis: {} # HERE'),
    says: ['no Redis is named', "write redis: { url: 'redis://127.0.0.1:6379' }"],
  },
  {
    mistake: 'a Redis URL of another scheme',
    files: withPlugin('  event-store-redis: {}', { more: 'redis: { url: "http://127.0.0.1:6379" } # HERE' }),
    says: ['found a string (not shown)', "a URL such as 'redis://127.0.0.1:6379', or 'rediss://' for TLS"],
  },
  {
    mistake: 'an invalid Redis URL',
    files: withPlugin('  event-store-redis: {}', { more: 'redis: { url: localhost } # HERE' }),
    says: ['found a string (not shown)', 'or use redis.password'],
  },
  {
    mistake: 'a Redis with a url and a cluster',
    files: withPlugin('  event-store-redis: {}', {
      more: 'redis: { url: "redis://a", cluster: ["redis://b"] } # HERE',
    }),
    says: ['redis has a url and a cluster', 'give one of them'],
  },
  {
    mistake: 'TLS without rediss',
    files: withPlugin('  event-store-redis: {}', {
      more: 'redis: { url: "redis://a", tls: { servername: a } } # HERE',
    }),
    says: ['redis.tls is given', 'the URL is not rediss://'],
  },
  {
    mistake: 'an unknown key of the section of Redis',
    files: withPlugin('  event-store-redis: {}', { more: 'redis:\n  url: "redis://a"\n  keyPrefx: x # HERE' }),
    says: ['unknown option', 'did you mean "keyPrefix"?'],
  },
  {
    mistake: 'events that are kept for less than a second',
    files: withPlugin('  event-store-redis:\n    url: "redis://a"\n    ttl: 10ms # HERE'),
    says: ['less than 1s', 'no client comes back so soon'],
  },
  {
    mistake: 'shared sessions without secrets',
    files: withPlugin('  cluster-redis: { url: "redis://a" } # HERE'),
    says: ['the keys that sign their ids were made by this one', 'MCP_HOST_SECRETS'],
  },
  {
    mistake: 'shared sessions without a way to other nodes',
    files: withPlugin('  session-store-redis: { url: "redis://a" } # HERE', { more: SECRET }),
    says: ['it needs "peers", which no plugin of this config provides', 'switch on cluster-redis or change-bus-redis'],
  },
  {
    mistake: 'cluster-redis together with one of its parts',
    files: withPlugin('  cluster-redis: { url: "redis://a" }\n  event-store-redis: { url: "redis://a" } # HERE', {
      more: SECRET,
    }),
    says: ['already provides the eventStore', 'switch one of them off there'],
  },
  {
    mistake: 'the development server on an address of the network',
    files: withPlugin('  dev-auth-server: {} # HERE', { more: 'http: { host: 0.0.0.0 }' }),
    says: ['http.host is 0.0.0.0', 'it runs on a loopback address only'],
  },
  {
    mistake: 'the development server in production',
    files: withPlugin('  dev-auth-server: {} # HERE'),
    env: { NODE_ENV: 'production' },
    says: ['it lets everybody in', 'it does not run in production'],
  },
]
