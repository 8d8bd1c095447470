// The options of auth-jwt and their schema.

import {
  ENDPOINT_URL_PATTERN,
  IDENTIFIER,
  ISSUER_URL,
  KEYS_URL,
  STREAMS_OUTLIVE_TOKEN_SCHEMA,
} from '../../core/auth.ts'
import { CLAIM_PATHS_SCHEMA, DURATION_PATTERN, type OptionsOf } from '../../core/plugin.ts'
import { DPOP_SCHEMA } from '../families/dpop/index.ts'
import { ASYMMETRIC, SYMMETRIC } from '../families/issuer-keys/index.ts'

const duration = <const T extends string, const D extends string>(standard: T, description: D) =>
  ({ type: ['string', 'number'], pattern: DURATION_PATTERN, minimum: 0, default: standard, description }) as const
const url = <const D extends string>(description: D) =>
  ({ type: 'string', format: 'uri', pattern: ENDPOINT_URL_PATTERN, description }) as const
const texts = { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1 } as const

const one = { type: 'string', minLength: 1, ...IDENTIFIER } as const
const audience = {
  anyOf: [one, { type: 'array', items: one, minItems: 1 }],
  description: 'Accepted audiences; a token needs one of them. Default: the resource of the route.',
} as const

const claims = {
  title: 'JwtClaims',
  type: 'object',
  description: 'Paths of scopes, roles, subject, clientId and audience (names, joined by dots), and `required` claims.',
  additionalProperties: false,
  properties: {
    ...CLAIM_PATHS_SCHEMA,
    audience: {
      anyOf: [{ type: 'string' }, texts],
      default: 'aud',
      description: 'Paths of the audience, which are merged.',
    },
    required: {
      type: 'object',
      additionalProperties: { type: 'string' },
      description: "Claims that must have exactly this value, such as { token_use: 'access' }.",
    },
  },
} as const

const issuerProperties = {
  authority: {
    ...url('The exact issuer URL. Its keys are found by discovery (RFC 8414 or OpenID Connect).'),
    ...ISSUER_URL,
  },
  issuer: {
    type: 'string',
    minLength: 1,
    ...IDENTIFIER,
    description: 'The exact iss of the tokens.',
  },
  jwksUri: {
    ...url('URL of the issuer keys.'),
    ...KEYS_URL,
    patternErrorMessage: 'the URL of a key set; for a discovery document set `authority` instead',
  },
  keys: {
    type: 'array',
    items: { anyOf: [{ type: 'object' }, { type: 'string', pattern: '^\\s*-----BEGIN' }] },
    minItems: 1,
    // The value can contain a private key by mistake.
    writeOnly: true,
    description: 'Public keys of the issuer: JWKs or PEM texts.',
  },
  secret: {
    type: 'string',
    writeOnly: true,
    description: 'A secret shared with the issuer, for HS algorithms. At least 32 characters.',
  },
  audience,
  claims,
} as const

const check = <const D extends string>(description: D) => ({ type: 'boolean', default: true, description }) as const

export const authJwtSchema = {
  type: 'object',
  description: 'Verifies JWT access tokens, and enforces `authorize` of routes.',
  additionalProperties: false,
  properties: {
    ...issuerProperties,
    claims: { ...claims, default: {} },
    issuers: {
      type: 'array',
      items: {
        title: 'IssuerOptions',
        type: 'object',
        description: 'An issuer: authority, or issuer with one of jwksUri, keys and secret.',
        additionalProperties: false,
        properties: issuerProperties,
      },
      minItems: 1,
      description: 'Several issuers. audience and claims of this level are their defaults.',
    },
    ownIssuer: {
      type: 'boolean',
      description:
        'Accepts host-issued tokens of auth-bridge in addition to the configured issuers. Default: true without other issuers.',
    },
    validate: {
      type: 'object',
      default: {},
      additionalProperties: false,
      description:
        'Checks of issuer, audience, lifetime and signingKey, each on by default. `false` causes a warning at startup. The signature is always verified.',
      properties: {
        issuer: check('The issuer must be configured.'),
        audience: check('The audience must be this server.'),
        lifetime: check('exp, nbf and iat must be valid.'),
        signingKey: check('The key must have the kid, the algorithm and the minimum length.'),
      },
    },
    algorithms: {
      type: 'array',
      items: { enum: [...ASYMMETRIC, ...SYMMETRIC] },
      minItems: 1,
      description:
        'Accepted algorithms; with a secret only HS. Default: RS, PS and ES with 256, 384 and 512, EdDSA, Ed25519.',
    },
    dpop: DPOP_SCHEMA,
    streamsOutliveToken: STREAMS_OUTLIVE_TOKEN_SCHEMA,
    clockTolerance: duration('60s', 'Maximum difference between clocks, for exp, nbf and iat.'),
    jwksMaxAge: duration('5m', 'Maximum age of cached keys. A withdrawn key is refused after this time at the latest.'),
    jwksMaxStale: duration('1h', 'Maximum age of cached keys while the issuer is unavailable.'),
  },
} as const

export interface AuthJwtOptions extends OptionsOf<typeof authJwtSchema> {}
export interface FilledAuthJwt extends OptionsOf<typeof authJwtSchema, true> {}
export type FilledIssuer = NonNullable<FilledAuthJwt['issuers']>[number]
/** One issuer: only `authority`, or `issuer` with one of `jwksUri`, `keys` and `secret`. */
export type IssuerOptions = NonNullable<AuthJwtOptions['issuers']>[number]
