// The options of auth-introspection and their schema.

import { ENDPOINT_URL_PATTERN, IDENTIFIER, STREAMS_OUTLIVE_TOKEN_SCHEMA } from '../../core/auth.ts'
import { CLAIM_PATHS_SCHEMA, DURATION_PATTERN, type OptionsOf } from '../../core/plugin.ts'
import { DPOP_SCHEMA } from '../families/dpop/index.ts'

export const authIntrospectionSchema = {
  type: 'object',
  description: 'Verifies opaque tokens at the authorization server (RFC 7662), and enforces `authorize` of routes.',
  additionalProperties: false,
  required: ['endpoint', 'clientId', 'clientSecret'],
  properties: {
    endpoint: {
      type: 'string',
      format: 'uri',
      pattern: `^(?!.*/\\.well-known/)${ENDPOINT_URL_PATTERN.slice(1)}`,
      patternErrorMessage: 'the `introspection_endpoint` of the discovery document, not the document',
      description: 'URL of the introspection endpoint.',
    },
    clientId: { type: 'string', description: 'Client id of this server.' },
    clientSecret: { type: 'string', writeOnly: true, description: 'The client secret.' },
    clientAuth: {
      type: 'string',
      enum: ['basic', 'post'],
      default: 'basic',
      description: 'Client authentication: in the Authorization header or in the body.',
    },
    issuer: {
      type: 'string',
      description:
        'The issuer: part of the user identity, and compared with iss of the response. Default: the origin of the endpoint.',
    },
    audience: {
      anyOf: [
        { type: 'string', minLength: 1, ...IDENTIFIER },
        { type: 'array', items: { type: 'string', minLength: 1, ...IDENTIFIER }, minItems: 1 },
      ],
      description: 'Accepted audiences; a token needs one of them. Default: the resource of the route.',
    },
    validate: {
      type: 'object',
      default: {},
      additionalProperties: false,
      description: 'Checks. `audience: false` accepts tokens for any service, and startup warns.',
      properties: { audience: { type: 'boolean', default: true, description: 'The audience must be this server.' } },
    },
    cacheFor: {
      type: ['string', 'number'],
      pattern: DURATION_PATTERN,
      minimum: 0,
      default: '30s',
      description:
        'Cache time of responses, at most 5m and never past exp. Revoked tokens stay valid for this time. 0 disables the cache.',
    },
    dpop: DPOP_SCHEMA,
    streamsOutliveToken: STREAMS_OUTLIVE_TOKEN_SCHEMA,
    claims: {
      title: 'ClaimPaths',
      type: 'object',
      default: {},
      additionalProperties: false,
      description: 'Response paths of scopes, roles, subject and clientId: names, joined by dots.',
      properties: CLAIM_PATHS_SCHEMA,
    },
  },
} as const

export interface AuthIntrospectionOptions extends OptionsOf<typeof authIntrospectionSchema> {}
export interface FilledAuthIntrospection extends OptionsOf<typeof authIntrospectionSchema, true> {}
