// A workload shows the assertion that its platform gave it (RFC 7523 §2.1, workload identity federation).
import type { ClientContext } from '../context.ts'
import { AuthError } from '../errors.ts'
import { requestToken, type TokenAnswer } from '../token-endpoint.ts'
import type { GrantAbout } from './about.ts'

export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

/** What the caller's function gives. Its failure is told as ours, with its own as the cause. */
export async function askFor(name: string, ask: () => Promise<string>): Promise<string> {
  const fail = (what: string, cause?: unknown) =>
    new AuthError(`${name} ${what}`, { code: 'assertion_failed', fix: `check the function ${name}`, cause })
  let given: string
  try {
    given = await ask()
  } catch (cause) {
    throw AuthError.is(cause) ? cause : fail('threw', cause)
  }
  if (typeof given !== 'string' || given === '') throw fail('gave nothing')
  return given
}

/**
 * Requests a token with a fresh assertion, once: neither a failure nor a refusal is followed by another attempt or
 * another grant. Only a server that wants its nonce in the DPoP proof is asked again, with another assertion.
 */
export async function requestByJwtBearer(
  ctx: ClientContext,
  { server, client, resource, scope, dpop }: GrantAbout,
  signal: AbortSignal,
): Promise<TokenAnswer> {
  const { grant } = ctx.options
  if (grant.type !== 'jwt_bearer') throw new TypeError(`the grant is ${grant.type}`)
  const { issuer, tokenEndpoint = issuer } = server
  const ask = () => grant.assertion({ issuer, tokenEndpoint, resource, signal })
  const parameters = async () => ({ assertion: await askFor('grant.assertion', ask), scope, resource })
  return requestToken(ctx, { server, client, grantType: JWT_BEARER, parameters, dpop, sendOnce: true }, signal)
}
