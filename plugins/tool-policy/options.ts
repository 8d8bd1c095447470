// Options of tool-policy.
import { SCOPE } from '../../core/auth.ts'
import type { Typed } from '../../core/index.ts'
import type { OptionsOf } from '../../core/plugin.ts'

export type ClaimValue = string | number | boolean

const text = { type: 'string', minLength: 1 } as const
const scope = { ...text, ...SCOPE } as const
const oneOrMore = <const One extends object>(one: One) =>
  ({ anyOf: [one, { type: 'array', items: one, minItems: 1 }] }) as const
const claimValue = { type: ['string', 'number', 'boolean'] } as const

const CONDITIONS = {
  scope: { ...oneOrMore(scope), description: 'All of these scopes.' },
  role: { ...oneOrMore(text), description: 'All of these roles.' },
  claim: {
    type: 'object',
    additionalProperties: oneOrMore(claimValue),
    description: 'Claims with the required value, or one of the required values. A list must contain one of them.',
  },
} as const

/** A policy: all members must hold. Anonymous callers satisfy none. */
export interface Policy extends OptionsOf<{ type: 'object'; properties: typeof CONDITIONS }> {
  /** At least one of these policies must hold. */
  anyOf?: Policy[]
  /** All of these policies must hold. */
  allOf?: Policy[]
}

const POLICY = { $ref: '#/$defs/policy' } as { readonly $ref: string } & Typed<Policy>
const policy = {
  title: 'Policy',
  type: 'object',
  description: 'All given conditions must match. Anonymous callers satisfy no policy.',
  additionalProperties: false,
  properties: {
    ...CONDITIONS,
    anyOf: { type: 'array', items: POLICY, minItems: 1, description: 'At least one of these policies.' },
    allOf: { type: 'array', items: POLICY, minItems: 1, description: 'All of these policies.' },
  },
} as const
const detailedRule = {
  title: 'DetailedRule',
  type: 'object',
  description: 'A rule with mode and visibility.',
  additionalProperties: false,
  required: ['policy'],
  properties: {
    policy: { anyOf: [text, POLICY], description: 'The policy, or its name.' },
    mode: { type: 'string', enum: ['enforce', 'shadow'], description: 'Default: the mode of the plugin.' },
    visibility: {
      type: 'string',
      enum: ['listed', 'hidden'],
      description:
        "'listed' lists the items for callers without access. Default: visibility of the definition, otherwise hidden.",
    },
  },
} as const

export const optionsSchema = {
  type: 'object',
  $defs: { policy },
  description: 'Access rules for tools, resources and prompts.',
  additionalProperties: false,
  properties: {
    policies: {
      type: 'object',
      additionalProperties: POLICY,
      description: 'Policies by name, for rules, access of definitions and authorize of routes.',
    },
    rules: {
      type: 'object',
      additionalProperties: { anyOf: [text, POLICY, detailedRule] },
      description:
        'Glob for tool names -> policy name, policy, or { policy, mode, visibility }. Globs with prompt:, resource: or skill: match prompt names, URIs or skill folders.',
    },
    scopeHierarchy: {
      type: 'object',
      propertyNames: scope,
      additionalProperties: { type: 'array', items: scope },
      description: 'Scope -> the scopes that it includes, also indirectly.',
    },
    onDenied: {
      type: 'string',
      enum: ['challenge', 'error'],
      default: 'challenge',
      description: 'Response to a denied call: 401 or 403 with the missing scopes, or a JSON-RPC error with HTTP 200.',
    },
    mode: {
      type: 'string',
      enum: ['enforce', 'shadow'],
      default: 'enforce',
      description: 'Default mode of rules and of access. `shadow` logs decisions without enforcing them.',
    },
  },
} as const

/** A rule with members beyond its policy. */
export interface DetailedRule extends OptionsOf<typeof detailedRule> {}
export interface ToolPolicyOptions extends OptionsOf<typeof optionsSchema> {}
export interface FilledToolPolicy extends OptionsOf<typeof optionsSchema, true> {}
export type Mode = FilledToolPolicy['mode']
