// Values of the right type that can never work.
import { code, config, GOOD_TOOL, ofTools, type Row, tools, withPlugin } from './row.ts'

const ISSUER = 'https://login.acme.example'
const DISCOVERY = `${ISSUER}/.well-known/openid-configuration`
const METADATA = `  resource-metadata: { authorizationServers: ["${ISSUER}"], scopesSupported: [mcp.read] }\n`
const JWT = `  auth-jwt: { authority: "${ISSUER}" }\n`
const GUARDED = 'routes:\n  /:\n    toolsets: a\n    authorize: true'
const http = (text: string) => config({ more: `http:\n  ${text} # HERE` })
const configInCode = (text: string) => ({
  ...code(
    `export default defineConfig({\n  server: { name: 'a', version: '1' },\n  toolsets: { a: './tools.mjs' },\n  routes: { '/': { toolsets: 'a' } },\n${text}\n})`,
  ),
  ...tools(GOOD_TOOL),
})
const upstreamInCode = (headers: string) =>
  configInCode(
    `  plugins: {\n    'transport-streamable': {},\n    upstream: { servers: { far: {\n      url: 'http://127.0.0.1:1',\n      headers: ${headers}, // HERE\n    } } },\n  },`,
  )
const guarded = (text: string) => withPlugin(text, { routes: GUARDED })
const route = (text: string) =>
  withPlugin(JWT + METADATA, { routes: `routes:\n  /:\n    toolsets: a\n    ${text} # HERE` })
const icon = (text: string) => config({ server: `server:\n  name: a\n  version: "1"\n  icons:\n    - ${text} # HERE` })
const resource = (text: string) =>
  ofTools(`export const r = defineResource({ name: 'r', handler: () => 'x',\n  ${text}, // HERE\n})`)

