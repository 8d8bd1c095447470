// Manages the tokens of one server and identity: status, login and logout.
import { readAuthorizationResponse } from './authorize.ts'
import { type AuthChallenge, readChallenge } from './challenge.ts'
import type { ClientContext } from './context.ts'
import { createEngine, type Engine } from './engine.ts'
import { AuthError, scrubError } from './errors.ts'
import { createEmit } from './events.ts'
import { isUnattended } from './grants.ts'
import { codeOf, createOAuthHttp, describeUnreachable, TIMEOUT, withAbort } from './http.ts'
import { knownClient } from './identity.ts'
import { createNetPolicy } from './net-policy.ts'
import { checkScopes, type ResolvedOptions } from './resolve-options.ts'
import { FLOW_LIFETIME_MS, type TokenContainer } from './stores.ts'
import { createSecrets, printableUrl } from './text.ts'
import { revokeToken } from './token-endpoint.ts'
import { createCacheKey, expiresAt, isExpired } from './token-store.ts'
import { createTracing } from './tracing.ts'

/** Token status without the tokens. */
export interface SessionStatus {
  readonly serverUrl: string
  readonly profile: string | undefined
  /** The access token is valid or refreshable. */
  readonly loggedIn: boolean
  readonly expired: boolean
  /** Milliseconds since the epoch; undefined: no token or no expiry. */
  readonly expiresAt: number | undefined
  /** The next token can be obtained without the user. */
  readonly refreshable: boolean
  readonly tokenType: string | undefined
  readonly scope: string | undefined
  readonly issuer: string | undefined
  readonly clientId: string | undefined
  readonly resource: string | undefined
}

interface SignalOption {
  readonly signal?: AbortSignal | undefined
}

interface LoginOptions extends SignalOption {
  readonly scopes?: readonly string[]
  /** A registration that does not permit the scopes. */
  readonly refusedClientId?: string | undefined
}

/** Tokens of one server and identity. Only `token()` returns a token. */
export interface AuthSession {
  /** Returns a valid token, refreshed if necessary; undefined if a login is required. */
  token(options?: SignalOption): Promise<string | undefined>
  /** Starts a login or the configured grant, regardless of stored tokens. `scopes` are added. */
  login(options?: SignalOption & { readonly scopes?: readonly string[] }): Promise<void>
  /** Revokes (RFC 7009) and deletes tokens. `forgetClient`: also deletes the dynamic registration. */
  logout(options?: SignalOption & { readonly forgetClient?: boolean }): Promise<{ readonly revoked: boolean }>
  /** Deletes a dynamic registration and its tokens. */
  forgetClient(): Promise<void>
  /** Completes a deferred login with the full callback URL. */
  completeAuthorization(callbackUrl: string | URL): Promise<void>
  status(): Promise<SessionStatus>
  /** Obtains a token after a 401 or 403. Resolves to false without a token. */
  onUnauthorized(response: Response, options?: SignalOption): Promise<boolean>
}

export interface Platform extends Pick<ClientContext, 'openRedirect' | 'issuer'> {}

/** Sends a request without a token, and reads the challenge of the response. Rejects if the server cannot be reached. */
export async function requestChallenge(
  send: typeof fetch,
  url: string,
  request: RequestInit,
  signal: AbortSignal | undefined,
): Promise<AuthChallenge | undefined> {
  const timeout = AbortSignal.timeout(TIMEOUT)
  const combined = signal ? AbortSignal.any([signal, timeout]) : timeout
  try {
    const response = await withAbort(send(url, { ...request, redirect: 'manual', signal: combined }), combined)
    await response.body?.cancel()
    return readChallenge(response)
  } catch (cause) {
    if (AuthError.is(cause) || signal?.aborted) throw cause
    const { problem, fix } = describeUnreachable(cause, timeout.aborted ? 'TIMEOUT' : codeOf(cause))
    throw new AuthError(`${printableUrl(url)} ${problem}`, {
      code: 'temporarily_unavailable',
      retryable: true,
      fix,
      cause,
    })
  }
}

