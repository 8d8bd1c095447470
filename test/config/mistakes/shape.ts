// What a config may hold: unknown keys at each level, near misses, types, units.
import { code, config, GOOD_TOOL, type Row, tools, withPlugin } from './row.ts'

export const SHAPE_ROWS: readonly Row[] = [
  {
    mistake: 'a top-level key that is nearly one',
    files: config({ more: 'toolset: {} # HERE' }),
    names: ['"toolsets"'],
  },
  {
    mistake: 'an unknown top-level key',
    files: config({ more: 'wibble: 1 # HERE' }),
    names: ['toolsets'],
  },
  {
    mistake: 'a key at the top that belongs into http',
    files: config({ more: 'port: 3000 # HERE' }),
    names: ['"http.port"'],
  },
  {
    mistake: 'a key at the top that belongs into server',
    files: config({ more: 'instructions: be kind # HERE' }),
    names: ['"server.instructions"'],
  },
  {
    mistake: 'an unknown key of server',
    files: config({ server: 'server:\n  name: a\n  versoin: "1" # HERE\n  version: "1"' }),
    names: ['"version"'],
  },
  {
    mistake: 'an unknown key of http',
    files: config({ more: 'http:\n  prot: 3000 # HERE' }),
    names: ['"port"'],
  },
  {
    mistake: 'an unknown key of sessions',
    files: config({ more: 'sessions:\n  idleTimout: 1h # HERE' }),
    names: ['"idleTimeout"'],
  },
  {
    mistake: 'an unknown key of tools',
    files: config({ more: 'tools:\n  calTimeout: 30s # HERE' }),
    names: ['"callTimeout"'],
  },
  {
    mistake: 'an unknown key of a route',
    files: config({ routes: 'routes:\n  /:\n    toolsets: a\n    authorise: true # HERE' }),
    names: ['"authorize"'],
  },
  {
    mistake: 'toolset for toolsets on a route',
    files: config({ routes: 'routes:\n  /:\n    toolset: a # HERE' }),
    names: ['"toolsets"'],
  },
  {
    mistake: 'no server',
    files: config({ server: '' }),
    at: 'mcp.config.yaml:2',
    names: ['missing', 'acme-tools'],
  },
  {
    mistake: 'a server without a version',
    files: config({ server: 'server: { name: a } # HERE' }),
    names: ['missing', '1.0.0'],
  },
  { mistake: 'no toolsets', files: config({ toolsets: '' }), at: 'mcp.config.yaml:1', names: ['missing'] },
  { mistake: 'no routes', files: config({ routes: '' }), at: 'mcp.config.yaml:1', names: ['missing'] },
  {
    mistake: 'a port that is text',
    files: config({ more: 'http:\n  port: "3000" # HERE' }),
    names: ['"3000"'],
  },
  {
    mistake: 'a port out of range',
    files: config({ more: 'http:\n  port: 70000 # HERE' }),
    names: ['70000', '65535'],
  },
  {
    mistake: 'a duration without a unit that is known',
    files: config({ more: 'sessions:\n  idleTimeout: 2 hours # HERE' }),
    names: ['"2 hours"'],
  },
  {
    mistake: 'a duration in upper case',
    files: config({ more: 'sessions:\n  idleTimeout: 2H # HERE' }),
    names: ['"2H"', 'duration'],
  },
  {
    mistake: 'an invalid size',
    files: config({ more: 'http:\n  maxBodySize: large # HERE' }),
    names: ['"large"'],
  },
  {
    mistake: 'a public URL without a scheme',
    files: config({ more: 'http:\n  publicUrl: mcp.acme.example # HERE' }),
    names: ['"mcp.acme.example"', 'https://mcp.acme.example'],
  },
  {
    mistake: 'a switch that is text',
    files: config({ more: 'stateless: "yes" # HERE' }),
    names: ['"yes"'],
  },
  {
    mistake: 'a list where an object is to be',
    files: config({ routes: 'routes: [/] # HERE' }),
    names: ['list', 'object'],
  },
  {
    mistake: 'a toolset that is a number',
    files: config({ toolsets: 'toolsets:\n  a: 7 # HERE' }),
    names: ['expected'],
  },
  {
    mistake: 'a route without a slash',
    files: config({ routes: 'routes:\n  admin: { toolsets: a } # HERE' }),
    names: ['"admin"'],
  },
  {
    mistake: 'a toolset name with a slash',
    files: config({ toolsets: 'toolsets:\n  a: ./tools.mjs\n  x/y: ./tools.mjs # HERE' }),
    names: ['"x/y"'],
  },
  {
    mistake: 'an icon without src',
    files: config({ server: 'server:\n  name: a\n  version: "1"\n  icons:\n    - mimeType: image/png # HERE' }),
    names: ['missing'],
  },
  {
    mistake: 'a secret that is a number',
    files: config({ more: 'secrets:\n  - 123456 # HERE' }),
    names: ['expected'],
  },
  {
    mistake: 'secrets that are one text',
    files: config({ more: 'secrets: abc # HERE' }),
    names: ['string', 'list'],
  },
  {
    mistake: 'a secret that is short',
    files: config({ more: 'secrets:\n  - short # HERE' }),
    names: ['32 characters', 'openssl rand -base64 32'],
  },
  {
    mistake: 'a secret that is a public key',
    files: config({
      more: 'secrets:\n  - "-----BEGIN PUBLIC KEY-----\\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\\n-----END PUBLIC KEY-----" # HERE',
    }),
    names: ['secrets[0]'],
  },
  {
    mistake: 'short secrets in the environment',
    files: config({}),
    env: { MCP_HOST_SECRETS: 'short' },
    noLine: 'it is in the environment',
    names: ['MCP_HOST_SECRETS[0]', '32 characters', 'openssl rand -base64 32'],
  },
  {
    mistake: 'a proxy that is no address',
    files: config({ more: 'http:\n  trustProxy: [10.0.0.0/99] # HERE' }),
    names: ['10.0.0.0/99', '10.0.0.0/8'],
  },
  {
    mistake: 'a plugin that is enabled by `true`',
    files: withPlugin('  health: true # HERE'),
    names: ['true', 'false'],
  },
  {
    mistake: 'plugins that are a list',
    files: config({ plugins: 'plugins: [transport-streamable] # HERE' }),
    names: ['list', 'object'],
  },
  {
    mistake: 'an unknown key in a config in code',
    files: {
      ...code(
        "export default defineConfig({\n  server: { name: 'a', version: '1' },\n  toolsets: { a: './tools.mjs' },\n  routes: { '/': { toolsets: 'a', statelss: true } }, // HERE\n  plugins: { 'transport-streamable': {} },\n} as never)",
      ),
      ...tools(GOOD_TOOL),
    },
    names: ['"stateless"'],
  },
  {
    mistake: 'an unknown key in a config of JSON',
    files: {
      'mcp.config.json':
        '{\n  "server": { "name": "a", "version": "1" },\n  "toolsets": { "a": "./tools.mjs" },\n  "routes": {\n    "/": {\n      "toolsets": "a",\n      "lissten": true\n    }\n  },\n  "plugins": { "transport-streamable": {} }\n}',
      ...tools(GOOD_TOOL),
    },
    at: 'mcp.config.json:7',
    names: ['"listen"'],
  },
]
