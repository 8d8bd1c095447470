// What is wrong with each bad server of the tests, the error that it must end in, and how many requests it may take.
import type { BadCase } from './bad-world.ts'
import type { Reply } from './fake-servers.ts'

const PRM = '/.well-known/oauth-protected-resource/mcp'
const ASM = '/.well-known/oauth-authorization-server'
const MANY = 50

const html = { status: 200, headers: { 'Content-Type': 'text/html' }, body: '<html>Please pay for the network</html>' }
const never = new Promise(() => {})
const huge: Reply = { status: 200, headers: { 'Content-Type': 'application/json' }, body: `"${'x'.repeat(2_000_000)}"` }
const deep: Reply = { status: 200, body: `${'['.repeat(100_000)}` }
/** A byte now and then, without end. */
const dripping: Reply = {
  status: 200,
  headers: { 'Content-Type': 'application/json' },
  stream(response) {
    const timer = setInterval(() => response.write(' '), 20)
    response.once('close', () => clearInterval(timer))
  },
}
const redirectTo = (location: string): Reply => ({ status: 302, headers: { Location: location } })

/** Refuses, and writes back what was posted, in every place that a client might show. */
const echo =
  (path: string): BadCase['make'] =>
  ({ as }) => {
    const fault = {
      status: 400,
      get body() {
        const { body = '', headers } = as.to(path).at(-1) ?? {}
        const basic = Buffer.from(headers?.authorization?.split(' ')[1] ?? '', 'base64').toString()
        return { error: 'invalid_request', error_description: `${body} ${headers?.authorization} ${basic}`, more: body }
      },
    }
    as.failNext(path, fault, MANY)
  }

export const documents: BadCase[] = [
  {
    what: 'resource metadata: 2 MB',
    code: 'malformed_response',
    within: 3,
    make: ({ rs }) => rs.failNext(PRM, huge, MANY),
  },
  {
    what: 'resource metadata: HTML',
    code: 'invalid_resource_metadata',
    within: 3,
    make: ({ rs }) => rs.failNext(PRM, html, MANY),
  },
  {
    what: 'resource metadata: 100,000 open brackets',
    code: 'invalid_resource_metadata',
    within: 3,
    make: ({ rs }) => rs.failNext(PRM, deep, MANY),
  },
  {
    what: 'resource metadata: redirects in a circle',
    code: 'malformed_response',
    within: 6,
    make: ({ rs }) => rs.failNext(PRM, redirectTo(PRM), MANY),
  },
  {
    what: 'resource metadata: 503',
    code: 'temporarily_unavailable',
    within: 4,
    make: ({ rs }) => rs.failNext(PRM, { status: 503, body: 'busy' }, MANY),
  },
  {
    what: 'resource metadata: connection reset',
    code: 'temporarily_unavailable',
    within: 4,
    make: ({ rs }) => rs.failNext(PRM, { reset: 'after-body' }, MANY),
  },
  {
    what: "resource metadata: other origin's resource",
    code: 'resource_mismatch',
    within: 2,
    make: ({ rs, as }) => {
      rs.settings.metadata = { resource: `${as.url}/mcp` }
    },
  },
  {
    what: 'resource metadata: sibling path',
    code: 'resource_mismatch',
    within: 2,
    make: ({ rs }) => {
      rs.settings.metadata = { resource: `${rs.url}/mcp2` }
    },
  },
  {
    what: 'resource metadata: no resource',
    code: 'invalid_resource_metadata',
    within: 2,
    make: ({ rs }) => {
      rs.settings.metadata = { resource: undefined }
    },
  },
  {
    what: 'resource metadata: no authorization server',
    code: 'invalid_resource_metadata',
    within: 2,
    make: ({ rs }) => {
      rs.settings.metadata = { authorization_servers: [] }
    },
  },
  {
    what: 'resource metadata: a relative authorization server',
    code: 'invalid_resource_metadata',
    within: 2,
    make: ({ rs, as }) => {
      rs.settings.metadata = { authorization_servers: [as.issuer, '/as'] }
    },
  },
  {
    what: 'server metadata: 2 MB',
    code: 'malformed_response',
    within: 3,
    make: ({ as }) => as.failNext(ASM, huge, MANY),
  },
  {
    what: 'server metadata: HTML everywhere',
    code: 'invalid_server_metadata',
    within: 4,
    make: ({ as }) => as.failNext(ASM, html, MANY),
  },
  {
    what: "server metadata: another server's issuer (mix-up)",
    code: 'issuer_mismatch',
    within: 3,
    make: ({ as, servers }) => {
      as.settings.metadata = { issuer: servers[1]?.issuer }
    },
  },
  {
    what: 'server metadata: issuer with a slash more',
    code: 'issuer_mismatch',
    within: 3,
    make: ({ as }) => {
      as.settings.metadata = { issuer: `${as.issuer}/` }
    },
  },
  {
    what: 'server metadata: no PKCE',
    code: 'pkce_unsupported',
    within: 4,
    make: ({ as }) => {
      as.settings.codeChallengeMethods = undefined
    },
  },
  {
    what: 'server metadata: plain PKCE alone',
    code: 'pkce_unsupported',
    within: 4,
    make: ({ as }) => {
      as.settings.codeChallengeMethods = ['plain']
    },
  },
  {
    what: 'server metadata: http token endpoint',
    code: 'insecure_endpoint',
    within: 3,
    make: ({ as }) => {
      as.settings.metadata = { token_endpoint: 'http://as.example/token' }
    },
  },
  {
    what: 'server metadata: javascript: authorization endpoint',
    code: 'insecure_endpoint',
    within: 3,
    make: ({ as }) => {
      as.settings.metadata = { authorization_endpoint: 'javascript:alert(1)' }
    },
  },
  {
    what: 'server metadata: no token endpoint',
    code: 'invalid_server_metadata',
    within: 3,
    make: ({ as }) => {
      as.settings.metadata = { token_endpoint: undefined }
    },
  },
  {
    what: 'authorization server: nobody there',
    code: 'temporarily_unavailable',
    within: 4,
    make: ({ rs }) => {
      rs.settings.metadata = { authorization_servers: ['http://127.0.0.1:1'] }
    },
  },
]

