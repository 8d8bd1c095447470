// A call of one of these tools that a person can try: with arguments that fit its schema, made of what the schema itself
// shows. For the start-up page; nothing is called here.
import type { CatalogItem, ToolItem } from './catalog.ts'
import { isObject } from './is-object.ts'
import { isStandardSchema } from './schema/schema.ts'

export interface ExampleCall {
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** Levels of objects and lists within one another. */
const MAX_DEPTH = 4

const FORMATS: Readonly<Record<string, string>> = {
  date: '2026-01-31',
  'date-time': '2026-01-31T12:00:00Z',
  email: 'ada@example.com',
  time: '12:00:00Z',
  uri: 'https://example.com/',
  uuid: '123e4567-e89b-12d3-a456-426614174000',
}

const numberAt = (schema: Record<string, unknown>, key: string): number | undefined => {
  const value = schema[key]
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

function exampleNumber(schema: Record<string, unknown>): number {
  const least = numberAt(schema, 'minimum') ?? (numberAt(schema, 'exclusiveMinimum') ?? Number.NaN) + 1
  const most = numberAt(schema, 'maximum') ?? (numberAt(schema, 'exclusiveMaximum') ?? Number.NaN) - 1
  if (Number.isNaN(least)) return Number.isNaN(most) ? 1 : Math.min(1, most)
  return Number.isNaN(most) ? Math.max(1, least) : Math.min(Math.max(1, least), most)
}

function exampleText(schema: Record<string, unknown>): string {
  const { format } = schema
  const known = typeof format === 'string' ? FORMATS[format] : undefined
  const least = Math.min(numberAt(schema, 'minLength') ?? 0, 100)
  return known ?? 'hello'.slice(0, Math.max(numberAt(schema, 'maxLength') ?? 5, 0)).padEnd(least, 'o')
}

/** Whether it fits is for the schema to say. */
function exampleValue(schema: unknown, depth = 0): unknown {
  if (!isObject(schema)) return 'hello'
  const { examples, type, enum: values } = schema
  for (const list of [examples, values]) if (Array.isArray(list) && list.length > 0) return list[0]
  if ('default' in schema) return schema['default']
  if ('const' in schema) return schema['const']
  switch (Array.isArray(type) ? type[0] : type) {
    case 'boolean':
      return true
    case 'integer':
    case 'number':
      return exampleNumber(schema)
    case 'array':
      return depth < MAX_DEPTH && (numberAt(schema, 'minItems') ?? 0) > 0
        ? [exampleValue(schema['items'], depth + 1)]
        : []
    case 'object':
      return depth < MAX_DEPTH ? exampleObject(schema, depth + 1) : {}
    default:
      return exampleText(schema)
  }
}

/** What is required. */
function exampleObject({ properties, required }: Record<string, unknown>, depth: number): Record<string, unknown> {
  const needed = Array.isArray(required) ? required : []
  const entries = Object.entries(isObject(properties) ? properties : {})
  const shown = entries.filter(([name]) => needed.includes(name))
  return Object.fromEntries(shown.map(([name, schema]) => [name, exampleValue(schema, depth)]))
}

const PLAIN: ReadonlySet<string> = new Set([
  ...['$schema', 'title', 'description', 'x-mcp-header', 'type', 'properties', 'required', 'additionalProperties'],
  ...['items', '$defs', 'definitions'],
])
const MADE: ReadonlySet<unknown> = new Set(['string', 'boolean', 'number', 'integer', 'array', 'object'])

/** True of a JSON Schema that asks for nothing but what examples have. */
function isPlain(schema: unknown, depth = 0): boolean {
  if (!isObject(schema) || depth > MAX_DEPTH || !MADE.has(schema['type'])) return false
  if (!Object.keys(schema).every(keyword => PLAIN.has(keyword))) return false
  const { type, properties = {}, required = [] } = schema
  if (type !== 'object') return true
  if (!isObject(properties) || !Array.isArray(required)) return false
  return required.every(name => Object.hasOwn(properties, name) && isPlain(properties[name], depth + 1))
}

function exampleOf({ key, input, definition }: ToolItem): ExampleCall | undefined {
  const given = exampleObject(input.json, 0)
  // Of most schemas it is plain, and a start need not load ajv to be told.
  if (!isStandardSchema(definition.input) && isPlain(input.json)) return { tool: key, arguments: given }
  const checked = input.validate(given)
  // One that has to be waited for would hold up the page.
  return checked instanceof Promise || !checked.ok ? undefined : { tool: key, arguments: given }
}

/** Whether a tool says of itself that it only reads; one that may destroy is never an example. */
const hint = ({ definition }: ToolItem, name: 'readOnlyHint' | 'destructiveHint') => definition.annotations?.[name]

/** Undefined where no tool has arguments that are easily made. Tools that only read come first. */
export function findExampleCall(items: readonly CatalogItem[]): ExampleCall | undefined {
  const tools = items.filter(item => item.kind === 'tools')
  const reading = tools.filter(tool => hint(tool, 'readOnlyHint') === true)
  const others = tools.filter(tool => !reading.includes(tool) && hint(tool, 'destructiveHint') !== true)
  for (const tool of [...reading, ...others]) {
    const example = exampleOf(tool)
    if (example) return example
  }
  return undefined
}
