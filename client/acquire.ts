// Obtains tokens by refresh, by a grant without a user, or by login, and stores them before use.

import { deferAuthorization, requestAuthorization, startAuthorization } from './authorize.ts'
import type { ClientContext } from './context.ts'
import type { Authority } from './discovery.ts'
import type { DPoPSigner } from './dpop.ts'
import { AuthError } from './errors.ts'
import { isUnattended, requestByDevice, requestByGrant } from './grants.ts'
import { type IdentityQuery, identifyClient, isClientRefused, knownClient } from './identity.ts'
import { chooseScope, type ScopeChoice, type WantedScopes } from './scopes.ts'
import type { ClientIdentity, FlowRecord, TokenContainer } from './stores.ts'
import { mayHaveGranted, requestToken } from './token-endpoint.ts'
import { canRefresh, createContainer, earlierScopes, renewContainer, type TokenStore } from './token-store.ts'

export interface TokenSpec extends WantedScopes {
  readonly authority: Authority
  readonly dpop: DPoPSigner | undefined
  /** A registration that a login replaces. */
  readonly refusedClientId?: string | undefined
}

export interface Prompt {
  readonly defer: boolean
  readonly onPrompt: () => void
}

export type Acquirer = ReturnType<typeof createAcquirer>

/** Refresh errors that a new login can fix (RFC 6749 §5.2, RFC 8707 §2, OpenID Connect Core §3.1.2.6). */
const FIXED_BY_LOGIN = new Set([
  'invalid_grant',
  'invalid_scope',
  'invalid_target',
  'invalid_request',
  'unsupported_grant_type',
  'access_denied',
  'login_required',
  'consent_required',
  'interaction_required',
])

/** Milliseconds before reuse of a refresh token whose response was lost. */
const REUSE_DELAY_MS = 10_000

const isClientRejected = (error: unknown, client: ClientIdentity): boolean =>
  isClientRefused(error) && client.source === 'registered'

/** The registration is limited to its original scopes (RFC 7591 §2, `scope`). */
const isTooNarrow = (error: unknown, { registration }: ClientIdentity, previous: TokenContainer | undefined): boolean =>
  AuthError.is(error) &&
  error.code === 'invalid_scope' &&
  registration !== undefined &&
  registration.clientId === previous?.registration?.clientId

