// Options of tool-policy.
import { SCOPE } from '../../core/auth.ts'
import type { Typed } from '../../core/index.ts'
import type { OptionsOf } from '../../core/plugin.ts'

export type ClaimValue = string | number | boolean

const text = { type: 'string', minLength: 1 } as const
const scope = { ...text, ...SCOPE } as const
const ONE_OR_MORE = { anyOf: [text, { type: 'array', items: text, minItems: 1 }] } as const
const claimValue = { type: ['string', 'number', 'boolean'] } as const

const CONDITIONS = {
  scope: { ...ONE_OR_MORE, description: 'All of these scopes.' },
  role: { ...ONE_OR_MORE, description: 'All of these roles.' },
  claim: {
    type: 'object',
    additionalProperties: { anyOf: [claimValue, { type: 'array', items: claimValue }] },
    description: 'Each of these claims has the value, or one of the values; of a claim that is a list, one entry does.',
  },
} as const

/** A policy: all members must hold. Anonymous callers satisfy none. */
export interface Policy extends OptionsOf<{ type: 'object'; properties: typeof CONDITIONS }> {
  /** At least one of these. */
  anyOf?: Policy[]
  /** Each of these. */
  allOf?: Policy[]
}

const POLICY = { $ref: '#/$defs/policy' } as { readonly $ref: string } & Typed<Policy>
const policy = {
  title: 'Policy',
  type: 'object',
  description:
    'Everything written here must hold; what is not written asks nothing. No anonymous caller meets a policy.',
  additionalProperties: false,
  properties: {
    ...CONDITIONS,
    anyOf: { type: 'array', items: POLICY, description: 'At least one of these.' },
    allOf: { type: 'array', items: POLICY, minItems: 1, description: 'Each of these.' },
  },
} as const
const detailedRule = {
  title: 'DetailedRule',
  type: 'object',
  description: 'A rule that says more than its policy.',
  additionalProperties: false,
  required: ['policy'],
  properties: {
    policy: { anyOf: [text, POLICY], description: 'The policy, or its name.' },
    mode: { type: 'string', enum: ['enforce', 'shadow'], description: 'Default: the mode of the plugin.' },
    visibility: {
      type: 'string',
      enum: ['listed', 'hidden'],
      description:
        "'listed' shows the items to callers who may not use them. Default: as the definition says, else hidden.",
    },
  },
} as const

export const optionsSchema = {
  type: 'object',
  $defs: { policy },
  description: 'Who may use which tools, resources and prompts.',
  additionalProperties: false,
  properties: {
    policies: {
      type: 'object',
      additionalProperties: POLICY,
      description: "Policies by name, for rules, for a definition's access and for a route's authorize.",
    },
    rules: {
      type: 'object',
      additionalProperties: { anyOf: [text, POLICY, detailedRule] },
      description:
        'Glob -> policy: over tool names; with prompt: over prompt names, with resource: over URIs, with skill: over folders of skills.',
    },
    scopeHierarchy: {
      type: 'object',
      propertyNames: scope,
      additionalProperties: { type: 'array', items: scope },
      description: 'Scope -> the scopes that it includes.',
    },
    onDenied: {
      type: 'string',
      enum: ['challenge', 'error'],
      default: 'challenge',
      description: 'How a denied call is answered: 401 or 403 with what is needed, or a JSON-RPC error.',
    },
    mode: {
      type: 'string',
      enum: ['enforce', 'shadow'],
      default: 'enforce',
      description: 'shadow decides and logs without enforcing.',
    },
  },
} as const

/** A rule with members beyond its policy. */
export interface DetailedRule extends OptionsOf<typeof detailedRule> {}
export interface ToolPolicyOptions extends OptionsOf<typeof optionsSchema> {}
export interface FilledToolPolicy extends OptionsOf<typeof optionsSchema, true> {}
export type Mode = FilledToolPolicy['mode']
