// Who calls: auth-jwt, auth-introspection, resource-metadata.
import { type Row, withPlugin } from './row.ts'

const ISSUER = 'https://login.acme.example'
const GUARDED = 'routes:\n  /:\n    toolsets: a\n    authorize: true'
const METADATA = `  resource-metadata: { authorizationServers: ["${ISSUER}"] }\n`
const jwt = (text: string, more = '') => withPlugin(`${METADATA}  auth-jwt:\n${text}`, { routes: GUARDED, more })
const introspection = (text: string) =>
  withPlugin(`${METADATA}  auth-introspection:\n    clientId: c\n    clientSecret: s\n${text}`, { routes: GUARDED })

export const AUTH_ROWS: readonly Row[] = [
  {
    mistake: 'auth-jwt without keys',
    files: jwt('    audience: x'),
    at: 'mcp.config.yaml:10',
    names: ['jwksUri'],
  },
  {
    mistake: 'authority together with another issuer',
    files: jwt(`    authority: ${ISSUER}\n    issuer: https://other.example`),
    at: 'mcp.config.yaml:10',
    names: ['authority', 'issuer'],
  },
  {
    mistake: 'keys from two places',
    files: jwt(`    authority: ${ISSUER}\n    jwksUri: ${ISSUER}/keys`),
    at: 'mcp.config.yaml:10',
    names: ['jwksUri'],
  },
  {
    mistake: 'keys without an issuer',
    files: jwt(`    jwksUri: ${ISSUER}/keys`),
    at: 'mcp.config.yaml:10',
    names: ['jwksUri'],
  },
  {
    mistake: 'issuer together with issuers',
    files: jwt(`    authority: ${ISSUER}\n    issuers: [{ authority: ${ISSUER} }] # HERE`),
    names: ['issuer', 'issuers'],
  },
  {
    mistake: 'an issuer twice',
    files: jwt(`    issuers:\n      - authority: ${ISSUER}\n      - authority: ${ISSUER} # HERE`),
    names: [`"${ISSUER}"`],
  },
  {
    mistake: 'a shared secret that is short',
    files: jwt(`    issuer: ${ISSUER}\n    secret: short # HERE`),
    names: ['32 characters', 'openssl rand -base64 32'],
  },
  {
    mistake: 'an authority without a scheme',
    files: jwt('    authority: login.acme.example # HERE'),
    names: ['login.acme.example', 'http'],
  },
  {
    mistake: 'an algorithm that is not known',
    files: jwt(`    authority: ${ISSUER}\n    algorithms: [RS265] # HERE`),
    names: ['"RS265"', '"RS256"'],
  },
  {
    mistake: 'an algorithm that does not go with the keys',
    files: jwt(`    authority: ${ISSUER}\n    algorithms: [HS256]`),
    at: 'mcp.config.yaml:10',
    names: ['RS256'],
  },
  {
    mistake: 'an audience that is empty',
    files: jwt(`    authority: ${ISSUER}\n    audience: [] # HERE`),
    names: ['empty'],
  },
  {
    mistake: 'a check that is not known',
    files: jwt(`    authority: ${ISSUER}\n    validate:\n      issuers: false # HERE`),
    names: ['"issuer"'],
  },
  {
    mistake: 'an audience that cannot be determined',
    files: withPlugin(`  auth-jwt: { authority: "${ISSUER}" } # HERE`, {
      routes: GUARDED,
      more: 'http: { host: 0.0.0.0 }',
    }),
    names: ['http.publicUrl', 'plugins.auth-jwt.audience'],
  },
  {
    mistake: 'auth-jwt without metadata',
    files: withPlugin(`  auth-jwt: { authority: "${ISSUER}" }`, { routes: `${GUARDED} # HERE` }),
    severity: 'warning',
    names: ['resource-metadata'],
  },
  {
    mistake: 'an issuer over http',
    files: jwt('    authority: http://login.acme.example # HERE'),
    severity: 'warning',
    names: ['https'],
  },
  {
    mistake: 'an issuer over http in production',
    files: jwt('    authority: http://login.acme.example # HERE'),
    env: { NODE_ENV: 'production' },
    names: ['https'],
  },
  {
    mistake: 'an authorization server over http in production',
    files: withPlugin(
      `  auth-jwt: { authority: "${ISSUER}" }\n  resource-metadata:\n    authorizationServers:\n      - http://login.acme.example # HERE`,
      { routes: GUARDED },
    ),
    env: { NODE_ENV: 'production' },
    names: ['http://login.acme.example'],
  },
  {
    mistake: 'introspection over http in production',
    files: introspection('    endpoint: http://login.acme.example/introspect # HERE'),
    env: { NODE_ENV: 'production' },
    names: ['https'],
  },
  {
    mistake: 'introspection without a client secret',
    files: withPlugin(`${METADATA}  auth-introspection: { endpoint: "${ISSUER}/i", clientId: c } # HERE`, {
      routes: GUARDED,
    }),
    names: ['missing'],
  },
  {
    mistake: 'answers of introspection that are kept for too long',
    files: introspection(`    endpoint: ${ISSUER}/i\n    cacheFor: 1h # HERE`),
    names: ['5m'],
  },
  {
    mistake: 'metadata without authorization servers',
    files: withPlugin(`  auth-jwt: { authority: "${ISSUER}" }\n  resource-metadata: {} # HERE`, { routes: GUARDED }),
    names: ['missing', '"https://login.acme.example"'],
  },
  {
    mistake: 'resource metadata without publicUrl',
    files: withPlugin(
      `  auth-jwt: { authority: "${ISSUER}", audience: x }\n  resource-metadata: { authorizationServers: ["${ISSUER}"] } # HERE`,
      { routes: GUARDED, more: 'http: { host: 0.0.0.0 }' },
    ),
    names: ['http.publicUrl'],
  },
  {
    mistake: 'an address of metadata without a resource',
    files: withPlugin(
      `  auth-jwt: { authority: "${ISSUER}" }\n  resource-metadata:\n    authorizationServers: ["${ISSUER}"]\n    resourceMetadataUri: /meta # HERE`,
      { routes: GUARDED },
    ),
    names: ['`resource`'],
  },
  {
    mistake: 'a resource over http',
    files: withPlugin(
      `  auth-jwt: { authority: "${ISSUER}" }\n  resource-metadata:\n    authorizationServers: ["${ISSUER}"]\n    resource: http://mcp.acme.example # HERE`,
      { routes: GUARDED },
    ),
    names: ['http://mcp.acme.example', 'URL', 'RFC'],
  },
  {
    mistake: 'an option of introspection that is misspelt',
    files: introspection(`    endpoint: ${ISSUER}/i\n    cachFor: 1m # HERE`),
    names: ['"cacheFor"'],
  },
]
