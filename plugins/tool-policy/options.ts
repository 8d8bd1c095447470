// What an operator writes under `plugins['tool-policy']`: the types, and their JSON Schema.
import type { OptionsSchema } from '../../core/index.ts'

type OneOrMore<T> = T | T[]
export type ClaimValue = string | number | boolean

/** Everything that is written here must hold; what is not written asks nothing. An anonymous caller meets no policy. */
export interface Policy {
  /** All of these scopes. */
  scope?: OneOrMore<string>
  /** All of these roles. */
  role?: OneOrMore<string>
  /** Each of these claims has the value, or one of the values; of a claim that is a list, one entry does. */
  claim?: Record<string, OneOrMore<ClaimValue>>
  /** At least one of these. */
  anyOf?: Policy[]
  /** Each of these. */
  allOf?: Policy[]
}

export type Mode = 'enforce' | 'shadow'

/** A rule that says more than its policy. */
export interface DetailedRule {
  policy: string | Policy
  /** Default: the plugin's `mode`. */
  mode?: Mode
  /** `'listed'` shows the items to callers who may not use them. Default: as the definition says, else hidden. */
  visibility?: 'listed' | 'hidden'
}

export interface ToolPolicyOptions {
  /** Policies by name, for `rules`, for a definition's `access` and for a route's `authorize`. */
  policies?: Record<string, Policy>
  /** Who may use what: globs over tool names, `prompt:` over prompt names, `resource:` over URIs. */
  rules?: Record<string, string | Policy | DetailedRule>
  /** Scope -> the scopes that it includes. */
  scopeHierarchy?: Record<string, string[]>
  /** `'challenge'` (default): 401 or 403 with what is needed. `'error'`: a JSON-RPC error with HTTP 200. */
  onDenied?: 'challenge' | 'error'
  /** `'shadow'` decides and logs, and enforces nothing but routes' `authorize`. Default `'enforce'`. */
  mode?: Mode
}

const text = { type: 'string', minLength: 1 }
const oneOrMore = (items: object) => ({ anyOf: [items, { type: 'array', items, minItems: 1 }] })
const claimValue = { type: ['string', 'number', 'boolean'] }
const mode = { type: 'string', enum: ['enforce', 'shadow'] }

/** Without `$ref`: policies in policies are described to this depth, and checked deeper when they are compiled. */
function policySchema(depth: number): object {
  const inner = depth > 0 ? policySchema(depth - 1) : { type: 'object' }
  return {
    type: 'object',
    additionalProperties: false,
    properties: {
      scope: { ...oneOrMore(text), description: 'All of these scopes.' },
      role: { ...oneOrMore(text), description: 'All of these roles.' },
      claim: {
        type: 'object',
        additionalProperties: { anyOf: [claimValue, { type: 'array', items: claimValue }] },
        description: 'Each claim has the value, or one of the values.',
      },
      anyOf: { type: 'array', items: inner, description: 'At least one of these.' },
      allOf: { type: 'array', items: inner, minItems: 1, description: 'Each of these.' },
    },
  }
}

const POLICY = policySchema(2)
const DETAILED = {
  type: 'object',
  additionalProperties: false,
  required: ['policy'],
  properties: {
    policy: { anyOf: [text, POLICY] },
    mode: { ...mode, description: 'Default: the mode of the plugin.' },
    visibility: { type: 'string', enum: ['listed', 'hidden'], description: 'To callers who may not use it.' },
  },
}

export const optionsSchema: OptionsSchema<ToolPolicyOptions> = {
  type: 'object',
  description: 'Who may use which tools, resources and prompts.',
  additionalProperties: false,
  properties: {
    policies: { type: 'object', additionalProperties: POLICY, description: 'Policies by name.' },
    rules: {
      type: 'object',
      additionalProperties: { anyOf: [text, POLICY, DETAILED] },
      description: 'Glob -> policy: over tool names; with prompt: over prompt names, with resource: over URIs.',
    },
    scopeHierarchy: {
      type: 'object',
      additionalProperties: { type: 'array', items: text },
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
}
