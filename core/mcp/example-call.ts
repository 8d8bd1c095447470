// Finds a call that a user can try, with argument values from the schema. For the start page.
import type { CatalogItem, ToolItem } from './catalog.ts'
import { isObject } from './is-object.ts'
import { isStandardSchema } from './schema/standard-schema.ts'

export interface ExampleCall {
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** Maximum depth of nested objects. */
const MAX_DEPTH = 4

interface Known {
  readonly value: unknown
}

/** A value that the schema contains; undefined if there is none, because an invented value usually fails. */
function knownValue(schema: unknown, depth: number): Known | undefined {
  if (!isObject(schema)) return undefined
  const { examples, enum: values } = schema
  for (const list of [examples, values]) if (Array.isArray(list) && list.length > 0) return { value: list[0] }
  for (const key of ['default', 'const']) if (key in schema) return { value: schema[key] }
  return schema['type'] === 'object' && depth < MAX_DEPTH ? knownObject(schema, depth + 1) : undefined
}

/** The required properties; undefined if one of them has no known value. */
function knownObject({ properties, required }: Record<string, unknown>, depth: number): Known | undefined {
  const value: Record<string, unknown> = {}
  for (const name of Array.isArray(required) ? required : []) {
    const known = knownValue(isObject(properties) ? properties[name] : undefined, depth)
    if (!known) return undefined
    value[name] = known.value
  }
  return { value }
}

/** Keywords that never reject `{}` if no property is required. */
const FIT_EMPTY: ReadonlySet<string> = new Set([
  ...['$schema', '$defs', 'definitions', 'title', 'description', 'type', 'properties', 'additionalProperties'],
  ...['required', 'default', 'examples'],
])

function fits({ input, definition }: ToolItem, given: ExampleCall['arguments']): boolean {
  const keywords = Object.keys(input.json)
  const isEmpty = Object.keys(given).length === 0
  // The usual case. Startup then does not load ajv.
  if (isEmpty && !isStandardSchema(definition.input) && keywords.every(keyword => FIT_EMPTY.has(keyword))) return true
  const checked = input.validate(given)
  // An asynchronous validation would delay the page.
  return !(checked instanceof Promise) && checked.ok
}

/** Whether a tool says of itself that it only reads; one that may destroy is never an example. */
const hint = ({ definition }: ToolItem, name: 'readOnlyHint' | 'destructiveHint') => definition.annotations?.[name]

/** Prefers tools without arguments, then read-only tools. Undefined if no arguments certainly match a schema. */
export function findExampleCall(items: readonly CatalogItem[]): ExampleCall | undefined {
  const tools = items.filter(item => item.kind === 'tools').filter(tool => hint(tool, 'destructiveHint') !== true)
  const reading = tools.filter(tool => hint(tool, 'readOnlyHint') === true)
  const known = [...new Set([...reading, ...tools])].flatMap(tool => {
    const { value } = knownObject(tool.input.json, 0) ?? {}
    return isObject(value) ? [{ tool, given: value }] : []
  })
  const isEmpty = ({ given }: { given: object }) => Object.keys(given).length === 0
  const ordered = [...known.filter(isEmpty), ...known.filter(one => !isEmpty(one))]
  const found = ordered.find(({ tool, given }) => fits(tool, given))
  return found && { tool: found.tool.key, arguments: found.given }
}
