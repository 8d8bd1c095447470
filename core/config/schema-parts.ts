// The pieces that our own JSON Schemas are written with: texts, lists, objects that know their keys.
// For host-schema.ts, which describes a config, and definition-schema.ts, which describes tools, resources and prompts.
import type { JsonSchema } from '../mcp/protocol.ts'
import { DURATION_PATTERN, POSITIVE_DURATION_PATTERN, SIZE_PATTERN } from '../mcp/units.ts'

export const text = (description: string, extra: JsonSchema = {}): JsonSchema => ({
  type: 'string',
  minLength: 1,
  description,
  ...extra,
})
export const flag = (description: string, extra: JsonSchema = {}): JsonSchema => ({
  type: 'boolean',
  description,
  ...extra,
})
/** A whole number, at least 1. */
export const count = (description: string): JsonSchema => ({ type: 'integer', minimum: 1, description })
export const list = (items: JsonSchema, description: string, extra: JsonSchema = {}): JsonSchema => ({
  type: 'array',
  items,
  description,
  ...extra,
})
/** An object that has no other keys than these. */
export const closed = (properties: Record<string, JsonSchema>, extra: JsonSchema = {}): JsonSchema => ({
  type: 'object',
  additionalProperties: false,
  properties,
  ...extra,
})
export const duration = (description: string, extra: JsonSchema = {}): JsonSchema => ({
  type: ['string', 'number'],
  pattern: DURATION_PATTERN,
  minimum: 0,
  description,
  ...extra,
})
export const size = (description: string): JsonSchema => ({
  type: ['string', 'number'],
  pattern: SIZE_PATTERN,
  minimum: 0,
  description,
})
export const oneOrMore = (what: string, extra: JsonSchema = {}): JsonSchema => ({
  anyOf: [text(what, extra), list(text(what, extra), `${what}; each of them`, { minItems: 1 })],
})

/** RFC 6749 section 3.3; several are a list. */
export const SCOPE = {
  pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$',
} as const

export const mediaType = (description: string): JsonSchema =>
  text(description, { pattern: '^[^/\\s]+/[^/\\s]+', patternErrorMessage: "a media type such as 'text/markdown'" })

/** A duration above zero. With a limit of zero every call would fail. */
export const positiveDuration = (description: string, extra: JsonSchema = {}): JsonSchema => ({
  type: ['string', 'number'],
  pattern: POSITIVE_DURATION_PATTERN,
  exclusiveMinimum: 0,
  description,
  ...extra,
})

export const icon = closed(
  {
    src: text('Where the image is: an https or data URI.', {
      pattern: '^(https?://[^/\\s]|data:[^,]*,)',
      patternErrorMessage: 'an https URL, or a data URI',
    }),
    mimeType: mediaType('Its media type.'),
    sizes: list(
      text('Such as 48x48, or any.', {
        pattern: '^(\\d+x\\d+|any)$',
        patternErrorMessage: "a size such as '48x48', or 'any'",
      }),
      'The sizes it is made for.',
    ),
    theme: { enum: ['light', 'dark'], description: 'The background it is made for.' },
  },
  { required: ['src'] },
)

/** Of a tool, and of the config's `tools.limits`. */
export const isolate: JsonSchema = {
  anyOf: [
    { const: true },
    closed({
      memory: size('Maximum memory: heap and buffers.'),
      cpuTime: duration('Maximum CPU time of one call.'),
      processes: {
        type: 'integer',
        minimum: 1,
        maximum: 64,
        description: 'Maximum number of processes, and of concurrent calls.',
      },
    }),
  ],
  description: 'Runs the tool in a worker process, with limits.',
}
