// From JSON Schema to TypeScript: an interface for each shape that has a `title`, with what its keys mean and their
// defaults, and beside it the same as it is once defaults are filled in. For build/write-schema.ts.
import { branchesOf, followRef, isSchema } from '../core/config/follow-ref.ts'
import type { JsonSchema } from '../core/index.ts'
import { DURATION_PATTERN, POSITIVE_DURATION_PATTERN, SIZE_PATTERN } from '../core/mcp/units.ts'

/** Types that patterns stand for. */
const PATTERNS: ReadonlyMap<unknown, string> = new Map([
  [DURATION_PATTERN, 'Duration'],
  [POSITIVE_DURATION_PATTERN, 'Duration'],
  [SIZE_PATTERN, 'Size'],
])

const PRIMITIVES: Readonly<Record<string, string>> = {
  string: 'string',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
  null: 'null',
}

export interface WrittenTypes {
  /** The declarations by their names, in the order in which they are needed. */
  readonly declarations: ReadonlyMap<string, string>
  /** Names that the declarations use and do not declare. */
  readonly foreign: readonly string[]
  /** The name of each schema's type once its defaults are filled in, by its title. */
  readonly filled: ReadonlyMap<string, string>
}

type Properties = Readonly<Record<string, JsonSchema>>
const propertiesOf = (schema: JsonSchema) => (schema['properties'] ?? {}) as Properties

/** The types of these schemas, each of which has a `title`; `$ref`s are looked up in the schema that they stand in. */
export function writeTypes(schemas: readonly JsonSchema[]): WrittenTypes {
  const foreign = new Set<string>()
  const sources = new Map<string, string>()
  const declarations = new Map<string, string>()
  const filled = new Map(schemas.map(schema => [`${schema['title']}`, writerFor(schema).typeOf(schema, true)]))
  return { declarations, foreign: [...foreign].sort(), filled }

  function writerFor(root: object) {
    return { typeOf }

    function typeOf(given: JsonSchema, isFilled: boolean): string {
      const schema = followRef(given, root)
      const { title, tsType, pattern, type, items } = schema
      const known = tsType ?? PATTERNS.get(pattern)
      if (typeof known === 'string') {
        foreign.add(known)
        return known
      }
      if (typeof title === 'string') return nameOf(title, schema, isFilled)
      if ('const' in schema) return JSON.stringify(schema['const'])
      if (Array.isArray(schema['enum'])) return union(schema['enum'].map(value => JSON.stringify(value)))
      const branches = branchesOf(schema, root)
      if (branches.length > 0) return union(branches.map(branch => typeOf(branch, isFilled)))
      if (Array.isArray(type)) return union(type.map(one => typeOf({ ...schema, type: one }, isFilled)))
      if (type === 'array') return listOf(typeOf(items as JsonSchema, isFilled))
      if (type === 'object') return objectType(schema, isFilled)
      const primitive = PRIMITIVES[`${type}`]
      if (primitive === undefined) throw new Error(`there is no type for ${JSON.stringify(schema)}`)
      return primitive
    }

    function objectType(schema: JsonSchema, isFilled: boolean): string {
      const { properties, additionalProperties } = schema
      if (isSchema(properties))
        return `{\n${Object.keys(properties)
          .map(key => member(key, schema, isFilled))
          .join('')}}`
      return `Record<string, ${isSchema(additionalProperties) ? typeOf(additionalProperties, isFilled) : 'unknown'}>`
    }

    function member(key: string, { properties, required }: JsonSchema, isFilled: boolean): string {
      const schema = followRef((properties as Properties)[key] ?? {}, root)
      const isThere = [required].flat().includes(key) || (isFilled && 'default' in schema)
      const name = /^[a-z$_][\w$]*$/i.test(key) ? key : JSON.stringify(key)
      return `${isFilled ? '' : docOf(schema)}${name}${isThere ? '' : '?'}: ${typeOf(schema, isFilled)}\n`
    }

    /** The name of a titled shape; with its defaults, where it has any, a name of its own. */
    function nameOf(title: string, schema: JsonSchema, isFilled: boolean): string {
      const name = isFilled && isChanged(schema, new Set()) ? `Filled${title}` : title
      if (name !== title) nameOf(title, schema, false)
      const { title: _, default: __, ...shape } = schema
      const source = JSON.stringify(shape)
      if ((sources.get(name) ?? source) !== source) throw new Error(`two schemas have the title ${title}`)
      if (sources.has(name)) return name
      sources.set(name, source)
      declarations.set(name, '')
      declarations.set(name, name === title ? declaration(name, schema) : filledDeclaration(name, title, schema))
      return name
    }

    function declaration(name: string, schema: JsonSchema): string {
      const { title: _, ...shape } = schema
      if (Object.keys(propertiesOf(schema)).length === 0)
        return `${docOf(shape)}export type ${name} = Record<never, never>\n`
      return `${docOf(shape)}export interface ${name} ${typeOf(shape, false)}\n`
    }

    /** Says only the keys that defaults change; editors take what they mean from the other. */
    function filledDeclaration(name: string, title: string, schema: JsonSchema): string {
      const changed = Object.entries(propertiesOf(schema)).filter(
        ([, given]) => 'default' in followRef(given, root) || isChanged(followRef(given, root), new Set()),
      )
      const members = changed.map(([key]) => member(key, schema, true)).join('')
      return `/** ${title} with its defaults filled in. */\nexport interface ${name} extends ${title} {\n${members}}\n`
    }

    /** Whether a default stands somewhere in what a schema describes. */
    function isChanged(given: JsonSchema, seen: Set<unknown>): boolean {
      if (seen.has(given['$ref']) || 'tsType' in given) return false
      if ('$ref' in given) seen.add(given['$ref'])
      const schema = followRef(given, root)
      const { items, additionalProperties } = schema
      const parts = [items, additionalProperties].filter(isSchema)
      return (
        Object.values(propertiesOf(schema)).some(one => 'default' in followRef(one, root) || isChanged(one, seen)) ||
        [...parts, ...branchesOf(schema, root)].some(part => isChanged(part, seen))
      )
    }
  }
}

const listOf = (type: string): string => (/^\w+$/.test(type) ? `${type}[]` : `Array<${type}>`)
const union = (types: readonly string[]): string => [...new Set(types)].join(' | ')

/** A docstring: what the key means, and its default where that says something. */
function docOf(schema: JsonSchema): string {
  const { description, default: standard } = schema
  const isTold = standard !== undefined && JSON.stringify(standard) !== '{}'
  const text = [
    ...(description === undefined ? [] : [description]),
    ...(isTold ? [`Default ${shownDefault(standard)}.`] : []),
  ]
  return text.length === 0 ? '' : `/** ${text.join(' ').replaceAll('*/', '*\\/')} */\n`
}

const shownDefault = (value: unknown): string =>
  `\`${Array.isArray(value) ? JSON.stringify(value).replaceAll('"', "'").replaceAll(',', ', ') : String(value)}\``
