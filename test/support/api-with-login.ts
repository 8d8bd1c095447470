// An API whose users log in: a real authorization server (oidc-provider with dynamic registration and rotation of refresh
// tokens), an MCP server, and a plain HTTP API. It signs in `nextUser` without a page.
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import { defineTool, HostError } from '../../core/index.ts'
import { plugin } from '../fixtures/plugins.ts'
import { startHost } from './start-host.ts'
import { makeKey, toJwk } from './test-issuer.ts'

export const KNOWN_CLIENT = { id: 'the-gateway', secret: 'the secret of the gateway' }

export interface ApiWithLogin {
  readonly issuer: string
  /** The MCP server. */
  readonly mcpUrl: string
  /** The HTTP API. */
  readonly apiUrl: string
  nextUser: string
  /** A scope that both servers require. */
  requiredScope: string | undefined
  /** Requires the scope although the token has it. */
  refusesAll: boolean
  /** Token requests by grant type, in order. */
  readonly grants: string[]
  readonly registrations: string[]
  /** The callback of the known client. */
  callback: string
  /** All tokens that this server issued. */
  readonly tokens: string[]
  /** Revocation requests (RFC 7009) by the type of token, in order. */
  readonly revocations: string[]
  /** Deletes all dynamic registrations. */
  forgetClients(): void
  /** Ends the access tokens, or also the refresh tokens. */
  revoke(what: 'access' | 'all'): void
}

interface Payload {
  grantId?: string
  uid?: string
  consumed?: number
}

const running: Array<() => Promise<unknown>> = []

const listening = async (listener: RequestListener, host: string) => {
  const server = createServer(listener)
  await new Promise<void>(resolve => server.listen(0, host, resolve))
  running.push(() => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

function createAdapter(stored: Map<string, Payload>, state: ApiWithLogin) {
  return (model: string) => ({
    async upsert(id: string, payload: Payload) {
      stored.set(`${model} ${id}`, payload)
      if (model === 'AccessToken' || model === 'RefreshToken') state.tokens.push(id)
      if (model === 'Client') state.registrations.push(id)
    },
    async find(id: string) {
      if (model !== 'Client' || id !== KNOWN_CLIENT.id) return stored.get(`${model} ${id}`)
      return {
        client_id: id,
        client_secret: KNOWN_CLIENT.secret,
        grant_types: ['authorization_code', 'refresh_token'],
        redirect_uris: [state.callback],
      }
    },
    async findByUid(uid: string) {
      return [...stored].find(([key, payload]) => key.startsWith(`${model} `) && payload.uid === uid)?.[1]
    },
    async findByUserCode() {
      return undefined
    },
    async consume(id: string) {
      const payload = stored.get(`${model} ${id}`)
      if (payload) payload.consumed = Math.floor(Date.now() / 1_000)
    },
    async destroy(id: string) {
      stored.delete(`${model} ${id}`)
    },
    async revokeByGrantId(grantId: string) {
      for (const [key, payload] of stored)
        if (key.startsWith(`${model} `) && payload.grantId === grantId) stored.delete(key)
    },
  })
}

type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>

async function consent(provider: Provider, { grantId, session, params, prompt }: Interaction) {
  const known = grantId === undefined ? undefined : await provider.Grant.find(grantId)
  const about = { accountId: session?.accountId ?? '', clientId: String(params['client_id']) }
  const grant = known ?? new provider.Grant(about)
  const { missingOIDCScope, missingResourceScopes } = prompt.details as {
    missingOIDCScope?: string[]
    missingResourceScopes?: Record<string, string[]>
  }
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '))
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {}))
    grant.addResourceScope(resource, scopes.join(' '))
  return { consent: { grantId: await grant.save() } }
}

function createProvider(state: ApiWithLogin, stored: Map<string, Payload>): Provider {
  const configuration: object = {
    adapter: createAdapter(stored, state),
    jwks: { keys: [makeKey('api')].map(key => ({ ...toJwk(key), ...key.privateKey.export({ format: 'jwk' }) })) },
    cookies: { keys: ['of a test'] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
    scopes: ['openid', 'offline_access', 'read', 'write'],
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({ scope: 'read write', accessTokenFormat: 'opaque' }),
      },
    },
    interactions: { url: (_ctx: unknown, { uid }: { uid: string }) => `${state.issuer}/interaction/${uid}` },
    findAccount: (_ctx: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
  }
  return new Provider(state.issuer, configuration)
}

