// Finds names under `required` that a schema does not describe. For definition-warnings.ts and catalog-item.ts.
import { isObject } from '../is-object.ts'
import type { JsonSchema } from '../protocol.ts'
import { subschemas } from './subschemas.ts'

interface UnknownRequired {
  readonly name: string
  readonly known: readonly string[]
  /** Whether what has no property is refused. */
  readonly isClosed: boolean
  readonly path: readonly string[]
}

/** What may bring properties that are written elsewhere. */
const OTHER_SOURCES = ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'if', 'patternProperties', 'dependentSchemas']
/** Under these a schema speaks of an object that another describes. */
const PARTIAL = new Set(['allOf', 'anyOf', 'oneOf', 'if', 'then', 'else', 'not', 'dependentSchemas', 'contains'])

/** Names under `required` that no property of the same schema has. */
export function unknownRequired(root: JsonSchema): UnknownRequired[] {
  return [...subschemas(root)].flatMap(({ schema, path }) => {
    const { required, properties, additionalProperties } = schema
    if (!Array.isArray(required) || !isObject(properties)) return []
    if (path.some(step => PARTIAL.has(step)) || OTHER_SOURCES.some(keyword => keyword in schema)) return []
    if (isObject(additionalProperties)) return []
    const known = Object.keys(properties)
    const isClosed = additionalProperties === false
    return required
      .filter((name): name is string => typeof name === 'string' && !Object.hasOwn(properties, name))
      .map(name => ({ name, known, isClosed, path }))
  })
}
