// Puts a schema that has `$defs` of its own into a whole: they move to the `$defs` there. For host-schema.ts, which takes
// the options of plugins and what they share.
import type { JsonSchema } from '../mcp/protocol.ts'

/** The `$ref` of a definition of the whole. */
export const toDef = (name: string): string => `#/$defs/${name}`

/** A schema whose own `$defs` were moved to `<plugin>.<name>` of the whole. */
function moveRefs(schema: unknown, plugin: string): unknown {
  if (Array.isArray(schema)) return schema.map(item => moveRefs(item, plugin))
  if (typeof schema !== 'object' || schema === null) return schema
  const entries = Object.entries(schema).map(([key, value]) => {
    const isRef = key === '$ref' && typeof value === 'string'
    return [key, isRef ? value.replace(/^#\/\$defs\//, toDef(`${plugin}.`)) : moveRefs(value, plugin)]
  })
  return Object.fromEntries(entries)
}

/** A schema that is put into the whole, and what it refers to, under the names that the whole has for them. */
export function hoist(
  name: string,
  { $defs = {}, ...schema }: JsonSchema,
): { schema: JsonSchema; defs: [string, JsonSchema][] } {
  const own = Object.entries($defs as Record<string, JsonSchema>)
  return {
    schema: moveRefs(schema, name) as JsonSchema,
    defs: own.map(([key, definition]) => [`${name}.${key}`, moveRefs(definition, name) as JsonSchema]),
  }
}
