// The options of resource-metadata and the document that they make (RFC 9728 section 2).

import { ENDPOINT_URL_PATTERN, HTTP_URL_PATTERN, ISSUER_URL, KEYS_URL, SCOPE } from '../../core/auth.ts'
import type { JsonSchema } from '../../core/index.ts'
import { closed, flag, list, words } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'

const AUTHORIZATION_SERVERS = 'Issuers of tokens for these routes. Required without auth-bridge. Default: this host.'

const page = <const D extends string>(description: D) => words(description, { pattern: ENDPOINT_URL_PATTERN })
// RFC 9728 section 3.2 forbids empty lists.
const listOf = <const D extends string, const I extends JsonSchema>(description: D, items: I) =>
  list(items, description, { minItems: 1, uniqueItems: true })

const SIGNATURE = {
  pattern: '^((RS|PS|ES)(256|384|512)|ES256K|EdDSA|Ed25519|Ed448|ML-DSA-(44|65|87))$',
  patternErrorMessage: "a JOSE signature algorithm with a public key, such as 'ES256' or 'RS256'",
} as const

export const optionsSchema = closed(
  {
    resource: words('One https identifier for all routes (http on loopback). Default: the URL of each endpoint.', {
      pattern: HTTP_URL_PATTERN,
    }),
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
    resourceMetadataUri: words(
      'Path or URL of a single document, in place of the well-known paths. Requires resource.',
      { pattern: '^[^?#:\\s]+$|^https?://[^/?#@:\\s][^/?#@\\s]*(/[^?#:\\s]*)?$' },
    ),
    resourceName: words('Name for people.'),
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
    tlsClientCertificateBoundAccessTokens: flag(
      'Tokens can be bound to client certificates. Published but not enforced.',
    ),
    authorizationDetailsTypesSupported: listOf('RFC 9396 types. Published but not enforced.', {
      type: 'string',
      minLength: 1,
    }),
    dpopSigningAlgValuesSupported: listOf(
      'Algorithms of DPoP proofs. Default: those of the auth plugin, if its dpop mode is set.',
      { type: 'string', ...SIGNATURE },
    ),
    dpopBoundAccessTokensRequired: flag(
      'Tokens must be bound by DPoP. Default: true if dpop of the auth plugin requires it. Any other value is an error.',
    ),
  },
  { description: 'Protected resource metadata (RFC 9728): names the authorization server for clients.' },
)

export interface ResourceMetadataOptions extends OptionsOf<typeof optionsSchema> {}
export interface FilledResourceMetadata extends OptionsOf<typeof optionsSchema, true> {}

const snakeCase = (name: string) => name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

/** Members have the names of the RFC; absent options are omitted. */
export function describeResource(resource: string, options: ResourceMetadataOptions): object {
  const { resource: _, resourceMetadataUri: __, scopesSupported, ...others } = options
  const scopes = scopesSupported?.filter(scope => scope !== 'offline_access') ?? []
  const fields = { ...others, ...(scopes.length > 0 && { scopesSupported: scopes }) }
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  return { resource, ...Object.fromEntries(entries.map(([name, value]) => [snakeCase(name), value])) }
}
