// A `fetch` that obtains access tokens and repeats requests after an authorization challenge.

import { type AuthChallenge, readChallenge } from './challenge.ts'
import type { Engine, TokenQuery } from './engine.ts'
import { AuthError } from './errors.ts'
import type { ClientOAuthOptions } from './options.ts'
import { createReplayableRequest, type ReplayableRequest, withinOrigin } from './replay.ts'
import { type ResolvedOptions, resolveOptions } from './resolve-options.ts'
import { operationOf } from './scopes.ts'
import { type AuthSession, createSession, type Platform } from './session.ts'
import type { Outcome } from './token-store.ts'
import { createTracing } from './tracing.ts'

/** A drop-in `fetch`, for example for the transport of an MCP client. */
export type AuthFetch = typeof fetch & { readonly session: AuthSession }

function selectPrompt({ interactive }: ResolvedOptions, { method }: ReplayableRequest): TokenQuery['prompt'] {
  const mayPrompt = interactive === 'any' || (interactive !== 'never' && method === 'POST')
  if (!mayPrompt) return 'no'
  return interactive === 'defer' ? 'defer' : 'ask'
}

function stepUpLimit({ grant, maxStepUps }: ResolvedOptions): number {
  if (grant.type === 'authorization_code' || grant.type === 'device') return maxStepUps
  return grant.type === 'client_credentials' ? Math.min(1, maxStepUps) : 0
}

function createSender(options: ResolvedOptions, engine: Engine, request: ReplayableRequest) {
  const operation = operationOf(request)
  /** `authorized`: a token was sent after a 401. Another 401 is final. */
  const attempts = { authorized: false, stepUps: 0, nonce: false }

  async function send(current: Outcome): Promise<Response> {
    const headers = new Headers(request.headers)
    const authHeaders = current ? await engine.headersFor(current, request.method, request.url) : {}
    for (const [name, value] of Object.entries(authHeaders)) headers.set(name, value)
    const response = await request.send(withinOrigin(options.fetch), headers)
    const nonce = response.headers.get('dpop-nonce')
    if (nonce !== null) engine.rememberNonce(request.url.origin, nonce)
    return response
  }

  async function resolveChallenge(challenge: AuthChallenge, previous: Outcome): Promise<Outcome> {
    const { scope: challenged, resourceMetadata: metadataUrls, scheme } = challenge
    const base = { used: previous, metadataUrls, challenged, scheme, prompt: selectPrompt(options, request) }
    if (challenge.error === 'use_dpop_nonce' && previous && !attempts.nonce) {
      attempts.nonce = true
      return previous
    }
    if (challenge.status === 401) {
      if (attempts.authorized) return undefined
      attempts.authorized = true
      const obtained = await engine.obtain({ ...base, stepUp: false }, request.signal)
      if (!obtained && options.interactive === 'never' && request.method === 'POST') throw loginRequiredError(options)
      return obtained
    }
    if (attempts.stepUps >= stepUpLimit(options)) return undefined
    attempts.stepUps++
    const admit = () => {
      if (!engine.stepUps.mayTry(operation, challenged ?? [])) return false
      engine.stepUps.record(operation, challenged ?? [])
      engine.emit('step-up', { scope: (challenged ?? []).join(' '), attempt: attempts.stepUps })
      return true
    }
    return engine.obtain({ ...base, stepUp: true, admit }, request.signal)
  }

  async function handleResponse(response: Response, current: Outcome): Promise<Outcome> {
    try {
      const challenge = readChallenge(response)
      if (!challenge) return undefined
      if (current) engine.breaker.recordRefusal()
      engine.emit('challenge', { status: challenge.status, scope: challenge.scope?.join(' ') })
      const obtained = await resolveChallenge(challenge, current)
      if (!obtained || request.replayable) return obtained
      engine.emit('retry-skipped', { why: 'the body is a stream, which can be sent once' })
      return undefined
    } catch (error) {
      await response.body?.cancel()
      throw error
    }
  }

  return async (): Promise<Response> => {
    engine.breaker.check('token')
    let current = await engine.current(request.signal)
    if (!current) engine.breaker.check('prompt')
    for (;;) {
      const response = await send(current)
      if (response.status !== 401 && response.status !== 403) {
        engine.breaker.success()
        engine.stepUps.forget(operation)
        return response
      }
      const obtained = await handleResponse(response, current)
      if (!obtained) return response
      await response.body?.cancel()
      current = obtained
    }
  }
}

const loginRequiredError = ({ serverUrl }: ResolvedOptions) =>
  new AuthError('a login by a user is required, and interactive is "never"', {
    code: 'interaction_required',
    fix: { text: 'log in first with', method: 'login', url: serverUrl },
  })

/**
 * Creates a `fetch` for one protected MCP server. Requests to its origin carry a token. A 401, or a 403 that requires
 * more scopes, starts discovery, registration, login, refresh or step-up; then the request is sent again. Requests to
 * other origins, and requests with an Authorization header, pass through.
 *
 * Throws an AuthError `invalid_options`. The `fetch` rejects with an AuthError (`name`: `UnauthorizedError`) or with an
 * error of the underlying `fetch`.
 */
export const createAuthFetch = (options: ClientOAuthOptions): AuthFetch => createAuthFetchOn({}, options)

export function createAuthFetchOn(platform: Platform, options: ClientOAuthOptions): AuthFetch {
  const resolved = resolveOptions(options, platform.openRedirect !== undefined)
  const { origin } = new URL(resolved.serverUrl)
  const { session, engine, guarded } = createSession(resolved, platform)
  const tracing = createTracing(resolved.openTelemetry)
  const authFetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = createReplayableRequest(input, init)
    if (request?.url.origin !== origin || request.headers.has('authorization')) return resolved.fetch(input, init)
    return tracing.request(request, traced => guarded(async () => createSender(resolved, await engine(), traced)()))
  }
  return Object.assign(authFetch, { session })
}
