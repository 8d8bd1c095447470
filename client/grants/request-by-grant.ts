// The grants that need nobody to log in, by the name they are configured with.
import type { Authority } from '../authority.ts'
import type { ClientContext } from '../context.ts'
import type { DPoPSigner } from '../dpop.ts'
import type { Grant } from '../options.ts'
import type { ClientIdentity } from '../parties.ts'
import { requestToken, type TokenAnswer } from '../token-endpoint.ts'
import type { GrantAbout } from './about.ts'
import { requestByEnterprise } from './enterprise.ts'
import { requestByJwtBearer } from './jwt-bearer.ts'

export function requestByClientCredentials(
  ctx: ClientContext,
  { server, client, resource, scope, dpop }: GrantAbout,
  signal: AbortSignal,
): Promise<TokenAnswer> {
  const grantType = 'client_credentials'
  return requestToken(ctx, { server, client, grantType, parameters: { scope, resource }, dpop }, signal)
}

/** True for grants where nobody is asked anything. */
export const isUnattended = ({ type }: Grant): boolean => type !== 'authorization_code' && type !== 'device'

export function requestByGrant(
  ctx: ClientContext,
  { server, resource }: Authority,
  about: { client: ClientIdentity; scope: string | undefined; dpop: DPoPSigner | undefined },
  signal: AbortSignal,
): Promise<TokenAnswer> {
  const { grant } = ctx.options
  const request = { server, resource, ...about }
  if (grant.type === 'client_credentials') return requestByClientCredentials(ctx, request, signal)
  if (grant.type === 'jwt_bearer') return requestByJwtBearer(ctx, request, signal)
  if (grant.type === 'enterprise') return requestByEnterprise(ctx, request, signal)
  throw new TypeError(`the grant ${grant.type} asks a person`)
}
