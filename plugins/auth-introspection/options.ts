// The options of auth-introspection and their schema.

import { ENDPOINT_URL_PATTERN, IDENTIFIER, STREAMS_OUTLIVE_TOKEN_SCHEMA } from '../../core/auth.ts'
import { CLAIM_PATHS_SCHEMA, DURATION_PATTERN, type OptionsOf } from '../../core/plugin.ts'
import { DPOP_SCHEMA } from '../families/dpop/index.ts'

export const authIntrospectionSchema = {
  type: 'object',
  description: 'Asks the authorization server about opaque tokens (RFC 7662), and enforces `authorize` of routes.',
  additionalProperties: false,
  required: ['endpoint', 'clientId', 'clientSecret'],
  properties: {
    endpoint: {
      type: 'string',
      format: 'uri',
      pattern: `^(?!.*/\\.well-known/)${ENDPOINT_URL_PATTERN.slice(1)}`,
      patternErrorMessage: 'the `introspection_endpoint` of the discovery document, not the document',
      description: "The authorization server's introspection endpoint.",
    },
    clientId: { type: 'string', description: 'As which this server asks.' },
    clientSecret: { type: 'string', writeOnly: true, description: 'Its secret.' },
    clientAuth: {
      type: 'string',
      enum: ['basic', 'post'],
      default: 'basic',
      description: 'How id and secret are sent: in the Authorization header, or in the body.',
    },
    issuer: {
      type: 'string',
      description:
        "The issuer's name: part of who a user is, and compared with iss where the answer has one. Default: the endpoint's origin.",
    },
    audience: {
      anyOf: [
        { type: 'string', minLength: 1, ...IDENTIFIER },
        { type: 'array', items: { type: 'string', minLength: 1, ...IDENTIFIER }, minItems: 1 },
      ],
      description: 'Who tokens must be for; one of them. Default: the resource of the route.',
    },
    validate: {
      type: 'object',
      default: {},
      additionalProperties: false,
      description: 'On by default; off is a warning at every start, for servers whose answers name no audience.',
      properties: { audience: { type: 'boolean', default: true, description: 'The token is for this server.' } },
    },
    cacheFor: {
      type: ['string', 'number'],
      pattern: DURATION_PATTERN,
      minimum: 0,
      default: '30s',
      description:
        'How long an answer is believed, at most 5m and until the token expires: how long a revoked token lives on; 0 asks each time.',
    },
    dpop: DPOP_SCHEMA,
    streamsOutliveToken: STREAMS_OUTLIVE_TOKEN_SCHEMA,
    claims: {
      title: 'ClaimPaths',
      type: 'object',
      default: {},
      additionalProperties: false,
      description: 'Where the answer says what. A path is a name, or names joined by dots.',
      properties: CLAIM_PATHS_SCHEMA,
    },
  },
} as const

export interface AuthIntrospectionOptions extends OptionsOf<typeof authIntrospectionSchema> {}
export interface FilledAuthIntrospection extends OptionsOf<typeof authIntrospectionSchema, true> {}
