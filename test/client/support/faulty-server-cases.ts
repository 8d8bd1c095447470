// What is wrong with each bad server of the tests, the error that it must end in, and how many requests it may take.

import type { Fault, Reply } from './fake-servers.ts'
import type { AuthorizationServerSettings } from './fake-settings.ts'
import { type BadCase, SECRETS, type World } from './faulty-server-setup.ts'

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

type Make = BadCase['make']

const bad = (what: string, code: string, within: number, make: Make, options = {}): BadCase => ({
  ...{ what, code, within, make, options },
})

/** Every request of a path meets this. */
const atResource =
  (fault: Fault): Make =>
  ({ rs }) =>
    rs.failNext(PRM, fault, MANY)
const atServer =
  (path: string, fault: Fault): Make =>
  ({ as }) =>
    as.failNext(path, fault, MANY)

/** Members of the resource's metadata, or of the server's, that are lies. */
const resourceSays =
  (metadata: (world: World) => object): Make =>
  world => {
    world.rs.settings.metadata = metadata(world) as Readonly<Record<string, unknown>>
  }
const serverSays =
  (metadata: (world: World) => object): Make =>
  world => {
    world.as.settings.metadata = metadata(world) as Readonly<Record<string, unknown>>
  }
const serverIs =
  (settings: (world: World) => Partial<AuthorizationServerSettings>): Make =>
  world => {
    Object.assign(world.as.settings, settings(world))
  }

const otherIssuer = ({ servers }: World) => servers[1]?.issuer
const known = { clientId: 'known', clientSecret: SECRETS.clientSecret }

export const documents: BadCase[] = [
  bad('resource metadata: 2 MB', 'malformed_response', 3, atResource(huge)),
  bad('resource metadata: HTML', 'invalid_resource_metadata', 3, atResource(html)),
  bad('resource metadata: 100,000 open brackets', 'invalid_resource_metadata', 3, atResource(deep)),
  bad('resource metadata: redirects in a circle', 'malformed_response', 6, atResource(redirectTo(PRM))),
  bad('resource metadata: 503', 'temporarily_unavailable', 4, atResource({ status: 503, body: 'busy' })),
  bad('resource metadata: connection reset', 'temporarily_unavailable', 4, atResource({ reset: 'after-body' })),
  bad(
    "resource metadata: other origin's resource",
    'resource_mismatch',
    3,
    resourceSays(({ as }) => ({ resource: `${as.url}/mcp` })),
  ),
  bad(
    'resource metadata: sibling path',
    'resource_mismatch',
    3,
    resourceSays(({ rs }) => ({ resource: `${rs.url}/mcp2` })),
  ),
  bad(
    'resource metadata: no resource',
    'invalid_resource_metadata',
    3,
    resourceSays(() => ({ resource: undefined })),
  ),
  bad(
    'resource metadata: no authorization server',
    'invalid_resource_metadata',
    3,
    resourceSays(() => ({ authorization_servers: [] })),
  ),
  bad(
    'resource metadata: a relative authorization server',
    'invalid_resource_metadata',
    3,
    resourceSays(({ as }) => ({ authorization_servers: [as.issuer, '/as'] })),
  ),
  bad(
    'authorization server: nobody there',
    'temporarily_unavailable',
    4,
    resourceSays(() => ({ authorization_servers: ['http://127.0.0.1:1'] })),
  ),
  bad('server metadata: 2 MB', 'malformed_response', 4, atServer(ASM, huge)),
  bad('server metadata: HTML everywhere', 'invalid_server_metadata', 4, atServer(ASM, html)),
  bad(
    "server metadata: another server's issuer (mix-up)",
    'issuer_mismatch',
    4,
    serverSays(world => ({ issuer: otherIssuer(world) })),
  ),
  bad(
    'server metadata: issuer with a slash more',
    'issuer_mismatch',
    4,
    serverSays(({ as }) => ({ issuer: `${as.issuer}/` })),
  ),
  bad(
    'server metadata: no PKCE',
    'pkce_unsupported',
    4,
    serverIs(() => ({ codeChallengeMethods: undefined })),
  ),
  bad(
    'server metadata: plain PKCE alone',
    'pkce_unsupported',
    4,
    serverIs(() => ({ codeChallengeMethods: ['plain'] })),
  ),
  bad(
    'server metadata: http token endpoint',
    'insecure_endpoint',
    4,
    serverSays(() => ({ token_endpoint: 'http://as.example/token' })),
  ),
  bad(
    'server metadata: javascript: authorization endpoint',
    'insecure_endpoint',
    4,
    serverSays(() => ({ authorization_endpoint: 'javascript:alert(1)' })),
  ),
  bad(
    'server metadata: no token endpoint',
    'invalid_server_metadata',
    4,
    serverSays(() => ({ token_endpoint: undefined })),
  ),
]

export const registration: BadCase[] = [
  bad('registration: refused, all written back', 'registration_rejected', 4, echo('/register')),
  bad('registration: HTML', 'registration_rejected', 4, atServer('/register', html)),
  bad('registration: 2 MB', 'malformed_response', 4, atServer('/register', huge)),
  bad('registration: a redirect', 'malformed_response', 4, atServer('/register', redirectTo('/elsewhere'))),
  bad(
    'registration: not possible, and no client id',
    'client_information_required',
    3,
    serverIs(() => ({ registration: 'off' })),
  ),
]

const refused = (error: string) => serverIs(() => ({ authorizationError: error }))

export const responses: BadCase[] = [
  bad(
    'login: another state',
    'state_mismatch',
    5,
    serverIs(() => ({ state: 'x' })),
  ),
  bad(
    'login: no state',
    'state_mismatch',
    5,
    serverIs(() => ({ state: null })),
  ),
  bad(
    "login: another server's iss (mix-up)",
    'issuer_mismatch',
    5,
    serverIs(world => ({ iss: otherIssuer(world) })),
  ),
  bad(
    'login: no iss',
    'issuer_mismatch',
    5,
    serverIs(() => ({ iss: null })),
  ),
  bad(
    'login: two codes',
    'malformed_response',
    5,
    serverIs(() => ({ duplicated: ['code'] })),
  ),
  bad('login: refused', 'access_denied', 5, refused('access_denied')),
  bad('login: scopes refused, to a client that was just registered', 'invalid_scope', 5, refused('invalid_scope')),
  bad('login: scopes refused, to a configured client', 'invalid_scope', 4, refused('invalid_scope'), known),
  bad('login: nobody answers', 'login_timeout', 4, () => {}, {
    loginTimeoutMs: 100,
    authorizationRedirectDelegate: () => new Promise(() => {}),
  }),
]

const token = (what: string, code: string, reply: Reply, within = 6): BadCase =>
  bad(`token: ${what}`, code, within, atServer('/token', reply))

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
  bad('token: refused, all written back', 'invalid_request', 6, echo('/token'), known),
]

/** Where an answer can be waited for in vain, and the requests until then. */
const waits: ReadonlyArray<readonly [string, number, (fault: Fault) => Make]> = [
  ['resource metadata', 3, atResource],
  ['server metadata', 4, fault => atServer(ASM, fault)],
  ['registration', 5, fault => atServer('/register', fault)],
  ['token', 9, fault => atServer('/token', fault)],
]

export const slow: BadCase[] = waits.flatMap(([what, within, make]) => [
  bad(`${what}: no answer`, 'temporarily_unavailable', within, make({ hold: never })),
  bad(`${what}: a byte now and then`, 'temporarily_unavailable', within, make(dripping)),
])
