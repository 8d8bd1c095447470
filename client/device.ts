// Device authorization grant (RFC 8628).
import { chooseClientAuth } from './client-auth.ts'
import type { ClientContext } from './context.ts'
import { AuthError } from './errors.ts'
import type { GrantAbout } from './grants.ts'
import { sleep } from './http.ts'
import type { UserCodeInfo } from './options.ts'
import { readSeconds, readText } from './text.ts'
import { mayHaveGranted, readSuccess, requestToken, type TokenAnswer } from './token-endpoint.ts'

const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'

/** Default polling interval and `slow_down` increment, seconds (RFC 8628 §3.2, §3.5). */
const INTERVAL = 5
const SLOW_DOWN = 5

const MIN_INTERVAL = 0.1

const MAX_FAILURES = 8

/** Code lifetime if the server omits it, seconds. */
const LIFETIME = 600

interface DeviceCode {
  readonly deviceCode: string
  readonly info: UserCodeInfo
  readonly interval: number
}

export type Wait = (ms: number, signal: AbortSignal) => Promise<void>

async function requestCode(ctx: ClientContext, about: GrantAbout, signal: AbortSignal): Promise<DeviceCode> {
  const { server, client, resource, scope } = about
  const { issuer, deviceAuthorizationEndpoint } = server
  if (deviceAuthorizationEndpoint === undefined) {
    throw new AuthError(`${issuer} offers no login by device code`, {
      code: 'invalid_server_metadata',
      fix: 'use another grant, such as authorization_code with a redirectUri',
    })
  }
  const body = new URLSearchParams()
  if (scope !== undefined) body.set('scope', scope)
  if (resource !== undefined) body.set('resource', resource)
  const headers = new Headers()
  await chooseClientAuth(ctx, server, client).authenticate({ server, client, body, headers })
  const what = 'The device authorization endpoint'
  const answer = await ctx.http.post(deviceAuthorizationEndpoint, {
    what,
    body,
    headers: Object.fromEntries(headers),
    signal,
  })
  return readCode(ctx, about, readSuccess(ctx, { server, client, grantType: DEVICE_CODE }, answer))
}

function readCode(ctx: ClientContext, { server }: GrantAbout, json: Record<string, unknown>): DeviceCode {
  const deviceCode = readText(json['device_code'])
  const userCode = readText(json['user_code'])
  const verificationUri = readText(json['verification_uri']) ?? readText(json['verification_url'])
  ctx.secrets.add(deviceCode)
  if (deviceCode === undefined || userCode === undefined || verificationUri === undefined) {
    throw new AuthError(`the device answer of ${server.issuer} has no device_code, user_code or verification_uri`, {
      code: 'malformed_response',
      fix: 'its operator must send them (RFC 8628 §3.2)',
    })
  }
  const verificationUriComplete = readText(json['verification_uri_complete'])
  const expiresIn = readSeconds(json['expires_in']) ?? LIFETIME
  const interval = Math.max(readSeconds(json['interval']) ?? INTERVAL, MIN_INTERVAL)
  return { deviceCode, info: { userCode, verificationUri, verificationUriComplete, expiresIn }, interval }
}

async function tell(ctx: ClientContext, info: UserCodeInfo): Promise<void> {
  const { grant } = ctx.options
  if (grant.type !== 'device') throw new TypeError(`the grant is ${grant.type}`)
  const { userCode, verificationUri, expiresIn } = info
  ctx.emit('user-code', { userCode, verificationUri, expiresIn })
  try {
    await grant.onUserCode(info)
  } catch (cause) {
    if (AuthError.is(cause)) throw cause
    throw new AuthError('showing the user code to a person failed', {
      code: 'login_failed',
      fix: 'see the cause: it is what grant.onUserCode threw',
      cause,
    })
  }
}

function nextInterval(thrown: unknown, interval: number): number | undefined {
  if (!AuthError.is(thrown)) return undefined
  if (thrown.code === 'authorization_pending') return interval
  if (thrown.code === 'slow_down') return interval + SLOW_DOWN
  // Backs off (RFC 8628 §3.5). A success response has used up the code, even if its tokens were lost.
  return thrown.retryable && !mayHaveGranted(thrown) ? interval * 2 : undefined
}

const isProgress = (thrown: unknown): boolean =>
  AuthError.is(thrown) && (thrown.code === 'authorization_pending' || thrown.code === 'slow_down')

export async function requestByDevice(
  ctx: ClientContext,
  about: GrantAbout,
  signal: AbortSignal,
  wait: Wait = sleep,
): Promise<TokenAnswer> {
  const { server, client, resource, dpop } = about
  const code = await requestCode(ctx, about, signal)
  const end = ctx.now() + code.info.expiresIn * 1000
  await tell(ctx, code.info)
  const parameters = { device_code: code.deviceCode, resource }
  const request = { server, client, grantType: DEVICE_CODE, parameters, dpop, sendOnce: true }
  let interval = code.interval
  let failures = 0
  for (;;) {
    await wait(Math.min(interval * 1000, Math.max(0, end - ctx.now())), signal)
    if (ctx.now() >= end) {
      throw new AuthError(`nobody entered the code within ${code.info.expiresIn} s`, {
        code: 'expired_token',
        fix: 'start the login again',
      })
    }
    try {
      return await requestToken(ctx, request, signal)
    } catch (thrown) {
      const next = nextInterval(thrown, interval)
      failures = isProgress(thrown) ? 0 : failures + 1
      if (next === undefined || failures >= MAX_FAILURES) throw thrown
      interval = next
    }
  }
}
