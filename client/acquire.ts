// Obtains tokens by refresh, by a grant without a user, or by login, and stores them before use.

import { askForAuthorization, beginAuthorization, deferAuthorization } from './authorize.ts'
import type { ClientContext } from './context.ts'
import type { Authority } from './discovery.ts'
import type { DPoPSigner } from './dpop.ts'
import { AuthError } from './errors.ts'
import { isUnattended, requestByDevice, requestByGrant } from './grants.ts'
import { type IdentityWish, identifyClient, isClientRefused, knownClient } from './identity.ts'
import { chooseScope, type ScopeChoice, type WantedScopes } from './scopes.ts'
import type { ClientIdentity, FlowRecord, TokenContainer } from './stores.ts'
import { mayHaveGranted, requestToken } from './token-endpoint.ts'
import { createContainer, earlierScopes, fits, renewContainer, type TokenStore } from './token-store.ts'

export interface Need extends WantedScopes {
  readonly authority: Authority
  readonly dpop: DPoPSigner | undefined
  /** A registration that a login replaces. */
  readonly refusedClientId?: string | undefined
}

export interface Prompt {
  readonly defer: boolean
  readonly asking: () => void
}

export type Acquirer = ReturnType<typeof createAcquirer>

/** Refresh errors that a new login can fix (RFC 6749 §5.2, RFC 8707 §2, OpenID Connect Core §3.1.2.6). */
const HEALED_BY_LOGIN = new Set([
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
const DOUBT_MS = 10_000

const isGone = (error: unknown, client: ClientIdentity): boolean =>
  isClientRefused(error) && client.source === 'registered'

/** The registration is limited to its original scopes (RFC 7591 §2, `scope`). */
const isTooNarrow = (error: unknown, { registration }: ClientIdentity, before: TokenContainer | undefined): boolean =>
  AuthError.is(error) &&
  error.code === 'invalid_scope' &&
  registration !== undefined &&
  registration.clientId === before?.registration?.clientId

export function createAcquirer(ctx: ClientContext, store: TokenStore, key: string) {
  const { options, emit, now } = ctx
  /** The refresh token whose response was lost. It is possibly used up, and the server can treat its reuse as theft. */
  let doubt:
    | { readonly refreshToken: string | undefined; readonly until: number; readonly error: AuthError }
    | undefined

  async function keepRegistration({ registration }: ClientIdentity) {
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
  async function keep(container: TokenContainer, grant: string): Promise<TokenContainer> {
    await store.write(container)
    emit('token-obtained', { grant, scope: container.scope, expiresIn: container.expiresIn })
    return container
  }

  const wish = (
    before: TokenContainer | undefined,
    scope: string | undefined,
    refusedClientId?: string,
  ): IdentityWish => ({
    scope,
    registration: before?.registration,
    previousIssuer: before?.clientId === options.clientId ? before?.authorizationServer : undefined,
    refusedClientId,
  })

  function choose(before: TokenContainer | undefined, { authority: { info, server }, ...asked }: Need) {
    const facts = { ...asked, supported: info.scopesSupported, earlier: earlierScopes(before, server.issuer) }
    return chooseScope(options, facts, server)
  }

  async function askPerson(
    before: TokenContainer | undefined,
    need: Need,
    prompt: Prompt,
    about: { client: ClientIdentity; choice: ScopeChoice },
    signal: AbortSignal,
  ): Promise<TokenContainer> {
    const { authority, dpop } = need
    const { client, choice } = about
    const { server, resource, info } = authority
    if (options.grant.type === 'device') {
      prompt.asking()
      const answer = await requestByDevice(ctx, { server, client, resource, scope: choice.scope, dpop }, signal)
      const container = createContainer(answer, { authority, client, choice, dpop, before, now: now() })
      return store.locked(() => keep(container, 'device'))
    }
    const flow = await beginAuthorization(ctx, {
      server,
      client,
      resource,
      scope: choice.scope,
      requestedScope: choice.requested,
      resourceMetadataUrl: info.metadataUrl,
      key,
    })
    if (prompt.defer) return deferAuthorization(ctx, flow)
    prompt.asking()
    return redeem(flow.record, await askForAuthorization(ctx, flow, signal), dpop, signal)
  }

  async function redeem(
    record: FlowRecord,
    code: string,
    dpop: DPoPSigner | undefined,
    signal: AbortSignal,
  ): Promise<TokenContainer> {
    const { server, client, resource, codeVerifier, redirectUri, scope, requestedScope, resourceMetadataUrl } = record
    const parameters = { code, redirect_uri: redirectUri, code_verifier: codeVerifier, resource }
    const answer = await requestToken(
      ctx,
      { server, client, grantType: 'authorization_code', parameters, dpop },
      signal,
    )
    const authority = { server, resource, info: { metadataUrl: resourceMetadataUrl } }
    const choice = { scope, requested: requestedScope }
    const before = await store.read()
    const container = createContainer(answer, { authority, client, choice, dpop, before, now: now() })
    return store.locked(() => keep(container, 'authorization_code'))
  }

  return {
    /** Refreshes the tokens. Requires the lock. Undefined without a refresh token, or if the server rejected it. */
    async refresh(
      container: TokenContainer,
      { authority, dpop }: Pick<Need, 'authority' | 'dpop'>,
      signal: AbortSignal,
    ): Promise<TokenContainer | undefined> {
      const client = knownClient(ctx, authority.server, { ...wish(container, container.scope), withoutRedirect: true })
      if (!client || !fits(container, authority, client)) return undefined
      if (doubt && doubt.refreshToken === container.refreshToken && now() < doubt.until) throw doubt.error
      const scope = options.refreshScope === 'granted' ? container.scope : undefined
      const parameters = { refresh_token: container.refreshToken, resource: authority.resource, scope }
      try {
        const request = { server: authority.server, client, grantType: 'refresh_token', parameters, dpop }
        return await keep(renewContainer(await requestToken(ctx, request, signal), container, now()), 'refresh_token')
      } catch (error) {
        if (!AuthError.is(error) || error.code === 'cache_failed') throw error
        emit('refresh-failed', { code: error.code, retryable: error.retryable })
        if (mayHaveGranted(error)) doubt = { refreshToken: container.refreshToken, until: now() + DOUBT_MS, error }
        const gone = isGone(error, client)
        if (error.retryable || !(gone || HEALED_BY_LOGIN.has(error.code))) throw error
        if (gone) await dropRegistration(client, error.code)
        if (error.code !== 'invalid_grant') return undefined
        emit('token-dropped', { why: error.code })
        return store.drop(container)
      }
    },

    /** Requests new tokens. The caller must hold the lock. */
    async request(before: TokenContainer | undefined, need: Need, signal: AbortSignal): Promise<TokenContainer> {
      const { authority, dpop } = need
      const choice = await choose(before, need)
      const client = await identifyClient(ctx, authority.server, wish(before, choice.scope), signal)
      const { server, resource } = authority
      const answer = await requestByGrant(ctx, { server, resource, client, scope: choice.scope, dpop }, signal)
      const container = createContainer(answer, { authority, client, choice, dpop, before, now: now() })
      return keep(container, options.grant.type)
    },

    async login(
      before: TokenContainer | undefined,
      need: Need,
      prompt: Prompt,
      signal: AbortSignal,
    ): Promise<TokenContainer> {
      if (isUnattended(options.grant)) throw new TypeError(`the grant ${options.grant.type} has no login by a user`)
      const choice = await choose(before, need)
      let client: ClientIdentity | undefined
      const attempt = async (refused?: string) => {
        client = await identifyClient(ctx, need.authority.server, wish(before, choice.scope, refused), signal)
        await keepRegistration(client)
        return askPerson(before, need, prompt, { client, choice }, signal)
      }
      try {
        return await attempt(need.refusedClientId)
      } catch (error) {
        const gone = client
        if (!gone || !(isGone(error, gone) || isTooNarrow(error, gone, before))) throw error
        await store.locked(() => dropRegistration(gone, (error as AuthError).code))
        return attempt(gone.clientId)
      }
    },

    redeem,
  }
}
