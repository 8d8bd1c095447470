// A `$ref` of a JSON Schema and what it names: `#/$defs/<name>` of the same schema. For whoever reads a schema beside
// ajv: which values are secrets, which defaults there are, and what would have fitted.
import type { JsonSchema } from '../mcp/protocol.ts'

export const isSchema = (value: unknown): value is JsonSchema => typeof value === 'object' && value !== null

/** The schema with what its `$ref` names, its own keywords first. Elsewhere than in `root` nothing is looked for. */
export function followRef(schema: JsonSchema, root: object): JsonSchema {
  const { $ref, ...own } = schema
  if (typeof $ref !== 'string') return schema
  const steps = $ref.startsWith('#/') ? $ref.slice(2).split('/') : []
  const named = steps.reduce<unknown>((node, step) => (isSchema(node) ? node[unescapeStep(step)] : undefined), root)
  return isSchema(named) ? { ...followRef(named, root), ...own } : own
}

/** A step of a JSON Pointer (RFC 6901), as the key that it is. */
const unescapeStep = (step: string): string => step.replaceAll('~1', '/').replaceAll('~0', '~')

/** A schema's alternatives, and what must all hold; each with what its `$ref` names. */
export const branchesOf = (schema: JsonSchema, root: object): JsonSchema[] =>
  [schema['anyOf'], schema['oneOf'], schema['allOf']].flatMap(list =>
    Array.isArray(list) ? list.filter(isSchema).map(branch => followRef(branch, root)) : [],
  )

/** The schemas that speak of what stands under a key of an object, or at a place of a list. */
export function schemasBelow(schema: JsonSchema, key: string | number, root: object): JsonSchema[] {
  const { properties, additionalProperties, items } = schema
  const named = isSchema(properties) && Object.hasOwn(properties, key) ? properties[key] : additionalProperties
  return [typeof key === 'number' ? items : named].filter(isSchema).map(below => followRef(below, root))
}
