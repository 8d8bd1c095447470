// The two who meet at a token endpoint, as plain data: the authorization server, and the client as it is known there.
// server-metadata.ts and identity.ts find them out; every step of a login passes them on.
import type { Registration } from './token-cache.ts'

/** An authorization server, by its metadata (RFC 8414). */
export interface ServerInfo {
  readonly listed: string
  /** As published; `iss` of an authorization response must equal it. */
  readonly issuer: string
  readonly authorizationEndpoint?: string | undefined
  readonly tokenEndpoint?: string | undefined
  readonly tokenEndpointGiven?: boolean | undefined
  readonly registrationEndpoint?: string | undefined
  readonly revocationEndpoint?: string | undefined
  readonly deviceAuthorizationEndpoint?: string | undefined
  readonly scopesSupported?: readonly string[] | undefined
  readonly grantTypesSupported?: readonly string[] | undefined
  readonly tokenEndpointAuthMethodsSupported?: readonly string[] | undefined
  readonly dpopSigningAlgValuesSupported?: readonly string[] | undefined
  /** RFC 9207: an authorization response without `iss` is not from it. */
  readonly issParameterSupported: boolean
  readonly clientIdMetadataDocumentSupported: boolean
  /** It lists S256, or `assumePkceS256` vouches for it. */
  readonly pkceS256: boolean
  /** An OpenID provider, too. */
  readonly oidc: boolean
  /** True: no document, so the endpoints are the default ones of 2025-03-26. */
  readonly legacy: boolean
  readonly metadataUrl: string | undefined
}

export interface ClientIdentity {
  readonly source: 'configured' | 'metadata-document' | 'registered'
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret?: string
  /** Seconds since the epoch; 0 or absent: never. */
  readonly clientSecretExpiresAt?: number
  /** As the registration's answer names it (RFC 7591 `token_endpoint_auth_method`). */
  readonly authMethod?: string
  readonly registration?: Registration
}
