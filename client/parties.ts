// Plain data about the authorization server and the client's identity there.
import type { Registration } from './token-cache.ts'

/** Authorization server metadata (RFC 8414). */
export interface ServerInfo {
  readonly listed: string
  /** Published issuer; must equal `iss` of an authorization response. */
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
  /** Authorization responses require `iss` (RFC 9207). */
  readonly issParameterSupported: boolean
  readonly clientIdMetadataDocumentSupported: boolean
  readonly pkceS256: boolean
  readonly oidc: boolean
  /** No metadata document: default endpoints of 2025-03-26. */
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
  /** From the registration response (RFC 7591 `token_endpoint_auth_method`). */
  readonly authMethod?: string
  readonly registration?: Registration
}
