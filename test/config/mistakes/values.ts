// Values of the right type that can never work.
import { config, ofTools, type Row, withPlugin } from './row.ts'

const ISSUER = 'https://login.acme.example'
const DISCOVERY = `${ISSUER}/.well-known/openid-configuration`
const METADATA = `  resource-metadata: { authorizationServers: ["${ISSUER}"], scopesSupported: [mcp.read] }\n`
const JWT = `  auth-jwt: { authority: "${ISSUER}" }\n`
const GUARDED = 'routes:\n  /:\n    toolsets: a\n    authorize: true'
const http = (text: string) => config({ more: `http:\n  ${text} # HERE` })
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
    names: ['"https://app.acme.example"'],
  },
  {
    mistake: 'an allowed origin with a wildcard',
    files: http('allowedOrigins: ["https://*.acme.example"]'),
    names: ['wildcard'],
  },
  {
    mistake: 'an allowed host that is a URL',
    files: http('allowedHosts: ["https://mcp.acme.example"]'),
    names: ['"mcp.acme.example"'],
  },
  { mistake: 'an allowed host with a wildcard', files: http('allowedHosts: ["*.acme.example"]'), names: ['wildcard'] },
  { mistake: 'a URL as the address to listen on', files: http('host: "http://0.0.0.0"'), names: ['"0.0.0.0"'] },
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
    mistake: 'a discovery document as the authority',
    files: guarded(`${METADATA}  auth-jwt:\n    authority: ${DISCOVERY} # HERE`),
    names: [`"${ISSUER}"`],
  },
  {
    mistake: 'a discovery document as the key set',
    files: guarded(`${METADATA}  auth-jwt:\n    issuer: ${ISSUER}\n    jwksUri: ${DISCOVERY} # HERE`),
    names: ['`authority`'],
  },
  {
    mistake: 'a discovery document as the issuer',
    files: guarded(`${METADATA}  auth-jwt:\n    jwksUri: ${ISSUER}/jwks\n    issuer: ${DISCOVERY} # HERE`),
    names: [`"${ISSUER}"`],
  },
  {
    mistake: 'a discovery document as an authorization server',
    files: guarded(`${JWT}  resource-metadata:\n    authorizationServers:\n      - ${DISCOVERY} # HERE`),
    names: [`"${ISSUER}"`],
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
    names: ['"https://a.example"'],
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
  {
    mistake: 'a last modification in words',
    files: resource("uri: 'notes://all', annotations: { lastModified: 'yesterday' }"),
    names: ['ISO 8601'],
  },
]