export function createSession(options: ResolvedOptions, { openRedirect, issuer }: Platform = {}) {
  const now = Date.now
  const policy = createNetPolicy(issuer ?? options.serverUrl, options.networkPolicy, options.tokenEndpoint)
  const secrets = createSecrets()
  secrets.add(options.clientSecret, options.dynamicClientRegistration.initialAccessToken)
  let engine: Promise<{ ctx: ClientContext; engine: Engine; key: string }> | undefined

  const redacted =
    <Given extends unknown[], T>(work: (...given: Given) => Promise<T>) =>
    async (...given: Given): Promise<T> => {
      try {
        return await work(...given)
      } catch (thrown) {
        throw scrubError(thrown, secrets.scrub)
      }
    }

  async function createParts() {
    const key = await createCacheKey(options)
    const http = createTracing(options.openTelemetry).http(createOAuthHttp({ fetch: options.fetch, policy, secrets }))
    const ctx = {
      options,
      http,
      secrets,
      emit: createEmit(key, options.onEvent, secrets.scrub),
      now,
      openRedirect,
      issuer,
    }
    const label = JSON.stringify({ serverUrl: options.serverUrl, profile: options.profile })
    return { ctx, engine: createEngine(ctx, { key, label }), key }
  }

  const getParts = () => {
    engine ??= createParts()
    return engine
  }

  async function revoke(stored: TokenContainer, signal: AbortSignal): Promise<boolean> {
    const { ctx, engine } = await getParts()
    const authority = await engine.authority(stored, signal)
    const { server } = authority
    if (server.revocationEndpoint === undefined || server.issuer !== stored.authorizationServer) return false
    const query = { scope: stored.scope, registration: stored.registration, previousIssuer: stored.authorizationServer }
    const client = knownClient(ctx, server, { ...query, withoutRedirect: true })
    if (!client || client.clientId !== stored.clientId) return false
    const { refreshToken, accessToken } = stored
    if (refreshToken !== undefined) await revokeToken(ctx, server, client, refreshToken, 'refresh_token', signal)
    if (accessToken === undefined) return refreshToken !== undefined
    try {
      await revokeToken(ctx, server, client, accessToken, 'access_token', signal)
    } catch (error) {
      // Servers cannot revoke JWTs (RFC 7009 §2.2.1); revoking the refresh token ended the grant.
      if (refreshToken === undefined || !AuthError.is(error) || error.code !== 'unsupported_token_type') throw error
    }
    return true
  }

  const login = redacted(async ({ scopes, refusedClientId, signal }: LoginOptions = {}) => {
    if (scopes !== undefined) checkScopes('scopes of login', scopes)
    const { engine } = await getParts()
    const headers = { accept: 'text/event-stream, application/json' }
    const found = await requestChallenge(options.fetch, options.serverUrl, { headers }, signal)
    const prompt = options.interactive === 'defer' ? 'defer' : 'ask'
    const base = { used: await engine.store.read(), metadataUrls: found?.resourceMetadata ?? [], scheme: found?.scheme }
    const scopeRequest = { challenged: found?.scope, added: scopes, refusedClientId }
    await engine.obtain({ ...base, ...scopeRequest, stepUp: false, explicit: true, prompt }, signal)
  })

  const session: AuthSession = {
    token: redacted(async ({ signal }: SignalOption = {}) => {
      const { engine } = await getParts()
      return (await engine.current(signal))?.accessToken
    }),

    login,

    logout: redacted(async (settings: SignalOption & { readonly forgetClient?: boolean } = {}) => {
      const { signal = new AbortController().signal, forgetClient = false } = settings
      const { engine } = await getParts()
      const stored = await engine.store.read().catch(() => undefined)
      const revoked = stored?.accessToken ? await revoke(stored, signal).catch(() => false) : false
      await engine.store.locked(() => engine.store.clear(!forgetClient))
      return { revoked }
    }),

    forgetClient: redacted(async () => {
      const { engine } = await getParts()
      await engine.store.locked(() => engine.store.clear(false))
    }),

    completeAuthorization: redacted(async (callbackUrl: string | URL) => {
      const { ctx, engine, key } = await getParts()
      const url = new URL(callbackUrl)
      const states = url.searchParams.getAll('state')
      const record = states.length === 1 ? await options.flowStore.take(states[0] as string) : undefined
      if (!record || record.key !== key || record.createdAt + FLOW_LIFETIME_MS < now()) {
        throw new AuthError('the response does not belong to a login of this session', {
          code: 'state_mismatch',
          fix: 'start the login again: it is valid for ten minutes and for one response',
        })
      }
      await engine.redeem(record, readAuthorizationResponse(ctx, record, url))
    }),

    status: redacted(async () => {
      const { engine } = await getParts()
      const stored = await engine.store.read()
      const expired = stored?.accessToken !== undefined && isExpired(stored, now())
      const refreshable =
        stored?.refreshToken !== undefined || (stored?.accessToken !== undefined && isUnattended(options.grant))
      return {
        serverUrl: options.serverUrl,
        profile: options.profile,
        loggedIn: (stored?.accessToken !== undefined && !expired) || refreshable,
        expired,
        expiresAt: stored && expiresAt(stored),
        refreshable,
        tokenType: stored?.tokenType,
        scope: stored?.scope === undefined ? undefined : secrets.scrub(stored.scope),
        issuer: stored?.authorizationServer,
        clientId: stored?.clientId,
        resource: stored?.resource,
      }
    }),

    onUnauthorized: redacted(async (response: Response, { signal }: SignalOption = {}) => {
      const { engine } = await getParts()
      const challenge = readChallenge(response)
      if (!challenge) return false
      engine.breaker.recordRefusal()
      engine.breaker.check('token')
      const { scope: challenged, resourceMetadata: metadataUrls, scheme } = challenge
      const prompt = options.interactive === 'never' ? 'no' : options.interactive === 'defer' ? 'defer' : 'ask'
      const used = await engine.store.read()
      const query = { used, metadataUrls, challenged, scheme, stepUp: challenge.status === 403, prompt } as const
      return (await engine.obtain(query, signal)) !== undefined
    }),
  }
  return {
    session,
    login,
    engine: async () => (await getParts()).engine,
    guarded: <T>(work: () => Promise<T>) => redacted(work)(),
  }
}