function createIssuer(provider: Provider, state: ApiWithLogin): RequestListener {
  const serve = provider.callback()
  provider.on('grant.success', ({ oidc }) => state.grants.push(String(oidc.params?.['grant_type'])))
  provider.on('grant.error', ({ oidc }) => state.grants.push(`refused ${oidc.params?.['grant_type']}`))
  provider.on('grant.revoked', ({ oidc }) => state.revocations.push(String(oidc.params?.['token_type_hint'])))
  async function interact(request: IncomingMessage, response: ServerResponse) {
    const details = await provider.interactionDetails(request, response)
    const result =
      details.prompt.name === 'login' ? { login: { accountId: state.nextUser } } : await consent(provider, details)
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true })
  }
  return (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return serve(request, response)
    interact(request, response).catch(error => response.writeHead(500).end(String(error)))
  }
}

const whoAmI = defineTool({ name: 'whoami', handler: (_, { user }) => user?.subject ?? 'nobody' })

/** Starts it with `localhost` as the host of the issuer, so that its cookies are not those of the gateway. */
export async function startApiWithLogin(): Promise<ApiWithLogin> {
  const stored = new Map<string, Payload>()
  let issue: RequestListener = (_, response) => response.writeHead(503).end()
  const issuer = `http://localhost:${await listening((...given) => issue(...given), 'localhost')}`
  const state: ApiWithLogin & { mcpUrl: string; apiUrl: string } = {
    issuer,
    mcpUrl: '',
    apiUrl: '',
    nextUser: 'ann-there',
    requiredScope: undefined,
    refusesAll: false,
    grants: [],
    registrations: [],
    callback: 'http://127.0.0.1:1/nobody',
    tokens: [],
    revocations: [],
    forgetClients() {
      for (const key of stored.keys()) if (key.startsWith('Client ')) stored.delete(key)
    },
    revoke(what) {
      for (const key of stored.keys())
        if (key.startsWith('AccessToken ') || (what === 'all' && /^(RefreshToken|Grant|Session) /.test(key)))
          stored.delete(key)
    },
  }
  const provider = createProvider(state, stored)
  issue = createIssuer(provider, state)
  async function userOf(authorization: string | undefined) {
    const token = await provider.AccessToken.find((authorization ?? '').replace('Bearer ', ''))
    const { requiredScope } = state
    const isNarrow =
      token && requiredScope !== undefined && (state.refusesAll || !token.scope?.split(' ').includes(requiredScope))
    const stepUp = isNarrow ? `Bearer error="insufficient_scope", scope="${requiredScope}"` : undefined
    return { subject: token?.accountId, stepUp }
  }
  const tokens = plugin(
    host =>
      host.authenticate(async (ctx, next) => {
        const { authorization } = ctx.req.headers
        const { subject, stepUp } = await userOf(authorization)
        if (stepUp !== undefined) throw new HostError('forbidden', { headers: { 'WWW-Authenticate': stepUp } })
        if (authorization !== undefined && subject === undefined)
          throw new HostError('unauthorized', { detail: 'the token is invalid' })
        if (subject !== undefined) ctx.state.user = { subject, scopes: [], roles: [], claims: {} }
        await next()
      }),
    { provides: ['user'] },
  )
  const { url } = await startHost({
    toolsets: { all: [whoAmI] },
    routes: { '/mcp': { toolsets: 'all' } },
    plugins: {
      'transport-streamable': {},
      tokens,
      'resource-metadata': { authorizationServers: [issuer], scopesSupported: ['openid', 'read'] },
    },
  })
  state.mcpUrl = `${url}/mcp`
  const port = await listening((request, response) => {
    userOf(request.headers.authorization).then(({ subject, stepUp }) => {
      if (stepUp !== undefined) response.setHeader('www-authenticate', stepUp)
      const status = stepUp === undefined ? 200 : 403
      response.writeHead(subject === undefined ? 401 : status, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ user: subject ?? null }))
    })
  }, '127.0.0.1')
  state.apiUrl = `http://127.0.0.1:${port}`
  return state
}

export async function stopApisWithLogin(): Promise<void> {
  for (const stop of running.splice(0)) await stop()
}
