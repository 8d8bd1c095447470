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
  description: 'Who tokens must be for; one of them. Default: the resource of the route.',
} as const

const claims = {
  title: 'JwtClaims',
  type: 'object',
  description: 'Where the issuer writes what. A path is a name, or names joined by dots.',
  additionalProperties: false,
  properties: {
    ...CLAIM_PATHS_SCHEMA,
    audience: {
      anyOf: [{ type: 'string' }, texts],
      default: 'aud',
      description: 'Where the audience is; all of them count.',
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
    ...url('The exact URL of the issuer; its keys are found by discovery.'),
    ...ISSUER_URL,
  },
  issuer: {
    type: 'string',
    minLength: 1,
    ...IDENTIFIER,
    description: 'The exact iss of its tokens.',
  },
  jwksUri: {
    ...url('URL of its keys.'),
    ...KEYS_URL,
    patternErrorMessage: 'the URL of a key set; for a discovery document set `authority` instead',
  },
  keys: {
    type: 'array',
    items: { anyOf: [{ type: 'object' }, { type: 'string', pattern: '^\\s*-----BEGIN' }] },
    minItems: 1,
    // May contain a private key by mistake.
    writeOnly: true,
    description: 'Its public keys: JWKs, or PEM texts.',
  },
  secret: {
    type: 'string',
    writeOnly: true,
    description: 'A secret shared with it, at least 32 characters; for HS algorithms.',
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
        description: 'One issuer: authority alone, or issuer with one of jwksUri, keys and secret.',
        additionalProperties: false,
        properties: issuerProperties,
      },
      minItems: 1,
      description:
        'Several issuers, in the place of one; what one does not say of audience and claims is taken from beside.',
    },
    ownIssuer: {
      type: 'boolean',
      description:
        'Tokens that this host gives out itself, by auth-bridge, count beside those of the issuers here. Default: only where no issuer is named.',
    },
    validate: {
      type: 'object',
      default: {},
      additionalProperties: false,
      description:
        'Checks, each on by default; each that is off is a warning at every start. The signature is always checked.',
      properties: {
        issuer: check('The token is of a configured issuer.'),
        audience: check('The token is for this server.'),
        lifetime: check('exp, nbf and iat.'),
        signingKey: check('The key is the one that the token names, meant for its algorithm, and long enough.'),
      },
    },
    algorithms: {
      type: 'array',
      items: { enum: [...ASYMMETRIC, ...SYMMETRIC] },
      minItems: 1,
      description:
        'Accepted algorithms. Default: RS, PS and ES of 256, 384 and 512, EdDSA and Ed25519, or HS where there is a secret.',
    },
    dpop: DPOP_SCHEMA,
    streamsOutliveToken: STREAMS_OUTLIVE_TOKEN_SCHEMA,
    clockTolerance: duration('60s', 'How far clocks may differ.'),
    jwksMaxAge: duration('5m', 'The age at which keys are fetched anew: a withdrawn one is refused no later.'),
    jwksMaxStale: duration('1h', 'How long the last keys serve while the issuer cannot be reached.'),
  },
} as const

export interface AuthJwtOptions extends OptionsOf<typeof authJwtSchema> {}
export interface FilledAuthJwt extends OptionsOf<typeof authJwtSchema, true> {}
export type FilledIssuer = NonNullable<FilledAuthJwt['issuers']>[number]
/** One issuer: `authority` alone, or `issuer` with one of `jwksUri`, `keys` and `secret`. */
export type IssuerOptions = NonNullable<AuthJwtOptions['issuers']>[number]
