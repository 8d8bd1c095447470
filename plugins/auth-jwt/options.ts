// What an operator may say about tokens: the options of auth-jwt and their schema.

import {
  CLAIM_PATHS_SCHEMA,
  ENDPOINT_URL_PATTERN,
  IDENTIFIER,
  ISSUER_URL,
  KEYS_URL,
  STREAMS_OUTLIVE_TOKEN_SCHEMA,
} from '../../core/auth.ts'
import { type BuiltInOptions, DURATION_PATTERN, type FilledOptions, type JsonSchema } from '../../core/index.ts'
import { DPOP_SCHEMA } from '../families/dpop/index.ts'
import { ASYMMETRIC, SYMMETRIC } from '../families/issuer-keys/index.ts'

export type AuthJwtOptions = BuiltInOptions['auth-jwt']
export type FilledAuthJwt = FilledOptions['auth-jwt']
export type FilledIssuer = NonNullable<FilledAuthJwt['issuers']>[number]
/** One issuer: `authority` alone, or `issuer` with one of `jwksUri`, `keys` and `secret`. */
export type IssuerOptions = NonNullable<AuthJwtOptions['issuers']>[number]
export type JwtClaims = NonNullable<IssuerOptions['claims']>

const duration = (standard: string, description: string) => ({
  type: ['string', 'number'],
  pattern: DURATION_PATTERN,
  minimum: 0,
  default: standard,
  description,
})
const url = (description: string) => ({
  type: 'string' as const,
  format: 'uri',
  pattern: ENDPOINT_URL_PATTERN,
  description,
})
const texts: JsonSchema = { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1 }

const one = { type: 'string', minLength: 1, ...IDENTIFIER }
const audience: JsonSchema = {
  anyOf: [one, { type: 'array', items: one, minItems: 1 }],
  description: 'Who tokens must be for; one of them. Default: the resource of the route.',
}

const claims: JsonSchema = {
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
}

const issuerProperties = {
  authority: {
    ...url('The exact URL of the issuer; its keys are found by discovery.'),
    ...ISSUER_URL,
  },
  issuer: {
    type: 'string' as const,
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
    // A private key can be put here by mistake.
    writeOnly: true,
    description: 'Its public keys: JWKs, or PEM texts.',
  },
  secret: {
    type: 'string' as const,
    writeOnly: true as const,
    description: 'A secret shared with it, at least 32 characters; for HS algorithms.',
  },
  audience,
  claims,
}

const check = (description: string): JsonSchema => ({ type: 'boolean', default: true, description })

export const authJwtSchema = {
  type: 'object' as const,
  description: 'Verifies JWT access tokens, and enforces `authorize` of routes.',
  additionalProperties: false as const,
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
      type: 'boolean' as const,
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
}
