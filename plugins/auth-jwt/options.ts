// The options of auth-jwt and their schema.

import {
  ENDPOINT_URL_PATTERN,
  IDENTIFIER,
  ISSUER_URL,
  KEYS_URL,
  STREAMS_OUTLIVE_TOKEN_SCHEMA,
} from '../../core/auth.ts'
import { closed, duration, flag, list, mapOf, text, words } from '../../core/internal.ts'
import { CLAIM_PATHS_SCHEMA, type OptionsOf } from '../../core/plugin.ts'
import { DPOP_SCHEMA } from '../families/dpop/index.ts'
import { ASYMMETRIC, AUDIENCE_SCHEMA, SYMMETRIC } from '../families/issuer-keys/index.ts'

const url = <const D extends string>(description: D) =>
  words(description, { format: 'uri', pattern: ENDPOINT_URL_PATTERN })
const stringList = { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1 } as const

const claims = closed(
  {
    ...CLAIM_PATHS_SCHEMA,
    audience: {
      anyOf: [{ type: 'string' }, stringList],
      default: 'aud',
      description: 'Paths of the audience, which are merged.',
    },
    required: mapOf({ type: 'string' }, "Claims that must have exactly this value, such as { token_use: 'access' }."),
  },
  {
    title: 'JwtClaims',
    description:
      'Paths of scopes, roles, subject, clientId and audience (names, joined by dots), and `required` claims.',
  },
)

const issuerProperties = {
  authority: {
    ...url('The exact issuer URL. Its keys are found by discovery (RFC 8414 or OpenID Connect).'),
    ...ISSUER_URL,
  },
  issuer: text('The exact iss of the tokens.', { ...IDENTIFIER }),
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
  secret: words('A secret shared with the issuer, for HS algorithms. At least 32 characters.', { writeOnly: true }),
  audience: AUDIENCE_SCHEMA,
  claims,
} as const

const check = <const D extends string>(description: D) => flag(description, { default: true })

export const authJwtSchema = closed(
  {
    ...issuerProperties,
    claims: { ...claims, default: {} },
    issuers: list(
      closed(issuerProperties, {
        title: 'IssuerOptions',
        description: 'An issuer: authority, or issuer with one of jwksUri, keys and secret.',
      }),
      'Several issuers. audience and claims of this level are their defaults.',
      { minItems: 1 },
    ),
    ownIssuer: flag(
      'Accepts host-issued tokens of auth-bridge in addition to the configured issuers. Default: true without other issuers.',
    ),
    validate: closed(
      {
        issuer: check('The issuer must be configured.'),
        audience: check('The audience must be this server.'),
        lifetime: check('exp, nbf and iat must be valid.'),
        signingKey: check('The key must have the kid, the algorithm and the minimum length.'),
      },
      {
        default: {},
        description:
          'Checks of issuer, audience, lifetime and signingKey, each on by default. `false` causes a warning at startup. The signature is always verified.',
      },
    ),
    algorithms: list(
      { enum: [...ASYMMETRIC, ...SYMMETRIC] },
      'Accepted algorithms; with a secret only HS. Default: RS, PS and ES with 256, 384 and 512, EdDSA, Ed25519.',
      { minItems: 1 },
    ),
    dpop: DPOP_SCHEMA,
    streamsOutliveToken: STREAMS_OUTLIVE_TOKEN_SCHEMA,
    clockTolerance: duration('Maximum difference between clocks, for exp, nbf and iat.', { default: '60s' }),
    jwksMaxAge: duration('Maximum age of cached keys. A withdrawn key is refused after this time at the latest.', {
      default: '5m',
    }),
    jwksMaxStale: duration('Maximum age of cached keys while the issuer is unavailable.', { default: '1h' }),
  },
  { description: 'Verifies JWT access tokens, and enforces `authorize` of routes.' },
)

export interface AuthJwtOptions extends OptionsOf<typeof authJwtSchema> {}
export interface FilledAuthJwt extends OptionsOf<typeof authJwtSchema, true> {}
export type FilledIssuer = NonNullable<FilledAuthJwt['issuers']>[number]
/** One issuer: only `authority`, or `issuer` with one of `jwksUri`, `keys` and `secret`. */
export type IssuerOptions = NonNullable<AuthJwtOptions['issuers']>[number]
