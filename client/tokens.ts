// What is kept of a token answer: the tokens, and the stamps that say where they may be used and renewed.

import type { Authority } from './authority.ts'
import type { TokenContainer } from './cache/types.ts'
import type { ResourceInfo } from './discovery.ts'
import type { DPoPSigner } from './dpop.ts'
import type { ClientIdentity, ServerInfo } from './parties.ts'
import type { ResolvedOptions } from './resolve-options.ts'
import { type ScopeChoice, splitScope, unite } from './scopes.ts'
import type { TokenAnswer } from './token-endpoint.ts'

export interface AnswerFacts {
  readonly authority: Pick<Authority, 'server' | 'resource'> & { readonly info: Pick<ResourceInfo, 'metadataUrl'> }
  readonly client: ClientIdentity
  readonly choice: ScopeChoice
  readonly dpop: DPoPSigner | undefined
  /** What was stored before. */
  readonly before: TokenContainer | undefined
  readonly now: number
}

const given = <T extends object>(fields: T) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }

/** Asked for or granted before at this authorization server. */
export const earlierScopes = (before: TokenContainer | undefined, issuer: string): string[] =>
  before?.authorizationServer === issuer ? unite(splitScope(before.requestedScope), splitScope(before.scope)) : []

/** Of the option `tokenEndpoint`. */
const givenEndpoint = ({ tokenEndpoint, tokenEndpointGiven }: ServerInfo): string | undefined =>
  tokenEndpointGiven ? tokenEndpoint : undefined

/** The container of a new grant. */
export function createContainer(answer: TokenAnswer, facts: AnswerFacts): TokenContainer {
  const { authority, client, choice, dpop, before, now } = facts
  const { server, info, resource } = authority
  const requested = unite(earlierScopes(before, server.issuer), splitScope(choice.requested))
  return {
    v: 1,
    obtainedAt: now,
    accessToken: answer.accessToken,
    tokenType: answer.tokenType,
    clientId: client.clientId,
    authorizationServer: server.issuer,
    ...given({
      refreshToken: answer.refreshToken,
      expiresIn: answer.expiresIn,
      // An answer without `scope` grants what was asked for (RFC 6749 §5.1).
      scope: answer.scope ?? choice.scope,
      requestedScope: requested.length > 0 ? requested.join(' ') : undefined,
      clientSecret: client.source === 'registered' ? client.clientSecret : undefined,
      clientSecretExpiresAt: client.clientSecretExpiresAt,
      tokenEndpointAuthMethod: client.authMethod,
      tokenEndpoint: givenEndpoint(server),
      resource,
      resourceMetadataUrl: info.metadataUrl,
      dpopJwk: answer.tokenType === 'DPoP' ? dpop?.jwk : undefined,
      registration: client.registration ?? before?.registration,
    }),
  }
}

/** The container after a refresh: what the answer leaves out stays as it was (RFC 6749 §6). */
export const renewContainer = (answer: TokenAnswer, before: TokenContainer, now: number): TokenContainer => {
  const { expiresIn: _, ...kept } = before
  return {
    ...kept,
    obtainedAt: now,
    accessToken: answer.accessToken,
    tokenType: answer.tokenType,
    ...given({
      expiresIn: answer.expiresIn,
      refreshToken: answer.refreshToken ?? before.refreshToken,
      scope: answer.scope ?? before.scope,
    }),
  }
}

type Stamps = Pick<ResolvedOptions, 'clientId' | 'clientIssuer' | 'resourceIndicator'>

/** False where the tokens are another client's, issuer's or resource's than the configured ones. */
export function isOurs(container: TokenContainer, { clientId, clientIssuer, resourceIndicator }: Stamps): boolean {
  if (clientId !== undefined && container.clientId !== clientId) return false
  if (clientIssuer !== undefined && container.authorizationServer !== clientIssuer) return false
  return (
    resourceIndicator === 'auto' ||
    container.resource === (resourceIndicator === 'omit' ? undefined : resourceIndicator)
  )
}

/** True where a refresh token may be shown to this server by this client: nothing about either has changed. */
export const fits = (container: TokenContainer, { server, resource }: Authority, client: ClientIdentity): boolean =>
  container.refreshToken !== undefined &&
  container.authorizationServer === server.issuer &&
  container.clientId === client.clientId &&
  container.tokenEndpoint === givenEndpoint(server) &&
  container.tokenEndpointAuthMethod === client.authMethod &&
  container.resource === resource
