// The pieces that our own JSON Schemas are written with: texts, lists, objects that know their keys.
// For host-schema.ts, which describes a config, and definition-schema.ts, which describes tools, resources and prompts.
import type { JsonSchema } from '../mcp/protocol.ts'
import { DURATION_PATTERN, SIZE_PATTERN } from '../mcp/units.ts'

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
export const oneOrMore = (what: string): JsonSchema => ({
  anyOf: [text(what), list(text(what), `${what}; each of them`, { minItems: 1 })],
})

export const icon = closed(
  {
    src: text('Where the image is: an https or data URI.'),
    mimeType: text('Its media type.'),
    sizes: list(text('Such as 48x48, or any.'), 'The sizes it is made for.'),
    theme: { enum: ['light', 'dark'], description: 'The background it is made for.' },
  },
  { required: ['src'] },
)

/** Of a tool, and of the config's `tools.limits`. */
export const isolate: JsonSchema = {
  anyOf: [
    { const: true },
    closed({
      memory: size('How much memory it can hold.'),
      cpuTime: duration('CPU time of one call.'),
      processes: {
        type: 'integer',
        minimum: 1,
        maximum: 64,
        description: 'Maximum number of processes, and of concurrent calls.',
      },
    }),
  ],
  description: 'Runs in a separate process, with limits.',
}
