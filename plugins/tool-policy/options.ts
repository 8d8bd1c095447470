// Options of tool-policy.

import { SCOPE } from '../../core/auth.ts'
import type { JsonSchema, Typed } from '../../core/index.ts'
import { choice, closed, list, mapOf } from '../../core/internal.ts'
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
  claim: mapOf(
    oneOrMore(claimValue),
    'Claims with the required value, or one of the required values. A list must contain one of them.',
  ),
} as const

/** A policy: all members must hold. Anonymous callers satisfy none. */
export interface Policy extends OptionsOf<{ type: 'object'; properties: typeof CONDITIONS }> {
  /** At least one of these policies must hold. */
  anyOf?: Policy[]
  /** All of these policies must hold. */
  allOf?: Policy[]
}

const POLICY = { $ref: '#/$defs/policy' } as JsonSchema & Typed<Policy>
const policy = closed(
  {
    ...CONDITIONS,
    anyOf: list(POLICY, 'At least one of these policies.', { minItems: 1 }),
    allOf: list(POLICY, 'All of these policies.', { minItems: 1 }),
  },
  { title: 'Policy', description: 'All given conditions must match. Anonymous callers satisfy no policy.' },
)
const detailedRule = closed(
  {
    policy: { anyOf: [text, POLICY], description: 'The policy, or its name.' },
    mode: choice(['enforce', 'shadow'], 'Default: the mode of the plugin.'),
    visibility: choice(
      ['listed', 'hidden'],
      "'listed' lists the items for callers without access. Default: visibility of the definition, otherwise hidden.",
    ),
  },
  { title: 'DetailedRule', description: 'A rule with mode and visibility.', required: ['policy'] },
)

export const optionsSchema = closed(
  {
    policies: mapOf(POLICY, 'Policies by name, for rules, access of definitions and authorize of routes.'),
    rules: mapOf(
      { anyOf: [text, POLICY, detailedRule] },
      'Glob for tool names -> policy name, policy, or { policy, mode, visibility }. Globs with prompt:, resource: or skill: match prompt names, URIs or skill folders.',
    ),
    scopeHierarchy: mapOf({ type: 'array', items: scope }, 'Scope -> the scopes that it includes, also indirectly.', {
      propertyNames: scope,
    }),
    onDenied: choice(
      ['challenge', 'error'],
      'Response to a denied call: 401 or 403 with the missing scopes, or a JSON-RPC error with HTTP 200.',
      { default: 'challenge' },
    ),
    mode: choice(
      ['enforce', 'shadow'],
      'Default mode of rules and of access. `shadow` logs decisions without enforcing them.',
      { default: 'enforce' },
    ),
  },
  { $defs: { policy }, description: 'Access rules for tools, resources and prompts.' },
)

/** A rule with members beyond its policy. */
export interface DetailedRule extends OptionsOf<typeof detailedRule> {}
export interface ToolPolicyOptions extends OptionsOf<typeof optionsSchema> {}
export interface FilledToolPolicy extends OptionsOf<typeof optionsSchema, true> {}
export type Mode = FilledToolPolicy['mode']
