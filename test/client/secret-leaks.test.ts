// Tests that secrets planted by a malicious server in any response field never appear in output of the client.
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import { type AuthEvent, type ClientOAuthOptions, createAuthFetch } from '../../client/index.ts'
import type { Grant } from '../../client/options.ts'
import { caseCount } from '../support/thorough.ts'
import { type Fault, REDIRECT_URI, stopServers } from './support/fake-servers.ts'
import { localWorld, SECRETS, type World } from './support/faulty-server-setup.ts'
import { consoleDuring, expectNoSecret, renderingsOf } from './support/leaks.ts'

/** Makes a secret that nobody has seen, and remembers it. */
type Plant = () => string

const named = (plant: Plant) => ({
  access_token: plant(),
  refresh_token: plant(),
  client_secret: plant(),
  registration_access_token: plant(),
  nested: { list: [{ id_token: plant(), device_code: plant() }] },
})

const withEcho = (plant: Plant) => {
  const members = named(plant)
  const all = JSON.stringify(members)
  return {
    ...members,
    note: plant(),
    [plant()]: 1,
    error_description: `this was wrong: ${all}`,
    scope: members.access_token,
  }
}

/** The body of an answer in one of the forms that real servers send. */
const BODIES: Readonly<Record<string, (plant: Plant) => unknown>> = {
  form: plant => `access_token=${plant()}&token_type=bearer&refresh_token=${plant()}`,
  text: plant => `your token is ${plant()}`,
  html: plant => `<html><body data-token="${plant()}">${plant()}</body></html>`,
  xml: plant => `<token>${plant()}</token>`,
  'JSON text': plant => JSON.stringify(plant()),
  'JSON list': plant => [plant(), named(plant)],
  'JSON cut off': plant => JSON.stringify(named(plant)).slice(0, -12),
  'JSON with a mark': plant => `\ufeff${JSON.stringify(named(plant))}junk`,
  'two JSON documents': plant => `${JSON.stringify(named(plant))}\n${JSON.stringify(named(plant))}`,
  'JSON without an error': plant => ({ ...named(plant), access_token: undefined, note: plant() }),
  'JSON with an error': plant => ({ error: 'invalid_thing', ...withEcho(plant) }),
  'JSON whose error is a token': plant => {
    const members = withEcho(plant)
    return { ...members, error: members.access_token }
  },
  'JSON whose types are wrong': plant => ({ access_token: [plant()], token_type: plant(), error: { is: plant() } }),
  'JSON whose token type is a token': plant => {
    const members = named(plant)
    return { ...members, token_type: members.access_token }
  },
  empty: () => undefined,
}

const HEADERS: Readonly<Record<string, (plant: Plant) => Readonly<Record<string, string>>>> = {
  plain: () => ({}),
  'type of its own': plant => ({ 'Content-Type': `application/${plant()}` }),
  'type with a parameter': plant => ({ 'Content-Type': `text/plain; boundary=${plant()}` }),
  debug: plant => ({ 'X-Debug': plant(), 'Set-Cookie': `session=${plant()}` }),
  challenge: plant => ({ 'WWW-Authenticate': `Bearer realm="${plant()}", error="invalid_token", x=${plant()}` }),
  redirect: plant => ({ Location: `https://user:${plant()}@elsewhere.example/?access_token=${plant()}#${plant()}` }),
}

/** Members of metadata documents that are wrong. URLs hide secrets in their user, query and fragment. */
const MEMBERS: Readonly<Record<string, (plant: Plant, url: string) => unknown>> = {
  'other origin': plant => `https://user:${plant()}@elsewhere.example/x?token=${plant()}#${plant()}`,
  'this origin': (plant, url) => `${url}/?token=${plant()}`,
  'no URL': plant => `/relative?token=${plant()}`,
  object: plant => ({ url: plant() }),
  list: plant => [{ url: plant() }, plant()],
  scheme: plant => `javascript:alert(1)?${plant()}`,
}

const PRM = '/.well-known/oauth-protected-resource/mcp'
const ASM = '/.well-known/oauth-authorization-server'
const RESOURCE_MEMBERS = ['resource', 'authorization_servers']
const SERVER_MEMBERS = ['issuer', 'authorization_endpoint', 'token_endpoint', 'registration_endpoint']
const PLACES = ['/mcp', PRM, ASM, '/register', '/token', '/revoke', '/device_authorization'] as const

const GRANTS: Readonly<Record<string, { grant: Grant; client: Partial<ClientOAuthOptions> }>> = {
  authorization_code: { grant: { type: 'authorization_code' }, client: {} },
  configured: {
    grant: { type: 'authorization_code' },
    client: { clientId: 'known', clientSecret: SECRETS.clientSecret },
  },
  client_credentials: {
    grant: { type: 'client_credentials' },
    client: { clientId: 'known', clientSecret: SECRETS.clientSecret },
  },
  device: { grant: { type: 'device', onUserCode: () => {} }, client: {} },
}

