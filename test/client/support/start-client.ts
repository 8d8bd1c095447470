// A client of the fake servers: `createAuthFetch` with the person who always agrees, and what it told.
import { type AuthEvent, type AuthFetch, type ClientOAuthOptions, createAuthFetch } from '../../../client/index.ts'
import { type FakeServers, REDIRECT_URI } from './fake-servers.ts'

export interface TestClient {
  readonly authFetch: AuthFetch
  readonly events: AuthEvent[]
  /** POSTs a small JSON body; `path` replaces the server's own. */
  post(path?: string, init?: RequestInit): Promise<Response>
  get(path?: string, init?: RequestInit): Promise<Response>
}

export function startClient(fake: FakeServers, options: Partial<ClientOAuthOptions> = {}): TestClient {
  const events: AuthEvent[] = []
  const authFetch = createAuthFetch({
    serverUrl: fake.serverUrl,
    redirectUri: REDIRECT_URI,
    authorizationRedirectDelegate: fake.delegate,
    onEvent: event => events.push(event),
    ...(options.clientSecret !== undefined && { clientIssuer: fake.as.issuer }),
    ...options,
  })
  const send = (path: string | undefined, init: RequestInit) =>
    authFetch(path === undefined ? fake.serverUrl : fake.rs.url + path, init)
  return {
    authFetch,
    events,
    post: (path, init) => send(path, { method: 'POST', body: '{"id":1}', ...init }),
    get: (path, init) => send(path, { headers: { accept: 'text/event-stream' }, ...init }),
  }
}
