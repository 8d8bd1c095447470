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
    says: ['no keys', 'set authority, or issuer with one of jwksUri, keys and secret'],
  },
  {
    mistake: 'authority together with another issuer',
    files: jwt(`    authority: ${ISSUER}\n    issuer: https://other.example`),
    at: 'mcp.config.yaml:10',
    says: ['authority is the name of the issuer', 'leave issuer out'],
  },
  {
    mistake: 'keys from two places',
    files: jwt(`    authority: ${ISSUER}\n    jwksUri: ${ISSUER}/keys`),
    at: 'mcp.config.yaml:10',
    says: ['authority and jwksUri exclude each other', 'keys come from one place'],
  },
  {
    mistake: 'keys without an issuer',
    files: jwt(`    jwksUri: ${ISSUER}/keys`),
    at: 'mcp.config.yaml:10',
    says: ['jwksUri without issuer', 'whose keys are these?'],
  },
  {
    mistake: 'issuer together with issuers',
    files: jwt(`    authority: ${ISSUER}\n    issuers: [{ authority: ${ISSUER} }] # HERE`),
    says: ['the issuer stands beside issuers', 'put it into the list'],
  },
  {
    mistake: 'an issuer twice',
    files: jwt(`    issuers:\n      - authority: ${ISSUER}\n      - authority: ${ISSUER} # HERE`),
    says: [`the issuer "${ISSUER}" is there twice`, 'remove one of them'],
  },
  {
    mistake: 'a shared secret that is short',
    files: jwt(`    issuer: ${ISSUER}\n    secret: short # HERE`),
    says: ['it is shorter than 32 characters', 'openssl rand -base64 32'],
  },
  {
    mistake: 'an authority without a scheme',
    files: jwt('    authority: login.acme.example # HERE'),
    says: ['login.acme.example', 'http'],
  },
  {
    mistake: 'an algorithm that is not known',
    files: jwt(`    authority: ${ISSUER}\n    algorithms: [RS265] # HERE`),
    says: ['found "RS265"', 'did you mean "RS256"?'],
  },
  {
    mistake: 'an algorithm that does not go with the keys',
    files: jwt(`    authority: ${ISSUER}\n    algorithms: [HS256]`),
    at: 'mcp.config.yaml:10',
    says: ['none of the algorithms works with public keys', 'take from RS256'],
  },
  {
    mistake: 'an audience that is empty',
    files: jwt(`    authority: ${ISSUER}\n    audience: [] # HERE`),
    says: ['found an empty list', 'a list of at least 1'],
  },
  {
    mistake: 'a check that is not known',
    files: jwt(`    authority: ${ISSUER}\n    validate:\n      issuers: false # HERE`),
    says: ['unknown option', 'did you mean "issuer"?'],
  },
  {
    mistake: 'an audience that cannot be determined',
    files: withPlugin(`  auth-jwt: { authority: "${ISSUER}" } # HERE`, {
      routes: GUARDED,
      more: 'http: { host: 0.0.0.0 }',
    }),
    says: ['whom are tokens for?', 'set http.publicUrl, or plugins.auth-jwt.audience'],
  },
  {
    mistake: 'auth-jwt without metadata',
    files: withPlugin(`  auth-jwt: { authority: "${ISSUER}" }`, { routes: `${GUARDED} # HERE` }),
    severity: 'warning',
    says: ['clients are asked for a token and not told who gives it out', 'switch on resource-metadata'],
  },
  {
    mistake: 'an issuer over http',
    files: jwt('    authority: http://login.acme.example # HERE'),
    severity: 'warning',
    says: ['keys are fetched over plain http', 'use https'],
  },
  {
    mistake: 'an issuer over http in production',
    files: jwt('    authority: http://login.acme.example # HERE'),
    env: { NODE_ENV: 'production' },
    says: ['keys are fetched over plain http', 'use https'],
  },
  {
    mistake: 'an authorization server over http in production',
    files: withPlugin(
      `  auth-jwt: { authority: "${ISSUER}" }\n  resource-metadata:\n    authorizationServers:\n      - http://login.acme.example # HERE`,
      { routes: GUARDED },
    ),
    env: { NODE_ENV: 'production' },
    says: ['http://login.acme.example is not https', 'use https'],
  },
  {
    mistake: 'introspection over http in production',
    files: introspection('    endpoint: http://login.acme.example/introspect # HERE'),
    env: { NODE_ENV: 'production' },
    says: ['sent over plain http', 'use https'],
  },
  {
    mistake: 'introspection without a client secret',
    files: withPlugin(`${METADATA}  auth-introspection: { endpoint: "${ISSUER}/i", clientId: c } # HERE`, {
      routes: GUARDED,
    }),
    says: ['missing', 'expected'],
  },
  {
    mistake: 'answers of introspection that are kept for too long',
    files: introspection(`    endpoint: ${ISSUER}/i\n    cacheFor: 1h # HERE`),
    says: ['it is more than 5m', 'write 5m or less'],
  },
  {
    mistake: 'metadata without authorization servers',
    files: withPlugin(`  auth-jwt: { authority: "${ISSUER}" }\n  resource-metadata: {} # HERE`, { routes: GUARDED }),
    says: ['missing', 'such as ["https://login.acme.example"]'],
  },
  {
    mistake: 'resource metadata without publicUrl',
    files: withPlugin(
      `  auth-jwt: { authority: "${ISSUER}", audience: x }\n  resource-metadata: { authorizationServers: ["${ISSUER}"] } # HERE`,
      { routes: GUARDED, more: 'http: { host: 0.0.0.0 }' },
    ),
    says: ['set http.publicUrl', 'how clients reach this host'],
  },
  {
    mistake: 'an address of metadata without a resource',
    files: withPlugin(
      `  auth-jwt: { authority: "${ISSUER}" }\n  resource-metadata:\n    authorizationServers: ["${ISSUER}"]\n    resourceMetadataUri: /meta # HERE`,
      { routes: GUARDED },
    ),
    says: ['it needs `resource`', 'one document can describe one resource only'],
  },
  {
    mistake: 'a resource over http',
    files: withPlugin(
      `  auth-jwt: { authority: "${ISSUER}" }\n  resource-metadata:\n    authorizationServers: ["${ISSUER}"]\n    resource: http://mcp.acme.example # HERE`,
      { routes: GUARDED },
    ),
    says: ['http://mcp.acme.example must be an https URL', 'RFC 9728'],
  },
  {
    mistake: 'an option of introspection that is misspelt',
    files: introspection(`    endpoint: ${ISSUER}/i\n    cachFor: 1m # HERE`),
    says: ['unknown option', 'did you mean "cacheFor"?'],
  },
]
