// The options of resource-metadata and the document that they make (RFC 9728 section 2).

import { ENDPOINT_URL_PATTERN, HTTP_URL_PATTERN, ISSUER_URL, KEYS_URL, SCOPE } from '../../core/auth.ts'
import type { OptionsOf } from '../../core/plugin.ts'

const AUTHORIZATION_SERVERS = 'Issuers of tokens for these routes. Required without auth-bridge. Default: this host.'

const page = <const D extends string>(description: D) =>
  ({ type: 'string', pattern: ENDPOINT_URL_PATTERN, description }) as const
// RFC 9728 section 3.2 forbids empty lists.
const listOf = <const D extends string, const I>(description: D, items: I) =>
  ({ type: 'array', minItems: 1, uniqueItems: true, items, description }) as const

const SIGNATURE = {
  pattern: '^((RS|PS|ES)(256|384|512)|ES256K|EdDSA|Ed25519|Ed448|ML-DSA-(44|65|87))$',
  patternErrorMessage: "a JOSE signature algorithm with a public key, such as 'ES256' or 'RS256'",
} as const

export const optionsSchema = {
  type: 'object',
  description: 'Protected resource metadata (RFC 9728): names the authorization server for clients.',
  additionalProperties: false,
  properties: {
    resource: {
      type: 'string',
      pattern: HTTP_URL_PATTERN,
      description: 'One https identifier for all routes (http on loopback). Default: the URL of each endpoint.',
    },
    authorizationServers: {
      ...listOf(AUTHORIZATION_SERVERS, {
        type: 'string',
        ...ISSUER_URL,
      }),
      examples: [['https://login.acme.example']],
    },
    scopesSupported: listOf('All scopes that tools, policies and routes require. Others get no challenge.', {
      type: 'string',
      ...SCOPE,
    }),
    bearerMethodsSupported: {
      ...listOf('Methods to send a token: only `header`.', {
        enum: ['header', 'body', 'query'],
      }),
      default: ['header'],
    },
    resourceMetadataUri: {
      type: 'string',
      pattern: '^[^?#:\\s]+$|^https?://[^/?#@:\\s][^/?#@\\s]*(/[^?#:\\s]*)?$',
      description: 'Path or URL of a single document, in place of the well-known paths. Requires resource.',
    },
    resourceName: { type: 'string', description: 'Name for people.' },
    resourceDocumentation: page('A page for developers.'),
    resourcePolicyUri: page('Policy page on the use of the data.'),
    resourceTosUri: page('The terms of service.'),
    jwksUri: {
      ...page('URL of the public keys of the resource.'),
      ...KEYS_URL,
    },
    resourceSigningAlgValuesSupported: listOf('Algorithms with which the resource signs its responses.', {
      type: 'string',
      ...SIGNATURE,
    }),
    tlsClientCertificateBoundAccessTokens: {
      type: 'boolean',
      description: 'Tokens can be bound to client certificates. Published but not enforced.',
    },
    authorizationDetailsTypesSupported: listOf('RFC 9396 types. Published but not enforced.', {
      type: 'string',
      minLength: 1,
    }),
    dpopSigningAlgValuesSupported: listOf(
      'Algorithms of DPoP proofs. Default: those of the auth plugin, if its dpop mode is set.',
      { type: 'string', ...SIGNATURE },
    ),
    dpopBoundAccessTokensRequired: {
      type: 'boolean',
      description:
        'Tokens must be bound by DPoP. Default: true if dpop of the auth plugin requires it. Any other value is an error.',
    },
  },
} as const

export interface ResourceMetadataOptions extends OptionsOf<typeof optionsSchema> {}
export interface FilledResourceMetadata extends OptionsOf<typeof optionsSchema, true> {}

const snakeCase = (name: string) => name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

/** Members have the names of the RFC; absent options are omitted. */
export function describeResource(resource: string, options: ResourceMetadataOptions): object {
  const { resource: _, resourceMetadataUri: __, ...fields } = options
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  return { resource, ...Object.fromEntries(entries.map(([name, value]) => [snakeCase(name), value])) }
}