export function createAcquirer(ctx: ClientContext, store: TokenStore, key: string) {
  const { options, emit, now } = ctx
  /** The refresh token whose response was lost. It is possibly used up, and the server can treat its reuse as theft. */
  let lost: { readonly refreshToken: string | undefined; readonly until: number; readonly error: AuthError } | undefined

  async function saveRegistration({ registration }: ClientIdentity) {
    if (!registration) return
    await store.locked(async () => {
      const stored = await store.read()
      const { issuer, clientId } = stored?.registration ?? {}
      if (clientId === registration.clientId && issuer === registration.issuer) return
      await store.write({ v: 1, ...stored, registration })
    })
  }

  async function dropRegistration({ issuer, clientId }: ClientIdentity, why: string) {
    emit('registration-dropped', { issuer, clientId, why })
    const stored = await store.read()
    if (stored?.registration?.clientId !== clientId) return
    const { registration: _, ...kept } = stored
    await store.write(kept)
  }

  /** Stores the tokens. The caller must hold the lock. */
  async function save(container: TokenContainer, grant: string): Promise<TokenContainer> {
    await store.write(container)
    emit('token-obtained', { grant, scope: container.scope, expiresIn: container.expiresIn })
    return container
  }

  const query = (
    previous: TokenContainer | undefined,
    scope: string | undefined,
    refusedClientId?: string,
  ): IdentityQuery => ({
    scope,
    registration: previous?.registration,
    previousIssuer: previous?.clientId === options.clientId ? previous?.authorizationServer : undefined,
    refusedClientId,
  })

  function selectScope(previous: TokenContainer | undefined, { authority: { info, server }, ...rest }: TokenSpec) {
    const sources = { ...rest, supported: info.scopesSupported, earlier: earlierScopes(previous, server.issuer) }
    return chooseScope(options, sources, server)
  }

  async function promptUser(
    previous: TokenContainer | undefined,
    spec: TokenSpec,
    prompt: Prompt,
    target: { client: ClientIdentity; choice: ScopeChoice },
    signal: AbortSignal,
  ): Promise<TokenContainer> {
    const { authority, dpop } = spec
    const { client, choice } = target
    const { server, resource, info } = authority
    if (options.grant.type === 'device') {
      prompt.onPrompt()
      const response = await requestByDevice(ctx, { server, client, resource, scope: choice.scope, dpop }, signal)
      const container = createContainer(response, { authority, client, choice, dpop, previous, now: now() })
      return store.locked(() => save(container, 'device'))
    }
    const flow = await startAuthorization(ctx, {
      server,
      client,
      resource,
      scope: choice.scope,
      requestedScope: choice.requested,
      resourceMetadataUrl: info.metadataUrl,
      dpop: dpop !== undefined,
      key,
    })
    if (prompt.defer) return deferAuthorization(ctx, flow)
    prompt.onPrompt()
    return redeem(flow.record, await requestAuthorization(ctx, flow, signal), dpop, signal)
  }

  async function redeem(
    record: FlowRecord,
    code: string,
    dpop: DPoPSigner | undefined,
    signal: AbortSignal,
  ): Promise<TokenContainer> {
    const { server, client, resource, codeVerifier, redirectUri, scope, requestedScope, resourceMetadataUrl } = record
    const parameters = { code, redirect_uri: redirectUri, code_verifier: codeVerifier, resource }
    const response = await requestToken(
      ctx,
      { server, client, grantType: 'authorization_code', parameters, dpop },
      signal,
    )
    const authority = { server, resource, info: { metadataUrl: resourceMetadataUrl } }
    const choice = { scope, requested: requestedScope }
    const previous = await store.read()
    const container = createContainer(response, { authority, client, choice, dpop, previous, now: now() })
    return store.locked(() => save(container, 'authorization_code'))
  }

  return {
    /** Refreshes the tokens. Requires the lock. Undefined without a refresh token, or if the server rejected it. */
    async refresh(
      container: TokenContainer,
      { authority, dpop }: Pick<TokenSpec, 'authority' | 'dpop'>,
      signal: AbortSignal,
    ): Promise<TokenContainer | undefined> {
      const client = knownClient(ctx, authority.server, { ...query(container, container.scope), withoutRedirect: true })
      if (!client || !canRefresh(container, authority, client)) return undefined
      if (lost && lost.refreshToken === container.refreshToken && now() < lost.until) throw lost.error
      const scope = options.refreshScope === 'granted' ? container.scope : undefined
      const parameters = { refresh_token: container.refreshToken, resource: authority.resource, scope }
      try {
        const request = { server: authority.server, client, grantType: 'refresh_token', parameters, dpop }
        return await save(renewContainer(await requestToken(ctx, request, signal), container, now()), 'refresh_token')
      } catch (error) {
        if (!AuthError.is(error) || error.code === 'cache_failed') throw error
        emit('refresh-failed', { code: error.code, retryable: error.retryable })
        if (mayHaveGranted(error)) lost = { refreshToken: container.refreshToken, until: now() + REUSE_DELAY_MS, error }
        const rejected = isClientRejected(error, client)
        if (error.retryable || !(rejected || FIXED_BY_LOGIN.has(error.code))) throw error
        if (rejected) await dropRegistration(client, error.code)
        if (error.code !== 'invalid_grant') return undefined
        emit('token-dropped', { why: error.code })
        return store.drop(container)
      }
    },

    /** Requests new tokens. The caller must hold the lock. */
    async request(previous: TokenContainer | undefined, spec: TokenSpec, signal: AbortSignal): Promise<TokenContainer> {
      const { authority, dpop } = spec
      const choice = await selectScope(previous, spec)
      const client = await identifyClient(ctx, authority.server, query(previous, choice.scope), signal)
      const { server, resource } = authority
      const response = await requestByGrant(ctx, { server, resource, client, scope: choice.scope, dpop }, signal)
      const container = createContainer(response, { authority, client, choice, dpop, previous, now: now() })
      return save(container, options.grant.type)
    },

    async login(
      previous: TokenContainer | undefined,
      spec: TokenSpec,
      prompt: Prompt,
      signal: AbortSignal,
    ): Promise<TokenContainer> {
      if (isUnattended(options.grant)) throw new TypeError(`the grant ${options.grant.type} has no login by a user`)
      const choice = await selectScope(previous, spec)
      let client: ClientIdentity | undefined
      const attempt = async (refused?: string) => {
        client = await identifyClient(ctx, spec.authority.server, query(previous, choice.scope, refused), signal)
        await saveRegistration(client)
        return promptUser(previous, spec, prompt, { client, choice }, signal)
      }
      try {
        return await attempt(spec.refusedClientId)
      } catch (error) {
        const rejected = client
        if (!rejected || !(isClientRejected(error, rejected) || isTooNarrow(error, rejected, previous))) throw error
        await store.locked(() => dropRegistration(rejected, (error as AuthError).code))
        return attempt(rejected.clientId)
      }
    },

    redeem,
  }
}