export const registration: BadCase[] = [
  {
    what: 'registration: refused, all written back',
    code: 'registration_rejected',
    within: 4,
    make: echo('/register'),
  },
  {
    what: 'registration: HTML',
    code: 'registration_rejected',
    within: 4,
    make: ({ as }) => as.failNext('/register', html, MANY),
  },
  {
    what: 'registration: 2 MB',
    code: 'malformed_response',
    within: 4,
    make: ({ as }) => as.failNext('/register', huge, MANY),
  },
  {
    what: 'registration: a redirect',
    code: 'malformed_response',
    within: 4,
    make: ({ as, rs }) => as.failNext('/register', redirectTo(`${rs.url}/register`), MANY),
  },
  {
    what: 'registration: not possible, and no client id',
    code: 'client_information_required',
    within: 3,
    make: ({ as }) => {
      as.settings.registration = 'off'
    },
  },
]

export const responses: BadCase[] = [
  {
    what: 'login: another state',
    code: 'state_mismatch',
    within: 5,
    make: ({ as }) => {
      as.settings.state = 'x'
    },
  },
  {
    what: 'login: no state',
    code: 'state_mismatch',
    within: 5,
    make: ({ as }) => {
      as.settings.state = null
    },
  },
  {
    what: "login: another server's iss (mix-up)",
    code: 'issuer_mismatch',
    within: 5,
    make: ({ as, servers }) => {
      as.settings.iss = servers[1]?.issuer
    },
  },
  {
    what: 'login: no iss',
    code: 'issuer_mismatch',
    within: 5,
    make: ({ as }) => {
      as.settings.iss = null
    },
  },
  {
    what: 'login: two codes',
    code: 'malformed_response',
    within: 5,
    make: ({ as }) => {
      as.settings.duplicated = ['code']
    },
  },
  {
    what: 'login: refused',
    code: 'access_denied',
    within: 5,
    make: ({ as }) => {
      as.settings.authorizationError = 'access_denied'
    },
  },
  {
    what: 'login: scopes refused, to a client that was just registered',
    code: 'invalid_scope',
    within: 5,
    make: ({ as }) => {
      as.settings.authorizationError = 'invalid_scope'
    },
  },
  {
    what: 'login: scopes refused, to a configured client',
    code: 'invalid_scope',
    within: 4,
    make: ({ as }) => {
      as.settings.authorizationError = 'invalid_scope'
    },
    options: { clientId: 'known', clientSecret: 'configured-secret/of+the client' },
  },
  {
    what: 'login: nobody answers',
    code: 'login_timeout',
    within: 4,
    make: () => {},
    options: { loginTimeoutMs: 100, authorizationRedirectDelegate: () => new Promise(() => {}) },
  },
]

const token = (what: string, code: string, reply: Reply, within = 6): BadCase => ({
  what: `token: ${what}`,
  code,
  within,
  make: ({ as }) => as.failNext('/token', reply, MANY),
})

export const tokens: BadCase[] = [
  token('2 MB', 'malformed_response', huge),
  token('HTML (a captive portal)', 'temporarily_unavailable', html, 8),
  token('an empty object', 'malformed_response', { status: 200, body: {} }),
  token('a redirect', 'malformed_response', redirectTo('http://127.0.0.1:1/token')),
  token('a type that nobody knows', 'malformed_response', {
    status: 200,
    body: { access_token: 'mac-token', token_type: 'mac' },
  }),
  token('200 with an error', 'bad_verification_code', { status: 200, body: { error: 'bad_verification_code' } }),
  token('500 for ever', 'temporarily_unavailable', { status: 500, body: 'oh' }, 9),
  token('refuses every client', 'invalid_client', { status: 401, body: { error: 'invalid_client' } }, 12),
  {
    what: 'token: refused, all written back',
    code: 'invalid_request',
    within: 6,
    make: echo('/token'),
    options: { clientId: 'known', clientSecret: 'configured-secret/of+the client' },
  },
]

export const slow: BadCase[] = [
  { what: 'resource metadata: no answer', path: PRM, fault: { hold: never } },
  { what: 'resource metadata: a byte now and then', path: PRM, fault: dripping },
].map(({ what, path, fault }) => ({
  what,
  code: 'temporarily_unavailable',
  within: 4,
  make: ({ rs }) => rs.failNext(path, fault, MANY),
}))
for (const [what, path] of [
  ['server metadata', ASM],
  ['registration', '/register'],
  ['token', '/token'],
] as const) {
  for (const [how, fault] of [
    ['no answer', { hold: never }],
    ['a byte now and then', dripping],
  ] as const) {
    const make: BadCase['make'] = ({ as }) => as.failNext(path, fault, MANY)
    slow.push({ what: `${what}: ${how}`, code: 'temporarily_unavailable', within: 9, make })
  }
}
