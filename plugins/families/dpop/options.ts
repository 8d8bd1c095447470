// The option `dpop` of plugins that verify tokens, and its schema (RFC 9449).
import { closed, duration, flag, list } from '../../../core/internal.ts'
import type { OptionsOf } from '../../../core/plugin.ts'

const PROOF_ALGORITHMS = [
  ...(['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'] as const),
  ...(['PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512'] as const),
] as const

export type ProofAlgorithm = (typeof PROOF_ALGORITHMS)[number]

/** The schema of a plugin's option `dpop`. */
export const DPOP_SCHEMA = closed(
  {
    mode: {
      enum: ['off', 'optional', 'required'],
      description:
        'Whether bound tokens are accepted or required. Default: optional, if all processes share the used proofs.',
    },
    algorithms: list({ enum: PROOF_ALGORITHMS }, 'Algorithms of proofs.', {
      minItems: 1,
      uniqueItems: true,
      default: ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519', 'PS256', 'RS256'],
    }),
    maxAge: duration('Validity of a proof: 1s to 10m.', { default: '60s' }),
    clockTolerance: duration('Maximum lead of a client clock: 0 to 10m.', { default: '60s' }),
    nonce: flag('Requires a nonce of this host in proofs. Requires secrets.', { default: false }),
  },
  {
    title: 'DPoPOptions',
    default: {},
    description: 'Tokens bound to a client key (DPoP, RFC 9449): mode, algorithms, maxAge, clockTolerance, nonce.',
  },
)

export type FilledDPoP = OptionsOf<typeof DPOP_SCHEMA, true>
