// The options of auth-introspection and their schema.

import { ENDPOINT_URL_PATTERN, STREAMS_OUTLIVE_TOKEN_SCHEMA } from '../../core/auth.ts'
import { choice, closed, duration, flag, words } from '../../core/internal.ts'
import { CLAIM_PATHS_SCHEMA, type OptionsOf } from '../../core/plugin.ts'
import { DPOP_SCHEMA } from '../families/dpop/index.ts'
import { AUDIENCE_SCHEMA } from '../families/issuer-keys/index.ts'

export const authIntrospectionSchema = closed(
  {
    endpoint: words('URL of the introspection endpoint.', {
      format: 'uri',
      pattern: `^(?!.*/\\.well-known/)${ENDPOINT_URL_PATTERN.slice(1)}`,
      patternErrorMessage: 'the `introspection_endpoint` of the discovery document, not the document',
    }),
    clientId: words('Client id of this server.'),
    clientSecret: words('The client secret.', { writeOnly: true }),
    clientAuth: choice(['basic', 'post'], 'Client authentication: in the Authorization header or in the body.', {
      default: 'basic',
    }),
    issuer: words(
      'The issuer: part of the user identity, and compared with iss of the response. Default: the origin of the endpoint.',
    ),
    audience: AUDIENCE_SCHEMA,
    validate: closed(
      { audience: flag('The audience must be this server.', { default: true }) },
      { default: {}, description: 'Checks. `audience: false` accepts tokens for any service, and startup warns.' },
    ),
    cacheFor: duration(
      'Cache time of responses, at most 5m and never past exp. Revoked tokens stay valid for this time. 0 disables the cache.',
      { default: '30s' },
    ),
    dpop: DPOP_SCHEMA,
    streamsOutliveToken: STREAMS_OUTLIVE_TOKEN_SCHEMA,
    claims: closed(CLAIM_PATHS_SCHEMA, {
      title: 'ClaimPaths',
      default: {},
      description: 'Response paths of scopes, roles, subject and clientId: names, joined by dots.',
    }),
  },
  {
    description: 'Verifies opaque tokens at the authorization server (RFC 7662), and enforces `authorize` of routes.',
    required: ['endpoint', 'clientId', 'clientSecret'],
  },
)

export interface AuthIntrospectionOptions extends OptionsOf<typeof authIntrospectionSchema> {}
export interface FilledAuthIntrospection extends OptionsOf<typeof authIntrospectionSchema, true> {}