interface Badness {
  readonly place: (typeof PLACES)[number]
  readonly status: number
  readonly body: string
  readonly headers: string
  /** Where metadata is right in form: the member that is wrong, and how. */
  readonly member: { readonly name: string; readonly how: string } | undefined
}

function spoil(world: World, { place, status, body, headers, member }: Badness, plant: Plant): void {
  if (member) {
    const value = MEMBERS[member.how]?.(plant, world.as.url)
    if (RESOURCE_MEMBERS.includes(member.name)) {
      world.rs.settings.metadata = { [member.name]: member.name === 'resource' ? value : [value] }
    } else world.as.settings.metadata = { [member.name]: value }
    return
  }
  const server = place === '/mcp' || place === PRM ? world.rs : world.as
  // Each request meets secrets of its own.
  const fault = {
    status,
    get headers() {
      return HEADERS[headers]?.(plant)
    },
    get body() {
      return BODIES[body]?.(plant)
    },
  } as Fault
  server.failNext(place, fault, 40)
}

/** Everything that a program would do with a client, and everything that it could print of it. */
async function use(world: World, { grant, client }: (typeof GRANTS)[string] & object): Promise<string[]> {
  const kept: unknown[] = []
  const events: AuthEvent[] = []
  const authFetch = createAuthFetch({
    serverUrl: world.url,
    redirectUri: REDIRECT_URI,
    authorizationRedirectDelegate: world.delegate,
    clientIssuer: world.issuer,
    dynamicClientRegistration: { initialAccessToken: SECRETS.initialAccessToken },
    profile: randomBytes(9).toString('hex'),
    grant,
    onEvent: event => events.push(event),
    ...client,
  })
  const { session } = authFetch
  const attempt = async (work: () => Promise<unknown>) => kept.push(await work().catch((thrown: unknown) => thrown))
  const written = await consoleDuring(async () => {
    await attempt(async () => {
      const response = await authFetch(world.url, { method: 'POST', body: '{}', signal: AbortSignal.timeout(3_000) })
      await response.body?.cancel()
    })
    await attempt(() => session.login({ signal: AbortSignal.timeout(3_000) }))
    await attempt(async () => void (await session.token()))
    await attempt(() => session.status())
    await attempt(() => session.logout())
    await attempt(() => session.status())
  })
  return [...kept, events, authFetch, session, ...written].flatMap(renderingsOf)
}

/** Waits of the client are a hundredth of what they are. */
async function inShortTime(work: () => Promise<void>): Promise<void> {
  const original = globalThis.setTimeout
  globalThis.setTimeout = ((done: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) =>
    original(done, ms / 100, ...given)) as typeof setTimeout
  try {
    await work()
  } finally {
    globalThis.setTimeout = original
  }
}

const badness: fc.Arbitrary<Badness> = fc.record({
  place: fc.constantFrom(...PLACES),
  status: fc.constantFrom(200, 200, 201, 204, 302, 400, 401, 403, 404, 429, 500, 502, 503),
  body: fc.constantFrom(...Object.keys(BODIES)),
  headers: fc.constantFrom(...Object.keys(HEADERS)),
  member: fc.option(
    fc.record({
      name: fc.constantFrom(...RESOURCE_MEMBERS, ...SERVER_MEMBERS),
      how: fc.constantFrom(...Object.keys(MEMBERS)),
    }),
    { nil: undefined, freq: 1 },
  ),
})

describe('R-97: secrets planted by a server', () => {
  afterEach(stopServers)

  it('never appear in errors, events or logs, from any response field (property)', async () => {
    let [runs, planted] = [0, 0]
    const check = async (bad: Badness, grant: string) => {
      const world = await localWorld()
      world.as.addClient({ client_id: 'known', client_secret: SECRETS.clientSecret })
      const secrets: string[] = []
      const plant = () => {
        // No word of a message can be part of it, and no character is spelled in two ways.
        const secret = `planted${randomBytes(12).toString('hex')}`
        secrets.push(secret)
        return secret
      }
      spoil(world, bad, plant)
      const texts = await use(world, GRANTS[grant] ?? expect.fail(grant))
      expectNoSecret(texts, [...secrets, ...Object.values(SECRETS), ...world.secrets()].filter(Boolean))
      runs++
      planted += secrets.length
      await stopServers()
    }
    await inShortTime(async () => {
      const property = fc.asyncProperty(badness, fc.constantFrom(...Object.keys(GRANTS)), check)
      await fc.assert(property, { numRuns: caseCount(40, 10), seed: 7, endOnFailure: true })
    })
    expect(planted).to.be.above(runs)
  })
})
