// A fake resource server, its authorization servers, and a person with a browser: what a test of the client needs.
import { type FakeAuthorizationServer, startFakeAuthorizationServer } from './fake-authorization-server.ts'
import { type FakeResourceServer, startFakeResourceServer } from './fake-resource-server.ts'

export type { FakeAuthorizationServer } from './fake-authorization-server.ts'
export type { FakeResourceServer } from './fake-resource-server.ts'
export type { Fault, RecordedRequest, RecordingServer, Reply } from './recording-server.ts'
export { startRecordingServer, stopServers } from './recording-server.ts'

export const REDIRECT_URI = 'http://localhost:3000/callback'

/**
 * Plays the browser of a person who agrees: asks for the authorization URL and returns where it is sent. Throws with
 * what the page says when the authorization server shows one instead.
 */
export async function authorize(authorizationUrl: URL | string, signal?: AbortSignal): Promise<URL> {
  const response = await fetch(authorizationUrl, { redirect: 'manual', ...(signal && { signal }) })
  const location = response.headers.get('location')
  if (location === null)
    throw new Error(`the authorization server shows a page: ${response.status} ${await response.text()}`)
  await response.body?.cancel()
  return new URL(location)
}

export interface FakeServers {
  readonly rs: FakeResourceServer
  /** The first authorization server. */
  readonly as: FakeAuthorizationServer
  readonly servers: readonly FakeAuthorizationServer[]
  /** `rs.serverUrl`, for the client's options. */
  readonly serverUrl: string
  /** The redirect delegate: a browser whose person always agrees. It counts its logins. */
  readonly delegate: (authorizationUrl: URL, redirectUri?: string, about?: { signal?: AbortSignal }) => Promise<URL>
  /** The authorization URLs that the delegate was given. */
  readonly logins: URL[]
  /** Every secret that any of the authorization servers gave or got. */
  secrets(): string[]
}

export interface FakeServersOptions {
  /** Path of the issuers, such as `/tenant1`. Default: none. */
  readonly issuerPath?: string
  /** How many authorization servers; the resource server trusts and lists the first. Default 1. */
  readonly authorizationServers?: number
  /** Path of the protected server. Default `/mcp`. */
  readonly path?: string
}

export async function startFakeServers(options: FakeServersOptions = {}): Promise<FakeServers> {
  const { issuerPath = '', authorizationServers = 1, path = '/mcp' } = options
  const as = await startFakeAuthorizationServer({ path: issuerPath })
  const servers = [as]
  while (servers.length < authorizationServers) servers.push(await startFakeAuthorizationServer({ path: issuerPath }))
  const rs = await startFakeResourceServer(as, path)
  const logins: URL[] = []
  return {
    rs,
    as,
    servers,
    serverUrl: rs.serverUrl,
    logins,
    delegate(authorizationUrl, _redirectUri, { signal } = {}) {
      logins.push(authorizationUrl)
      return authorize(authorizationUrl, signal)
    },
    secrets: () => servers.flatMap(({ secrets }) => [...secrets]),
  }
}
