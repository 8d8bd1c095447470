// The core of the test identity provider: oidc-provider over loopback HTTP, with the users, client and keys of
// identity-provider.ts. It signs users in without a page, or with a plain form.
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider, { errors, type KoaContextWithOIDC } from 'oidc-provider'
import { type TestKey, toJwk } from './test-issuer.ts'

export interface IdpUser {
  readonly sub: string
  readonly name?: string
  readonly email?: string
  /** Default: true if the user has an e-mail address. */
  readonly emailVerified?: boolean
  readonly groups?: readonly string[]
  /** Overrides all other claims; null removes a claim. Put claim names that no vendor uses into `extraClaims` of the settings. */
  readonly claims?: Readonly<Record<string, unknown>>
}

export type ClaimUse = 'id_token' | 'userinfo'

export interface CoreSettings {
  readonly issuer: string
  readonly client: { readonly id: string; readonly secret: string; readonly authMethod: string }
  readonly users: ReadonlyMap<string, IdpUser>
  readonly redirects: ReadonlySet<string>
  readonly scopes: readonly string[]
  readonly claimNames: readonly string[]
  readonly page: 'none' | 'form'
  readonly accessTokenLife: number
  /** Read again on each refresh. */
  rotates(): boolean
  /** Whether this login gets a refresh token, by its authorization request. */
  givesRefreshToken(parameters: Readonly<Record<string, unknown>>): boolean
  claimsOf(user: IdpUser, use: ClaimUse): Record<string, unknown>
  /** The user to sign in if no hint names one; undefined: the user denies. */
  chooseUser(hint: string | undefined): IdpUser | undefined
}

interface Payload {
  uid?: string
  grantId?: string
  accountId?: string
  consumed?: number
}

const EXCHANGES = [
  { name: 'urn:ietf:params:oauth:grant-type:token-exchange', token: 'subject_token' },
  { name: 'urn:ietf:params:oauth:grant-type:jwt-bearer', token: 'assertion' },
]

const escapeHtml = (text: string) => text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)

const form = (users: Iterable<IdpUser>) => `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Sign in to the identity provider</title>
<h1>Sign in</h1>
<form method="post">
${[...users].map(({ sub, name = sub }) => `<p><button name="account" value="${escapeHtml(sub)}">${escapeHtml(name)}</button></p>`).join('\n')}
<p><button name="deny" value="yes">Cancel</button></p>
</form></html>
`

async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'))
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : '')

/** The stored form, independent of the signing keys. */
export const createStored = () => new Map<string, Payload>()
export type Stored = ReturnType<typeof createStored>

