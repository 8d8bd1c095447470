// What a test decides about a fake authorization server; every one may be changed while it runs.

import type { FakeAuthorizationServer } from './fake-authorization-server.ts'
import type { RegistrationSettings } from './fake-clients.ts'

/** Where metadata is published: `oauth` and `oidc` before the issuer's path, `oidc-append` after it. */
export type WellKnownForm = 'oauth' | 'oidc' | 'oidc-append'

export interface AuthorizationServerSettings extends RegistrationSettings {
  /** What it calls itself. */
  issuer: string
  wellKnown: readonly WellKnownForm[]
  /** Put over the metadata document; undefined leaves a field out. */
  metadata: Readonly<Record<string, unknown>>
  codeChallengeMethods: readonly string[] | undefined
  scopesSupported: readonly string[] | undefined
  tokenEndpointAuthMethods: readonly string[] | undefined
  /** Resources that it knows; undefined: any. */
  resources: readonly string[] | undefined
  refreshTokens: 'rotating' | 'fixed' | 'none'
  /** `expires_in` as it is answered, in seconds when a number; undefined: not said. It is not enforced: `expireAll` is. */
  tokenLifetime: number | string | null | undefined
  /** What is granted of what was asked for. */
  grantScope: (requested: string | undefined) => string | undefined
  /** Put over each answer with a token; undefined leaves a field out. */
  tokenAnswer: Readonly<Record<string, unknown>>
  /** Of answers with a token. */
  tokenStatus: number
  /** Of what is wrong with the client: 401 with `WWW-Authenticate`, or 400. */
  clientErrorStatus: 400 | 401
  /** `authorization_response_iss_parameter_supported`; undefined: not said. */
  issAdvertised: boolean | undefined
  /** In the authorization response; undefined: the issuer when it is advertised; null: absent. */
  iss: string | null | undefined
  /** The same for `state`; undefined: as it came. */
  state: string | null | undefined
  /** Parameters of the authorization response that are there twice. */
  duplicated: readonly string[]
  /** Refuses every login so. */
  authorizationError: string | undefined
  /** `required`: tokens only with a proof; `allowed`: bound when there is one. */
  dpop: 'off' | 'allowed' | 'required'
  /** Asks for a nonce in proofs. */
  dpopNonce: boolean
  /** Off: no revocation endpoint. */
  revocation: boolean
  device: boolean
  /** Seconds, as answered. */
  deviceInterval: number | undefined
  /** How often a device's poll is told `slow_down` first. */
  deviceSlowDowns: number
  /** Whose assertions it takes: identity providers. */
  trusts: readonly FakeAuthorizationServer[]
}

export const defaultSettings = (issuer: string): AuthorizationServerSettings => ({
  issuer,
  wellKnown: ['oauth'],
  metadata: {},
  codeChallengeMethods: ['S256'],
  scopesSupported: undefined,
  tokenEndpointAuthMethods: undefined,
  registration: 'on',
  registrationStatus: 201,
  registrationMethod: undefined,
  secretExpiresAt: undefined,
  initialAccessToken: undefined,
  clientMetadataDocuments: false,
  resources: undefined,
  refreshTokens: 'rotating',
  tokenLifetime: 3600,
  grantScope: requested => requested,
  tokenAnswer: {},
  tokenStatus: 200,
  clientErrorStatus: 401,
  issAdvertised: true,
  iss: undefined,
  state: undefined,
  duplicated: [],
  authorizationError: undefined,
  dpop: 'off',
  dpopNonce: false,
  revocation: true,
  device: false,
  deviceInterval: 1,
  deviceSlowDowns: 0,
  trusts: [],
})
