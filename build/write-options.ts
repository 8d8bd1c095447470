// `npm run docs:options`: writes the option tables of docs/ from config.schema.json. A comment in a page names each table:
//
//   <!-- options: auth-jwt dpop=#bound-tokens-dpop -keys +claims.scopes -->
//
// The first word is `config`, or a definition or key of the schema, with dots for inner objects. The other words select options: `name` lists only the
// named options, `-name` leaves one out, `+a.b` adds an option of an inner object, and `name=link` links an option. A test compares the pages.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { globSync } from 'tinyglobby'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

interface Schema {
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, Schema>>
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly pattern?: string
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly required?: readonly string[]
  readonly default?: unknown
  readonly description?: string
}

const ROOT_SCHEMA: Schema = JSON.parse(readFileSync(`${ROOT}config.schema.json`, 'utf8'))
const DEFINITIONS = ROOT_SCHEMA.$defs ?? {}

function resolve(schema: Schema): Schema {
  const { $ref, ...own } = schema
  return $ref ? { ...resolve(DEFINITIONS[$ref.replace('#/$defs/', '')] ?? {}), ...own } : schema
}

const withProperties = (schema: Schema): Schema | undefined =>
  schema.properties ? schema : schema.anyOf?.map(resolve).find(({ properties }) => properties)

const isMap = ({ additionalProperties }: Schema) => typeof additionalProperties === 'object'

const mapValue = ({ additionalProperties }: Schema, name: string) =>
  name === '*' && typeof additionalProperties === 'object' ? additionalProperties : undefined

/** The object schema at a path. `*` stands for the values of a map. */
function objectAt(path: string): Schema {
  const [first = '', ...names] = path.split('.')
  const found = names.reduce<Schema | undefined>(
    (schema, name) => {
      const inner = schema && (withProperties(schema)?.properties?.[name] ?? mapValue(schema, name))
      return inner && resolve(inner)
    },
    first === 'config' ? ROOT_SCHEMA : resolve(DEFINITIONS[first] ?? ROOT_SCHEMA.properties?.[first] ?? {}),
  )
  const object = found && withProperties(found)
  if (!object) throw new Error(`config.schema.json has no object ${path}`)
  return object
}

const choice = (value: unknown) => (typeof value === 'string' ? `'${value}'` : JSON.stringify(value))
const code = (value: unknown): string =>
  Array.isArray(value) && value.length > 0
    ? value.map(code).join(', ')
    : `\`${typeof value === 'string' && value !== '' ? value : choice(value)}\``

function typeNames(given: Schema): string[] {
  const schema = resolve(given)
  const { pattern = '', type } = schema
  if (schema.enum) return schema.enum.map(value => code(choice(value)))
  if (schema.const !== undefined) return [code(choice(schema.const))]
  if (schema.anyOf) return [...new Set(schema.anyOf.flatMap(typeNames))]
  if (/\(ms\|/.test(pattern)) return ['duration']
  if (/kb/.test(pattern)) return ['size']
  if (type === 'array') return ['list']
  if (type === 'object') return [isMap(schema) && !schema.properties ? 'map' : 'object']
  return typeof type === 'string' ? [type] : (type?.slice() ?? ['any'])
}

function typeText(schema: Schema): string {
  const names = typeNames(schema)
  return names.every(name => name.startsWith('`')) ? names.join(', ') : names.join(' or ')
}

const DEFAULT = /(?:^| )Default:? ('[^']+'|[^.:;]+(?:\.\w[^.:;]*)*)\.(?= |$)/

/** The default and the rest of the description, which states a default that is not a fixed value. */
function splitDefault(schema: Schema, required: boolean): readonly [string, string] {
  const description = schema.description ?? ''
  const stated = DEFAULT.exec(description)
  const text = stated ? description.replace(stated[0], '').trim() : description
  if (required) return ['required', text]
  const { default: value } = schema
  if (value !== undefined) return [/^\{\}$/.test(JSON.stringify(value)) ? '' : code(value), description]
  const marked = /(`[^`]+`) \(default\)/.exec(description)
  if (marked) return [marked[1] ?? '', description.replace(' (default)', '')]
  return [stated?.[1]?.replace(/^'(.*)'$/, '`$1`') ?? '', text]
}

const escapePipes = (text: string) => text.replaceAll('|', '\\|')

/** A description as a table cell. A `*` outside code is not emphasis, and `<name>` is not HTML. */
const cell = (text: string) =>
  escapePipes(text.replace(/\.$/, ''))
    .split(/(`[^`]*`)/)
    .map((part, index) => (index % 2 === 1 ? part : part.replaceAll('*', '\\*').replaceAll('<', '&lt;')))
    .join('')

function toRow(
  owner: Schema,
  name: string,
  shown: string,
  link: string | undefined,
  needed: readonly string[],
): string {
  const found = owner.properties?.[name]
  if (!found) throw new Error(`config.schema.json has no option ${shown}`)
  const option = resolve(found)
  const [byDefault, text] = splitDefault(option, needed.includes(name))
  const title = link ? `[\`${shown}\`](${link})` : `\`${shown}\``
  return `|${[title, escapePipes(typeText(option)), byDefault, cell(text)].join('|')}|`
}

function listRequired(path: string, owner: Schema): readonly string[] {
  const ofPlugin = ROOT_SCHEMA.properties?.['plugins']?.properties?.[path]?.anyOf?.find(({ $ref }) => $ref)
  return [...(owner.required ?? []), ...(ofPlugin?.required ?? [])]
}

function toTable(words: string): string {
  const [path = '', ...rest] = words.trim().split(/\s+/)
  const owner = objectAt(path)
  const links = new Map(
    rest
      .filter(word => word.includes('='))
      .map(word => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)] as const),
  )
  const plain = rest.filter(word => !word.includes('='))
  const without = plain.filter(word => word.startsWith('-')).map(word => word.slice(1))
  const inner = plain.filter(word => word.startsWith('+')).map(word => word.slice(1))
  const chosen = plain.filter(word => /^\w/.test(word))
  const names = chosen.length > 0 ? chosen : Object.keys(owner.properties ?? {}).filter(name => !without.includes(name))
  const rows = names.map(name => toRow(owner, name, name, links.get(name), listRequired(path, owner)))
  const innerRows = inner.map(name => {
    const at = name.lastIndexOf('.')
    const of = objectAt(`${path}.${name.slice(0, at)}`)
    return toRow(of, name.slice(at + 1), name, links.get(name), of.required ?? [])
  })
  return ['|Option|Type|Default|Description|', '|---|---|---|---|', ...rows, ...innerRows, ''].join('\n')
}

/** A page with its option tables as the schema has them. */
export const optionsPage = (page: string): string =>
  page.replace(
    /(<!-- options: ([^>]+) -->\n)\n?(?:\|.*\n)*/g,
    (_, comment: string, words: string) => `${comment}\n${toTable(words)}`,
  )

export const optionPages = (): string[] =>
  globSync('docs/**/*.md', { cwd: ROOT })
    .sort()
    .filter(path => readFileSync(`${ROOT}${path}`, 'utf8').includes('<!-- options: '))

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const path of optionPages()) {
    writeFileSync(`${ROOT}${path}`, optionsPage(readFileSync(`${ROOT}${path}`, 'utf8')))
  }
}