function createAdapter(stored: Stored, { client, redirects }: CoreSettings) {
  const metadata = () => ({
    client_id: client.id,
    ...(client.authMethod !== 'none' && { client_secret: client.secret }),
    token_endpoint_auth_method: client.authMethod,
    grant_types: ['authorization_code', 'refresh_token', ...EXCHANGES.map(({ name }) => name)],
    redirect_uris: redirects.size === 0 ? ['http://127.0.0.1:1/nobody'] : [...redirects],
  })
  return (model: string) => ({
    async upsert(id: string, payload: Payload) {
      stored.set(`${model} ${id}`, payload)
    },
    async find(id: string) {
      return model === 'Client' ? (id === client.id ? metadata() : undefined) : stored.get(`${model} ${id}`)
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

function createProvider(settings: CoreSettings, stored: Stored, keys: readonly TestKey[], offline: Set<string>) {
  const { issuer, users, scopes, claimNames, accessTokenLife: life } = settings
  const configuration: object = {
    adapter: createAdapter(stored, settings),
    jwks: { keys: keys.map(key => ({ ...toJwk(key), ...key.privateKey.export({ format: 'jwk' }) })) },
    cookies: { keys: ['of a test'] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
    clientAuthMethods: [settings.client.authMethod],
    scopes,
    claims: { openid: ['sub', ...claimNames] },
    conformIdTokenClaims: false,
    extraParams: ['access_type', 'audience', 'hd'],
    rotateRefreshToken: () => settings.rotates(),
    issueRefreshToken: (_ctx: unknown, _client: unknown, { grantId }: { grantId: string }) => offline.has(grantId),
    // Each login must be requested again; the session only identifies the user.
    loadExistingGrant: (ctx: { oidc: { result?: { consent?: { grantId?: string } } } }) => {
      const grantId = ctx.oidc.result?.consent?.grantId
      return grantId === undefined ? undefined : provider.Grant.find(grantId)
    },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      revocation: { enabled: true, allowedPolicy: () => true },
    },
    interactions: {
      url: (_ctx: unknown, { uid }: { uid: string }) => `${issuer.replace(/\/$/, '')}/interaction/${uid}`,
    },
    renderError(ctx: { type: string; body: unknown }, out: Record<string, string | undefined>) {
      ctx.type = 'text/plain'
      ctx.body = `${out['error']}: ${out['error_description'] ?? ''}\n`
    },
    findAccount: (_ctx: unknown, accountId: string) => {
      const user = users.get(accountId)
      return user && { accountId, claims: (use: ClaimUse) => settings.claimsOf(user, use) }
    },
    ttl: {
      AccessToken: life,
      AuthorizationCode: 60,
      Grant: 3_600,
      IdToken: 3_600,
      Interaction: 600,
      RefreshToken: 3_600,
      Session: 3_600,
    },
  }
  const provider = new Provider(issuer, configuration)
  provider.proxy = true
  for (const { name, token } of EXCHANGES) {
    provider.registerGrantType(name, ctx => exchange(provider, ctx, token, life), [token, 'scope'])
  }
  return provider
}

/** Exchanges an access token for one with any requested scope. */
async function exchange(provider: Provider, ctx: KoaContextWithOIDC, parameter: string, life: number): Promise<void> {
  const { params, client } = ctx.oidc
  const found = await provider.AccessToken.find(String(params?.[parameter] ?? ''))
  if (!found) throw new errors.InvalidTarget('the token to exchange is not known')
  const { accountId, grantId } = found
  const scope = params?.['scope'] ?? ''
  const token = { accountId, grantId, client, scope, gty: 'exchange' } as ConstructorParameters<
    typeof provider.AccessToken
  >[0]
  const access_token = await new provider.AccessToken(token).save()
  ctx.body = { access_token, token_type: 'Bearer', expires_in: life, scope, issued_token_type: ACCESS_TOKEN }
}

const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

/** The page between the authorization request and its response. */
async function interact(
  settings: CoreSettings,
  { provider, offline }: { provider: Provider; offline: Set<string> },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { params } = await provider.interactionDetails(request, response)
  const posted = request.method === 'POST' ? await readForm(request) : undefined
  if (settings.page === 'form' && !posted) {
    response.writeHead(200, { 'Content-Type': 'text/html' }).end(form(settings.users.values()))
    return
  }
  const hint = textOf(params['login_hint'])
  const account = posted?.get('account')
  const user = posted ? settings.users.get(account ?? '') : settings.chooseUser(hint === '' ? undefined : hint)
  if (!user) {
    const denied = { error: 'access_denied', error_description: 'the person said no' }
    return provider.interactionFinished(request, response, denied)
  }
  const grant = new provider.Grant({ accountId: user.sub, clientId: settings.client.id })
  grant.addOIDCScope(textOf(params['scope']))
  const grantId = await grant.save()
  if (settings.givesRefreshToken(params)) offline.add(grantId)
  await provider.interactionFinished(request, response, { login: { accountId: user.sub }, consent: { grantId } })
}

/** Listens on its own port. `use` signs with the first of these keys from then on, and publishes all of them. */
export async function startCore(settings: CoreSettings, stored: Stored) {
  const offline = new Set<string>()
  const { pathname } = new URL(settings.issuer)
  const prefix = pathname.replace(/\/$/, '')
  let provider: Provider
  const listener: RequestListener = (request, response) => {
    const path = request.url ?? ''
    if (prefix !== '') Object.assign(request, { originalUrl: prefix + path })
    const served = path.startsWith('/interaction/')
      ? interact(settings, { provider, offline }, request, response)
      : provider.callback()(request, response)
    served.catch(error => {
      if (!response.headersSent) response.writeHead(500)
      response.end(String(error))
    })
  }
  const server = createServer(listener)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    use(keys: readonly TestKey[]) {
      provider = createProvider(settings, stored, keys, offline)
    },
    /** The user of this access token. */
    ownerOf: async (token: string) => (await provider.AccessToken.find(token))?.accountId,
    stop() {
      server.closeAllConnections()
      return new Promise(resolve => server.close(resolve))
    },
  }
}
