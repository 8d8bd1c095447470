// A protected MCP server's outside in the test's own process: metadata, challenges, and the checks of a token. Behind
// it there is no MCP: a request that may pass is answered with what the server saw of it.
import type { ServerResponse } from 'node:http'
import { checkProof } from './dpop-checks.ts'
import type { FakeAuthorizationServer } from './fake-authorization-server.ts'
import type { AccessToken } from './fake-tokens.ts'
import { type RecordedRequest, type RecordingServer, type Reply, startRecordingServer } from './recording-server.ts'

export interface ResourceServerSettings {
  /** Who may issue tokens for it; their issuers are published. */
  authorizationServers: readonly FakeAuthorizationServer[]
  /** The well-known forms that answer: with the server's path, and without. */
  wellKnown: ReadonlyArray<'path' | 'root'>
  /** Another path that has the metadata; challenges name it instead. */
  metadataPath: string | undefined
  /** Whether challenges carry `resource_metadata`. */
  metadataInChallenge: boolean
  /** Put over the metadata document; undefined leaves a field out. */
  metadata: Readonly<Record<string, unknown>>
  scopesSupported: readonly string[] | undefined
  /** The `scope` of a 401's challenge. */
  challengeScope: string | undefined
  /** Scopes that a request needs, by path or by `Mcp-Name`. */
  scopes: Readonly<Record<string, string>>
  /** Raw challenges instead of its own, for every refusal. */
  challenges: readonly string[] | undefined
  /** A liar refuses whatever it is shown. */
  mood: 'honest' | 'always-401' | 'always-403'
  /** Whether a token must be for this resource. */
  checkAudience: boolean
  dpop: boolean
  dpopNonce: boolean
}

export interface FakeResourceServer extends RecordingServer {
  /** `<url>/mcp`; every path below it and beside it is protected too. */
  readonly serverUrl: string
  readonly settings: ResourceServerSettings
  /** How many requests passed. */
  readonly admitted: number
  /** Writes an event to every open GET stream. */
  sendEvent(data: string): void
  endStreams(): void
  /** Asks for another DPoP nonce from now on. */
  newNonce(): void
}

type Verdict =
  | { readonly token: AccessToken }
  | { readonly status: 401 | 403; readonly parameters: Record<string, string> }

const words = (scope: string | undefined) => (scope ?? '').split(' ').filter(word => word !== '')

export async function startFakeResourceServer(
  first: FakeAuthorizationServer,
  path = '/mcp',
): Promise<FakeResourceServer> {
  const streams = new Set<ServerResponse>()
  const usedProofs = new Set<string>()
  let nonce = 'rs-nonce-1'
  let admitted = 0
  const server = await startRecordingServer(answer)
  const settings: ResourceServerSettings = {
    authorizationServers: [first],
    wellKnown: ['path'],
    metadataPath: undefined,
    metadataInChallenge: true,
    metadata: {},
    scopesSupported: undefined,
    challengeScope: undefined,
    scopes: {},
    challenges: undefined,
    mood: 'honest',
    checkAudience: true,
    dpop: false,
    dpopNonce: false,
  }
  const forms = { path: `/.well-known/oauth-protected-resource${path}`, root: '/.well-known/oauth-protected-resource' }

  const metadata = (): Readonly<Record<string, unknown>> => ({
    resource: server.url + path,
    authorization_servers: settings.authorizationServers.map(({ issuer }) => issuer),
    bearer_methods_supported: ['header'],
    scopes_supported: settings.scopesSupported,
    ...settings.metadata,
  })

  function refuse(status: 401 | 403, parameters: Record<string, string> = {}): Reply {
    const where = settings.metadataPath ?? forms[settings.wellKnown[0] ?? 'path']
    const all = { ...parameters, ...(settings.metadataInChallenge && { resource_metadata: server.url + where }) }
    const text = Object.entries(all).map(([name, value]) => `${name}="${value}"`)
    const own = [`${settings.dpop ? 'DPoP' : 'Bearer'} ${text.join(', ')}`.trim()]
    const challenges = settings.challenges ?? own
    return {
      status,
      headers: {
        ...(challenges.length > 0 && { 'WWW-Authenticate': challenges }),
        ...(settings.dpopNonce && { 'DPoP-Nonce': nonce }),
      },
      body: { error: status === 401 ? 'unauthorized' : 'forbidden' },
    }
  }

  function judge(request: RecordedRequest): Verdict {
    const { challengeScope: scope } = settings
    const unauthorized = (error?: string): Verdict => ({
      status: 401,
      parameters: { ...(error !== undefined && { error }), ...(scope !== undefined && { scope }) },
    })
    const [, scheme = '', text = ''] = /^(\S+) (.*)$/.exec(request.headers.authorization ?? '') ?? []
    if (text === '') return unauthorized()
    const token = settings.authorizationServers.map(({ tokens }) => tokens.find(text)).find(found => found)
    if (!token?.active || (settings.checkAudience && token.resource !== metadata()['resource'])) {
      return unauthorized('invalid_token')
    }
    if (scheme.toLowerCase() !== (token.jkt === undefined ? 'bearer' : 'dpop')) return unauthorized('invalid_token')
    if (token.jkt !== undefined || settings.dpop) {
      const expected = { accessToken: text, nonce: settings.dpopNonce ? nonce : undefined, used: usedProofs }
      const verdict = checkProof(request, { ...expected, target: server.url + request.path })
      if (!('jkt' in verdict)) return unauthorized(verdict.error)
      if (verdict.jkt !== token.jkt) return unauthorized('invalid_token')
    }
    const operation = request.headers['mcp-name']
    const needed = settings.scopes[typeof operation === 'string' ? operation : ''] ?? settings.scopes[request.path]
    const lacks = words(needed).some(word => !words(token.scope).includes(word))
    return lacks ? { status: 403, parameters: { error: 'insufficient_scope', scope: needed ?? '' } } : { token }
  }

  function admit({ method, path: asked, body, headers }: RecordedRequest, { scope, subject }: AccessToken): Reply {
    admitted++
    if (method === 'DELETE') return { status: 204 }
    if (method === 'GET' && headers.accept?.includes('text/event-stream')) {
      const stream = (response: ServerResponse) => {
        streams.add(response)
        response.once('close', () => streams.delete(response))
        response.flushHeaders()
      }
      return { status: 200, headers: { 'Content-Type': 'text/event-stream' }, stream }
    }
    return { status: 200, body: { method, path: asked, body, scope, subject } }
  }

  function answer(request: RecordedRequest): Reply {
    const isMetadata = settings.wellKnown.some(form => forms[form] === request.path)
    if (isMetadata || request.path === settings.metadataPath) return { status: 200, body: metadata() }
    if (request.path.startsWith('/.well-known/')) return { status: 404, body: 'not found' }
    if (settings.mood === 'always-401') return refuse(401, { error: 'invalid_token' })
    if (settings.mood === 'always-403') {
      return refuse(403, { error: 'insufficient_scope', scope: settings.scopes[request.path] ?? 'more' })
    }
    const verdict = judge(request)
    return 'token' in verdict ? admit(request, verdict.token) : refuse(verdict.status, verdict.parameters)
  }

  const own = {
    serverUrl: server.url + path,
    settings,
    sendEvent: (text: string) => streams.forEach(stream => void stream.write(`data: ${text}\n\n`)),
    endStreams: () => streams.forEach(stream => void stream.end()),
    newNonce() {
      nonce = `rs-nonce-${Number(nonce.slice(9)) + 1}`
    },
  }
  return Object.defineProperty(Object.assign(server, own), 'admitted', { get: () => admitted }) as FakeResourceServer
}
