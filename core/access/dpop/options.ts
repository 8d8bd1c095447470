// What an operator may say about DPoP (RFC 9449): one option of every plugin that verifies tokens, and its schema.

import type { Duration } from '../../mcp/units.ts'
import { DURATION_PATTERN } from '../../mcp/units.ts'

/** Algorithms of proofs that can be verified: asymmetric ones, all of them by `node:crypto`. */
export const PROOF_ALGORITHMS = [
  ...(['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'] as const),
  ...(['PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512'] as const),
] as const

/** The algorithm of a proof, by its name in JOSE. */
export type ProofAlgorithm = (typeof PROOF_ALGORITHMS)[number]

/** What a plugin that verifies tokens is told of DPoP; with `DPOP_SCHEMA` its defaults are there. */
export interface DPoPSettings {
  /** Undefined: `optional`, but `off` where a proof that was used could be used once more. */
  readonly mode?: 'off' | 'optional' | 'required'
  readonly algorithms?: readonly ProofAlgorithm[]
  /** How long a proof is valid after its time. Default 60 s. */
  readonly maxAge?: Duration
  /** How far the clock of a client can be ahead, at most 10 minutes. Default 60 s. */
  readonly clockTolerance?: Duration
  /** Proofs must have a nonce that this host gave out. Default false. */
  readonly nonce?: boolean
}

/** The schema of `DPoPSettings`, for a plugin's option `dpop`. */
export const DPOP_SCHEMA = {
  title: 'DPoPOptions',
  type: 'object',
  default: {},
  description: 'Tokens that are bound to a key of their client (DPoP, RFC 9449).',
  additionalProperties: false,
  properties: {
    mode: {
      enum: ['off', 'optional', 'required'],
      description:
        'Whether bound tokens are taken, or no others. Default: optional, where all processes know which proofs were used.',
    },
    algorithms: {
      type: 'array',
      items: { enum: PROOF_ALGORITHMS },
      minItems: 1,
      uniqueItems: true,
      default: ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519', 'PS256', 'RS256'],
      description: 'Algorithms of proofs.',
    },
    maxAge: {
      type: ['string', 'number'],
      pattern: DURATION_PATTERN,
      minimum: 0,
      default: '60s',
      description: 'For how long a proof counts from its time on: 1s to 10m.',
    },
    clockTolerance: {
      type: ['string', 'number'],
      pattern: DURATION_PATTERN,
      minimum: 0,
      default: '60s',
      description: 'How far the clock of a client can be ahead: 0 to 10m.',
    },
    nonce: { type: 'boolean', default: false, description: 'Proofs must have a nonce of this host. Needs secrets.' },
  },
} as const
