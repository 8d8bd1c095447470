// The schema that lists show: draft-07 as draft 2020-12 where both mean the same, because clients reject draft-07.
import type { JsonSchema } from '../protocol.ts'
import { subschemas } from './subschemas.ts'

/** Keywords that one of the two drafts does not have or reads in another way. */
const DIFFERENT = [
  ...['dependencies', 'additionalItems', '$id', '$anchor', '$dynamicRef', '$dynamicAnchor', '$vocabulary'],
  ...['prefixItems', 'unevaluatedItems', 'unevaluatedProperties', 'dependentSchemas', 'dependentRequired'],
  ...['minContains', 'maxContains', 'contentSchema'],
]

function isSameInBoth(schema: JsonSchema): boolean {
  if (DIFFERENT.some(keyword => keyword in schema) || Array.isArray(schema['items'])) return false
  // Draft-07 ignores what is next to a `$ref`.
  return (
    !('$ref' in schema) || Object.keys(schema).every(key => ['$ref', 'title', 'description', '$comment'].includes(key))
  )
}

/** Without `$schema`, whose default in MCP is draft 2020-12; the same schema if it is draft-07 and means something else. */
export function advertisedSchema(schema: JsonSchema): JsonSchema {
  if (!isDraft07(schema) || ![...subschemas(schema)].every(({ schema: part }) => isSameInBoth(part))) return schema
  const { $schema: _, ...rest } = schema
  return rest
}

export const isDraft07 = ({ $schema }: JsonSchema): boolean =>
  typeof $schema === 'string' && $schema.includes('json-schema.org/draft-07/')
