// A `fetch` that obtains access tokens and repeats requests after an authorization challenge.

import { type AuthCue, readCue } from './challenge.ts'
import type { Engine, Want } from './engine.ts'
import { AuthError } from './errors.ts'
import type { ClientOAuthOptions } from './options.ts'
import { createReplayable, type ReplayableRequest, withinOrigin } from './replay.ts'
import { type ResolvedOptions, resolveOptions } from './resolve-options.ts'
import { operationOf } from './scopes.ts'
import { type AuthSession, createSession, type Platform } from './session.ts'
import type { TokenContainer } from './stores.ts'
import { createTracing } from './tracing.ts'

/** A drop-in `fetch`, for example for the transport of an MCP client. */
export type AuthFetch = typeof fetch & { readonly session: AuthSession }

function askFor({ interactive }: ResolvedOptions, { method }: ReplayableRequest): Want['ask'] {
  const may = interactive === 'any' || (interactive !== 'never' && method === 'POST')
  if (!may) return 'no'
  return interactive === 'defer' ? 'defer' : 'ask'
}

function stepUpLimit({ grant, maxStepUps }: ResolvedOptions): number {
  if (grant.type === 'authorization_code' || grant.type === 'device') return maxStepUps
  return grant.type === 'client_credentials' ? Math.min(1, maxStepUps) : 0
}

function createLoop(options: ResolvedOptions, engine: Engine, request: ReplayableRequest) {
  const operation = operationOf(request)
  /** `authorized`: a token was sent after a 401. Another 401 is final. */
  const attempts = { authorized: false, stepUps: 0, nonce: false }

  async function send(held: TokenContainer | undefined): Promise<Response> {
    const headers = new Headers(request.headers)
    const shown = held ? await engine.headersFor(held, request.method, request.url) : {}
    for (const [name, value] of Object.entries(shown)) headers.set(name, value)
    const response = await request.send(withinOrigin(options.fetch), headers)
    const nonce = response.headers.get('dpop-nonce')
    if (nonce !== null) engine.rememberNonce(request.url.origin, nonce)
    return response
  }

  async function answer(cue: AuthCue, used: TokenContainer | undefined): Promise<TokenContainer | undefined> {
    const { scope: challenged, resourceMetadata: metadataUrls, scheme } = cue
    const want = { used, metadataUrls, challenged, scheme, ask: askFor(options, request) }
    if (cue.error === 'use_dpop_nonce' && used && !attempts.nonce) {
      attempts.nonce = true
      return used
    }
    if (cue.status === 401) {
      if (attempts.authorized) return undefined
      attempts.authorized = true
      const obtained = await engine.obtain({ ...want, stepUp: false }, request.signal)
      if (!obtained && options.interactive === 'never' && request.method === 'POST') throw loginNeeded(options)
      return obtained
    }
    if (attempts.stepUps >= stepUpLimit(options)) return undefined
    attempts.stepUps++
    const admit = () => {
      if (!engine.stepUps.mayTry(operation, challenged ?? [])) return false
      engine.stepUps.tried(operation, challenged ?? [])
      engine.emit('step-up', { scope: (challenged ?? []).join(' '), attempt: attempts.stepUps })
      return true
    }
    return engine.obtain({ ...want, stepUp: true, admit }, request.signal)
  }

  async function next(response: Response, held: TokenContainer | undefined): Promise<TokenContainer | undefined> {
    try {
      const cue = readCue(response)
      if (!cue) return undefined
      if (held) engine.storm.refused()
      engine.emit('challenge', { status: cue.status, scope: cue.scope?.join(' ') })
      const obtained = await answer(cue, held)
      if (!obtained || request.replayable) return obtained
      engine.emit('retry-skipped', { why: 'the body is a stream, which can be sent once' })
      return undefined
    } catch (error) {
      await response.body?.cancel()
      throw error
    }
  }

  return async (): Promise<Response> => {
    engine.storm.check('token')
    let held = await engine.current(request.signal)
    if (!held) engine.storm.check('prompt')
    for (;;) {
      const response = await send(held)
      if (response.status !== 401 && response.status !== 403) {
        engine.storm.success()
        engine.stepUps.succeeded(operation)
        return response
      }
      const obtained = await next(response, held)
      if (!obtained) return response
      await response.body?.cancel()
      held = obtained
    }
  }
}

const loginNeeded = ({ serverUrl }: ResolvedOptions) =>
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
    const request = createReplayable(input, init)
    if (request?.url.origin !== origin || request.headers.has('authorization')) return resolved.fetch(input, init)
    return tracing.request(request, carrying => guarded(async () => createLoop(resolved, await engine(), carrying)()))
  }
  return Object.assign(authFetch, { session })
}
