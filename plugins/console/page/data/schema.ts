// Reads JSON Schemas of tools for the form: which control fits, and which value a form starts with.

export type JsonObject = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const objectIn = (value: unknown, name: string): JsonObject =>
  isObject(value) && isObject(value[name]) ? value[name] : {}

/** References to `$defs`, as deep as a chain of references is followed. */
const MAX_REFERENCES = 8

/** The schema behind local references. Others stay as they are and get a JSON field. */
export function resolve(schema: unknown, root: JsonObject, depth = 0): JsonObject {
  if (!isObject(schema)) return {}
  const reference = schema['$ref']
  if (typeof reference !== 'string' || !reference.startsWith('#/') || depth > MAX_REFERENCES) return schema
  let target: unknown = root
  for (const part of reference.slice(2).split('/')) {
    const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
    target = isObject(target) && Object.hasOwn(target, name) ? target[name] : undefined
  }
  return resolve(target, root, depth + 1)
}

export type Control = 'text' | 'number' | 'boolean' | 'choice' | 'object' | 'array' | 'json'

/** `json`: a form has no control for the schema, such as a union. */
export function controlOf(schema: JsonObject): Control {
  const { type, properties, items } = schema
  if (choicesOf(schema) !== undefined) return 'choice'
  if (schema['oneOf'] ?? schema['anyOf'] ?? schema['allOf']) return 'json'
  if (type === 'string') return 'text'
  if (type === 'number' || type === 'integer') return 'number'
  if (type === 'boolean') return 'boolean'
  if ((type === 'object' || type === undefined) && isObject(properties)) return 'object'
  if (type === 'array' && isObject(items)) return 'array'
  return 'json'
}

export interface Choice {
  readonly value: unknown
  readonly label: string
}

/** The values of `enum`, `const`, or a `oneOf` of constants with titles, as in requests for input. */
export function choicesOf(schema: JsonObject): readonly Choice[] | undefined {
  const choice = (value: unknown, title?: unknown): Choice => ({
    value,
    label: typeof title === 'string' ? title : typeof value === 'string' ? value : JSON.stringify(value),
  })
  if (Array.isArray(schema['enum'])) return schema['enum'].map(value => choice(value))
  if ('const' in schema) return [choice(schema['const'])]
  const options: unknown = schema['oneOf']
  const isList = Array.isArray(options) && options.length > 0 && options.every(one => isObject(one) && 'const' in one)
  return isList ? options.map((one: JsonObject) => choice(one['const'], one['title'])) : undefined
}

export const requiredOf = (schema: JsonObject): ReadonlySet<unknown> =>
  new Set(Array.isArray(schema['required']) ? schema['required'] : [])

export const propertiesOf = (schema: JsonObject): readonly (readonly [string, unknown])[] =>
  isObject(schema['properties']) ? Object.entries(schema['properties']) : []

/** The value of a new field: defaults, and the required parts of objects. */
export function initialValue(given: unknown, root: JsonObject, isRequired = true): unknown {
  const schema = resolve(given, root)
  if ('default' in schema) return schema['default']
  if (!isRequired) return undefined
  if ('const' in schema) return schema['const']
  const control = controlOf(schema)
  if (control === 'boolean') return false
  if (control === 'array') return []
  if (control !== 'object') return undefined
  const required = requiredOf(schema)
  const entries = propertiesOf(schema).map(([name, inner]) => [name, initialValue(inner, root, required.has(name))])
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}