export const VALUE_ROWS: readonly Row[] = [
  {
    mistake: 'an allowed origin that is a bare host',
    files: http('allowedOrigins: [app.acme.example]'),
    names: ['https://app.acme.example'],
  },
  {
    mistake: 'an allowed origin with a wildcard',
    files: http('allowedOrigins: ["https://*.acme.example"]'),
    names: ['wildcard'],
  },
  {
    mistake: 'an allowed host that is a URL',
    files: http('allowedHosts: ["https://mcp.acme.example"]'),
    names: ['host name'],
  },
  { mistake: 'an allowed host with a wildcard', files: http('allowedHosts: ["*.acme.example"]'), names: ['wildcard'] },
  { mistake: 'a URL as the address to listen on', files: http('host: "http://0.0.0.0"'), names: ['http://0.0.0.0'] },
  { mistake: 'a port in the address to listen on', files: http('host: "localhost:3000"'), names: ['port'] },
  {
    mistake: 'one scope text with a space on a route',
    files: route('authorize: { scope: "mcp.read mcp.write" }'),
    names: ['list'],
  },
  {
    mistake: 'a scope of a route that scopesSupported lacks',
    files: route('authorize: { scope: mcp.raed }'),
    severity: 'warning',
    names: ['"mcp.raed"', 'scopesSupported', '"mcp.read"'],
  },
  {
    mistake: 'a challenge scope that scopesSupported lacks',
    files: route('challengeScope: mcp.write'),
    severity: 'warning',
    names: ['"mcp.write"', 'scopesSupported'],
  },
  {
    mistake: 'a scope with a space in the hierarchy',
    files: guarded(`${JWT}${METADATA}  tool-policy:\n    scopeHierarchy:\n      all: [a b] # HERE`),
    names: ['"a b"'],
  },
  {
    mistake: 'an unused scope in the hierarchy',
    files: guarded(
      `${JWT}${METADATA}  tool-policy:\n    rules: { echo: { scope: mcp.read } }\n    scopeHierarchy:\n      all: [mcp.raed] # HERE`,
    ),
    severity: 'warning',
    names: ['"mcp.raed"', 'no effect', '"mcp.read"'],
  },
  {
    mistake: 'an unknown signature algorithm in the metadata',
    files: guarded(
      `${JWT}  resource-metadata:\n    authorizationServers: ["${ISSUER}"]\n    resourceSigningAlgValuesSupported: [RSA] # HERE`,
    ),
    names: ['"RSA"', "'RS256'"],
  },
  {
    mistake: 'a URL as the address of the metrics port',
    files: withPlugin(`  metrics:\n    token: abcdefghijklmnopqrstuvwxyz\n    host: "http://0.0.0.0" # HERE`),
    names: ['without scheme'],
  },
  {
    mistake: 'a resource of dev-auth-server that is no URL',
    files: withPlugin('  dev-auth-server:\n    resources: [my-api] # HERE'),
    names: ['"my-api"', 'URL'],
  },
  {
    mistake: 'two users of dev-auth-server with one id',
    files: withPlugin('  dev-auth-server:\n    users:\n      - id: ann\n      - id: ann # HERE'),
    names: ['"ann"'],
  },
  {
    mistake: 'a refresh token that expires before the access token',
    files: withPlugin(
      `  auth-bridge:
    provider: { type: oidc, issuer: "${ISSUER}", clientId: c, clientSecret: ${'s'.repeat(35)} }
    allow: { everyone: true }
    accessToken: 2h
    refreshToken: 1h # HERE
  auth-jwt: {}
  resource-metadata: { authorizationServers: ["https://mcp.acme.example/auth"], scopesSupported: [mcp.read] }`,
      { routes: GUARDED, more: 'http: { publicUrl: "https://mcp.acme.example" }' },
    ),
    severity: 'warning',
    names: ['accessToken', '2h'],
  },
  {
    mistake: 'a discovery document as the authority',
    files: guarded(`${METADATA}  auth-jwt:\n    authority: ${DISCOVERY} # HERE`),
    names: ['metadata'],
  },
  {
    mistake: 'a discovery document as the key set',
    files: guarded(`${METADATA}  auth-jwt:\n    issuer: ${ISSUER}\n    jwksUri: ${DISCOVERY} # HERE`),
    names: ['`authority`'],
  },
  {
    mistake: 'a discovery document as the issuer',
    files: guarded(`${METADATA}  auth-jwt:\n    jwksUri: ${ISSUER}/jwks\n    issuer: ${DISCOVERY} # HERE`),
    names: ['metadata'],
  },
  {
    mistake: 'a discovery document as an authorization server',
    files: guarded(`${JWT}  resource-metadata:\n    authorizationServers:\n      - ${DISCOVERY} # HERE`),
    names: ['metadata'],
  },
  {
    mistake: 'a discovery document as the introspection endpoint',
    files: guarded(
      `${METADATA}  auth-introspection:\n    clientId: c\n    clientSecret: s\n    endpoint: ${DISCOVERY} # HERE`,
    ),
    names: ['introspection_endpoint'],
  },
  {
    mistake: 'rules where no plugin authenticates callers',
    files: withPlugin('  tool-policy: # HERE\n    rules: { echo: { role: admin } }'),
    severity: 'warning',
    names: ['auth-jwt'],
  },
  {
    mistake: 'a default toolset on a path without a parameter',
    files: config({ routes: 'routes:\n  /:\n    toolsets: a\n    default: [a] # HERE' }),
    names: [':name?'],
  },
  {
    mistake: 'a CORS policy that no route names',
    files: withPlugin('  cors:\n    policies:\n      browser: # HERE\n        origins: ["https://a.example"]'),
    severity: 'warning',
    names: ["cors: 'browser'"],
  },
  {
    mistake: 'a CORS origin with a slash at its end',
    files: withPlugin('  cors:\n    policies:\n      browser:\n        origins: ["https://a.example/"] # HERE'),
    names: ['https://a.example/'],
  },
  {
    mistake: 'a toolset that no route serves',
    files: config({ toolsets: 'toolsets:\n  a: ./tools.mjs\n  b: ./tools.mjs # HERE' }),
    severity: 'warning',
    names: ['no route'],
  },
  {
    mistake: 'sessions that end at once',
    files: config({ more: 'sessions:\n  idleTimeout: 0s # HERE' }),
    names: ['above zero'],
  },
  {
    mistake: 'calls that end at once',
    files: config({ more: 'tools:\n  callTimeout: 0 # HERE' }),
    names: ['above zero'],
  },
  { mistake: 'an icon that is a file', files: icon('{ src: ./icon.png }'), names: ['data URI'] },
  {
    mistake: 'an icon with half a media type',
    files: icon('{ src: "https://a.example/i.png", mimeType: png }'),
    names: ['"png"'],
  },
  {
    mistake: 'an icon with one number as its size',
    files: icon('{ src: "https://a.example/i.png", sizes: ["48"] }'),
    names: ['48x48'],
  },
  { mistake: 'a URI with a variable', files: resource("uri: 'notes://{id}'"), names: ['`uriTemplate`'] },
  { mistake: 'a template without a variable', files: resource("uriTemplate: 'notes://all'"), names: ['`uri`'] },
  {
    mistake: 'a resource with half a media type',
    files: resource("uri: 'notes://all', mimeType: 'json'"),
    names: ['"json"'],
  },
  { mistake: 'a public URL of every interface', files: http('publicUrl: http://0.0.0.0'), names: ['clients'] },
  { mistake: 'a public URL of every IPv6 interface', files: http('publicUrl: "http://[::]:3000"'), names: ['clients'] },
  {
    mistake: 'a public URL with a wildcard',
    files: http('publicUrl: "https://*.acme.example"'),
    names: ['"https://*'],
  },
  {
    mistake: 'a public URL with a placeholder',
    files: http(`publicUrl: "https://\${HOST}"`),
    names: [`"https://\${HOST}"`],
  },
  {
    mistake: 'a public URL that ends with the path of the route',
    files: config({
      routes: 'routes: { /mcp: { toolsets: a } }',
      more: 'http:\n  publicUrl: https://mcp.acme.example/mcp # HERE',
    }),
    severity: 'warning',
    names: ['/mcp/mcp'],
  },
  { mistake: 'an IPv4 address above 255', files: http('host: 10.0.0.256'), names: ['"10.0.0.256"'] },
  { mistake: 'a port above 65535', files: http('allowedHosts: ["mcp.acme.example:80000"]'), names: ['80000'] },
  { mistake: 'a body size in megabytes without a unit', files: http('maxBodySize: 4'), names: ['bytes'] },
  {
    mistake: 'a port of an environment variable that is not set',
    files: configInCode("  http: { port: Number(process.env['NO_SUCH_PORT']) }, // HERE"),
    names: ['NO_SUCH_PORT', 'not set'],
  },
  {
    mistake: 'a secret of an environment variable that is not set',
    files: upstreamInCode("{ authorization: process.env['NO_SUCH_SECRET'] }"),
    names: ['NO_SUCH_SECRET', 'not set'],
  },
  {
    mistake: 'the second of two environment variables in one line',
    files: upstreamInCode("{ a: process.env['NO_SUCH_A'], b: process.env['NO_SUCH_B'] }"),
    names: ['NO_SUCH_B is not set'],
    errors: 2,
  },
  {
    mistake: 'an unset variable of a config in one line',
    files: {
      ...code(
        "export default { server: { name: process.env['NO_SUCH_A'] || 'a', version: '1' }, toolsets: { a: './tools.mjs' }, routes: { '/': { toolsets: 'a' } }, http: { publicUrl: process.env['NO_SUCH_B'] } } // HERE",
      ),
      ...tools(GOOD_TOOL),
    },
    severity: 'warning',
    names: ['http.publicUrl', 'NO_SUCH_B is not set'],
  },
  {
    mistake: 'an unset variable in a list',
    files: configInCode("  http: { allowedHosts: [process.env['NO_SUCH_HOST']] }, // HERE"),
    names: ['NO_SUCH_HOST is not set'],
  },
  {
    mistake: 'an environment variable that is not set in a template string',
    files: upstreamInCode(`{ authorization: \`Bearer \${process.env.NO_SUCH_SECRET}\` }`),
    severity: 'warning',
    names: ['undefined', 'environment variable'],
  },
  {
    mistake: 'a placeholder as a port',
    files: http(`port: "\${PORT}"`),
    names: ['placeholder'],
  },
  {
    mistake: 'a passed environment variable that is not set',
    files: withPlugin(
      '  upstream:\n    servers:\n      far:\n        command: [node, far.js]\n        passEnv: [NO_SUCH_VARIABLE] # HERE',
    ),
    severity: 'warning',
    names: ['NO_SUCH_VARIABLE'],
  },
  {
    mistake: 'a command with its arguments in one string',
    files: withPlugin('  upstream:\n    servers:\n      far:\n        command: node far.js # HERE'),
    severity: 'warning',
    names: ['[node, server.js]'],
  },
  {
    mistake: 'a string in place of a list',
    files: withPlugin(
      '  openapi:\n    documents:\n      pets:\n        document: ./p.json\n        methods: get, post # HERE',
    ),
    names: ['write ["get", "post"]'],
  },
  {
    mistake: 'a URL in place of a host',
    files: withPlugin(
      '  openapi:\n    documents:\n      pets:\n        document: ./p.json\n        allowHosts:\n          - http://api.internal/v1 # HERE',
    ),
    names: ['"http://api.internal/v1"', 'a host'],
  },
  {
    mistake: 'a placeholder as a secret',
    files: config({ more: `secrets:\n  - "\${MCP_HOST_SECRETS_OF_THE_ENVIRONMENT}" # HERE` }),
    names: ['process.env'],
  },
  {
    mistake: 'a placeholder as a secret of a plugin',
    files: withPlugin(`  auth-jwt: { issuer: "${ISSUER}", secret: "\${JWT_SECRET_OF_32_CHARACTERS_OR_MORE}" } # HERE`),
    names: ['process.env'],
  },
  {
    mistake: 'a placeholder as an option that is no secret',
    files: config({ more: `server: { name: a, version: "1", title: "\${TITLE}" } # HERE`, server: '' }),
    severity: 'warning',
    names: ['process.env'],
  },
  {
    mistake: 'secrets of an environment variable that is not set',
    files: configInCode("  secrets: process.env['NO_SUCH_SECRET'], // HERE"),
    names: ['NO_SUCH_SECRET', 'not set'],
  },
  {
    mistake: 'a list of secrets without a set environment variable',
    files: configInCode("  secrets: [process.env['NO_SUCH_SECRET'], process.env['NO_SUCH_OLD']], // HERE"),
    names: ['secrets[0]', 'NO_SUCH_SECRET is not set'],
  },
  {
    mistake: 'a list of secrets without a set environment variable, next to MCP_HOST_SECRETS',
    files: configInCode("  secrets: [process.env['NO_SUCH_SECRET']], // HERE"),
    env: { MCP_HOST_SECRETS: 's'.repeat(32) },
    severity: 'warning',
    names: ['secrets[0]', 'NO_SUCH_SECRET is not set'],
  },
  {
    mistake: 'a Redis store with the URL of an environment variable that is not set',
    files: configInCode("  store: { redis: { url: process.env['NO_SUCH_URL'] } }, // HERE"),
    names: ['no Redis', 'NO_SUCH_URL is not set'],
    env: { MCP_HOST_SECRETS: 's'.repeat(32) },
  },
  {
    mistake: 'the section of Redis with the URL of an environment variable that is not set',
    files: configInCode("  plugins: { 'cluster-redis': {} },\n  redis: { url: process.env['NO_SUCH_URL'] }, // HERE"),
    names: ['empty object', 'NO_SUCH_URL is not set'],
    env: { MCP_HOST_SECRETS: 's'.repeat(32) },
  },
  {
    mistake: 'a section that no plugin uses',
    files: config({ more: 'redis: # HERE\n  url: redis://127.0.0.1:6379' }),
    severity: 'warning',
    names: ['section'],
  },
  {
    mistake: 'a folder as a toolset',
    files: { ...config({ toolsets: 'toolsets: { a: ./tools } # HERE' }), 'tools/a.mjs': '' },
    names: ['is a folder', './tools/*.ts'],
  },
  {
    mistake: 'a route with a parameter in angle brackets',
    files: config({ routes: 'routes:\n  "/<tenant>": # HERE\n    toolsets: a' }),
    names: ['":name"'],
  },
  {
    mistake: 'a default toolset where the parameter is always there',
    files: config({ routes: 'routes:\n  "/:name":\n    toolsets: { param: name, of: [a] }\n    default: [a] # HERE' }),
    names: ['"/:name?"'],
  },
  {
    mistake: 'an authorization server whose tokens are not accepted',
    files: guarded(
      '  resource-metadata: { authorizationServers: ["https://other.example"], scopesSupported: [mcp.read] }\n' +
        `  auth-jwt: # HERE\n    authority: ${ISSUER}`,
    ),
    severity: 'warning',
    names: ['https://other.example', ISSUER],
  },
  {
    mistake: 'a resource on another host than the public URL',
    files: withPlugin(
      `${JWT}  resource-metadata:\n    authorizationServers: ["${ISSUER}"]\n    resource: https://other.example/mcp # HERE`,
      { routes: GUARDED, more: 'http: { publicUrl: "https://mcp.acme.example" }' },
    ),
    severity: 'warning',
    names: ['https://mcp.acme.example'],
  },
  {
    mistake: 'a discovery document as the key set of the resource',
    files: guarded(
      `${JWT}  resource-metadata:\n    authorizationServers: ["${ISSUER}"]\n    jwksUri: ${DISCOVERY} # HERE`,
    ),
    names: ['key set'],
  },
  ...[
    ['a discovery document as the audience', `authority: ${ISSUER}\n    audience: ${DISCOVERY} # HERE`, 'identifier'],
    [
      'the tenant `common` of Microsoft',
      'authority: https://login.microsoftonline.com/common/v2.0 # HERE',
      'one issuer',
    ],
    ['an issuer of Auth0 without its slash', 'authority: https://acme.auth0.com # HERE', 'slash'],
    ['an endpoint as the authority', `authority: ${ISSUER}/oauth2/authorize # HERE`, 'endpoint'],
    ['an authority with a placeholder', 'authority: "https://login.acme.example/{tenant}" # HERE', '{tenant}'],
    ['a claim as JSONPath', `authority: ${ISSUER}\n    claims:\n      roles: $.realm_access.roles # HERE`, 'dots'],
    ['a claim as JSON Pointer', `authority: ${ISSUER}\n    claims:\n      roles: /realm_access/roles # HERE`, 'dots'],
  ].map(([mistake = '', text, name = '']) => ({
    mistake,
    files: guarded(`${METADATA}  auth-jwt:\n    ${text}`),
    names: [name],
  })),
  {
    mistake: 'a discovery document as the audience of opaque tokens',
    files: guarded(
      `${METADATA}  auth-introspection:\n    clientId: c\n    clientSecret: s\n    endpoint: ${ISSUER}/introspect\n    audience: ${DISCOVERY} # HERE`,
    ),
    names: ['identifier'],
  },
  {
    mistake: 'a policy that nothing names',
    files: guarded(`${METADATA}${JWT}  tool-policy:\n    policies:\n      admin: { scope: mcp.read } # HERE`),
    severity: 'warning',
    names: ['nothing uses'],
  },
  {
    mistake: 'a wildcard of CORS headers with credentials',
    files: withPlugin(
      '  cors:\n    policies:\n      p:\n        origins: ["https://a.example"]\n        credentials: true\n        headers: ["*"] # HERE',
      { routes: 'routes: { /: { toolsets: a, cors: p } }' },
    ),
    names: ['list the names'],
  },
  {
    mistake: 'a scope with a space of the user of stdio',
    files: withPlugin('  transport-stdio:\n    user:\n      subject: ann\n      scopes: [a b] # HERE'),
    names: ['"a b"'],
  },
  { mistake: 'tasks that end at once', files: withPlugin('  tasks:\n    ttl: 0s # HERE'), names: ['above zero'] },
  { mistake: 'tasks without a size', files: withPlugin('  tasks:\n    maxSize: 0b # HERE'), names: ['"0b"'] },
  { mistake: 'an icon without its data', files: icon('{ src: "data:image/png;base64" }'), names: ['data URI'] },
  { mistake: 'a template of JavaScript', files: resource(`uriTemplate: 'notes://\${id}'`), names: ['without'] },
  {
    mistake: 'a last modification in words',
    files: resource("uri: 'notes://all', annotations: { lastModified: 'yesterday' }"),
    names: ['ISO 8601'],
  },
]
