// The stage of the tests about bad servers: a client, servers that a case makes bad, and the account of what happened:
// which error, after how many requests, and whether anything secret was shown.
import { expect } from 'chai'
import { AuthError, type AuthEvent, type ClientOAuthOptions, createAuthFetch } from '../../../client/index.ts'
import { type FakeServers, REDIRECT_URI, startFakeServers } from './fake-servers.ts'
import { consoleDuring, expectNoSecret, renderingsOf } from './leaks.ts'

export interface World extends FakeServers {
  /** What the client is told to call. */
  readonly url: string
  /** A `fetch` where the two hosts below are the fake servers, and every other address is only noted. */
  readonly mappedFetch: typeof fetch
  /** Where `mappedFetch` was sent and there is nobody. */
  readonly strays: string[]
  /** Of the authorization server: who the client is registered at. */
  readonly issuer: string
}

export interface BadCase {
  readonly what: string
  /** Of the AuthError that it must end in. */
  readonly code: string
  /** Requests at most, to all servers together. */
  readonly within: number
  readonly make: (world: World) => void
  readonly options?: Partial<ClientOAuthOptions>
}

export const PUBLIC = { server: 'https://mcp.example', issuer: 'https://as.example' }

/** What the client is configured with. */
export const SECRETS = {
  clientSecret: 'configured-secret/of+the client',
  initialAccessToken: 'initial-access-token-of-the-client',
}

/** Servers on loopback, which the client may be sent to because it calls one there. */
export async function localWorld(): Promise<World> {
  const fake = await startFakeServers({ authorizationServers: 2 })
  return { ...fake, url: fake.serverUrl, mappedFetch: fetch, strays: [], issuer: fake.as.issuer }
}

/** The same servers under public names. */
export async function publicWorld(): Promise<World> {
  const fake = await startFakeServers()
  const { rs, as } = fake
  const places: Readonly<Record<string, string>> = { [PUBLIC.server]: rs.url, [PUBLIC.issuer]: as.url }
  const strays: string[] = []
  const mappedFetch: typeof fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input)
    const place = places[url.origin]
    if (place !== undefined) return fetch(place + url.pathname + url.search, init)
    strays.push(url.href)
    throw new TypeError(`nobody is at ${url.origin}`)
  }
  const endpoint = (path: string) => PUBLIC.issuer + path
  rs.settings.metadata = { resource: `${PUBLIC.server}/mcp`, authorization_servers: [PUBLIC.issuer] }
  rs.settings.metadataInChallenge = false
  as.settings.issuer = PUBLIC.issuer
  as.settings.metadata = {
    ...{ authorization_endpoint: endpoint('/authorize'), token_endpoint: endpoint('/token') },
    ...{ registration_endpoint: endpoint('/register'), revocation_endpoint: endpoint('/revoke') },
  }
  async function delegate(authorizationUrl: URL): Promise<URL> {
    fake.logins.push(authorizationUrl)
    const response = await mappedFetch(authorizationUrl, { redirect: 'manual' })
    return new URL(response.headers.get('location') ?? '')
  }
  return { ...fake, url: `${PUBLIC.server}/mcp`, delegate, mappedFetch, strays, issuer: PUBLIC.issuer }
}

export interface Account {
  readonly code: string
  readonly requests: number
  /** Pairs of a text and a secret that were looked at. */
  readonly looked: number
}

export interface Outcome {
  readonly thrown: unknown
  readonly status: number | undefined
  readonly events: readonly AuthEvent[]
  readonly account: Account
}

/** Everything that the client was given or gave and that nobody else may see. */
function secretsOf({ as, secrets }: World): string[] {
  const headers = as.requests.map(({ headers: { authorization } }) => authorization?.split(' ')[1])
  return [...secrets(), ...Object.values(SECRETS), ...headers].filter(
    (secret): secret is string => secret !== undefined && secret !== '',
  )
}

/** Calls the server `times` times with a new client, and looks at the last answer. */
export async function callServer(world: World, { what, options }: Pick<BadCase, 'what' | 'options'>, times = 1) {
  const events: AuthEvent[] = []
  const authFetch = createAuthFetch({
    serverUrl: world.url,
    redirectUri: REDIRECT_URI,
    authorizationRedirectDelegate: world.delegate,
    clientIssuer: world.issuer,
    dynamicClientRegistration: { initialAccessToken: SECRETS.initialAccessToken },
    fetch: world.mappedFetch,
    onEvent: event => events.push(event),
    profile: what,
    ...options,
  })
  let thrown: unknown
  let status: number | undefined
  const written = await consoleDuring(async () => {
    for (let call = 0; call < times; call++) {
      thrown = status = undefined
      try {
        const response = await authFetch(world.url, { method: 'POST', body: `call ${call}` })
        status = response.status
        await response.body?.cancel()
      } catch (reason) {
        thrown = reason
      }
    }
  })
  const kept = await authFetch.session.status()
  const shown = [thrown, events, authFetch, authFetch.session, kept, ...written].flatMap(renderingsOf)
  const looked = expectNoSecret(shown, secretsOf(world))
  const requests = [world.rs, ...world.servers].reduce((sum, server) => sum + server.count(), 0)
  const code = AuthError.is(thrown) ? thrown.code : String(thrown ?? status)
  return { thrown, status, events, account: { code, requests, looked } } satisfies Outcome
}

/** A case must end in its error, with a fix in the text, within its number of requests. */
export async function judge(world: World, bad: BadCase): Promise<AuthError> {
  bad.make(world)
  const { thrown, account } = await callServer(world, bad)
  expect(AuthError.is(thrown), `${account.code}: ${thrown instanceof Error ? thrown.stack : thrown}`).to.equal(true)
  const error = thrown as AuthError
  expect(error.code, error.message).to.equal(bad.code)
  expect(error.name).to.equal('UnauthorizedError')
  expect(error.fix, error.message).to.be.a('string').and.have.length.above(10)
  expect(error.message).to.include(error.fix)
  expect(account.requests, error.message).to.be.at.most(bad.within)
  return error
}
