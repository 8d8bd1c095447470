// A step of `npm run build`: compiles the validators of the config, of the built-in plugins' options and of definitions
// into core/config/built-validators.js of dist, or of the folder that it is given, so that no start compiles them; and into
// core/mcp/schema/built-meta-validators.js that of the meta-schema by which authors' schemas are checked.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import standalone from 'ajv/dist/standalone/index.js'
import { schemasWith } from '../core/config/check-definition.ts'
import { buildConfigSchema, withoutRequired } from '../core/config/config-schema.ts'
import { collectKeys } from '../core/config/declared-keys.ts'
import { DESCRIBED } from '../core/config/explain-problems.ts'
import { createWritingAjv, OWN_FORMATS, schemaKey } from '../core/config/validate-value.ts'
import { pluginsOf } from '../core/create-host.ts'
import { EXTENSION_SCHEMA, PLUGIN_SCHEMA, TOOL_KEY_SCHEMA } from '../core/mcp/definitions/definition-schema.ts'
import { DIALECTS, type Dialect, LENIENT } from '../core/mcp/schema/ajv.ts'
import { builtInPlugins } from '../plugins/index.ts'

const DIST = fileURLToPath(new URL('../dist', import.meta.url))

const plugins = pluginsOf(builtInPlugins)
const keys = collectKeys(Object.entries(plugins))

/** Every schema of ours that a start may validate with. */
export const ownSchemas = (): object[] => [
  buildConfigSchema({}, keys),
  PLUGIN_SCHEMA,
  EXTENSION_SCHEMA,
  TOOL_KEY_SCHEMA,
  ...Object.values(schemasWith(keys.toolKeys)),
  ...Object.values(plugins).flatMap(({ options }) => [options, withoutRequired(options)]),
]

const REQUIRE = ["import { createRequire } from 'node:module'", 'const require = createRequire(import.meta.url)']

/** The dialect of almost every schema; the other is compiled where one needs it. */
const BUILT_DIALECT: Dialect = 'draft 2020-12'

/** The text of the module with the validator of the meta-schema. */
export function metaValidatorsText(): string {
  const { id, create } = DIALECTS[BUILT_DIALECT]
  const ajv = create({ ...LENIENT, code: { source: true, esm: true } })
  const code = standalone.default(ajv, { meta: id })
  return [...REQUIRE, code, `export const BUILT_META_VALIDATORS = { '${BUILT_DIALECT}': meta }`, ''].join('\n')
}

/** How ajv writes an error into a validator; `schema` is what stands at the keyword in the schema around it. */
const FIELD = '((?:(?!const err).)*?)'
const WRITTEN_ERROR = new RegExp(
  `const (err\\d+) = \\{instancePath:${FIELD},schemaPath:${FIELD},keyword:("\\w+"),params:${FIELD},message:${FIELD},` +
    `schema:(?:(?!const err).)*?,parentSchema:${FIELD},data:(\\w+)\\};\\s*if\\(vErrors === null\\)\\{\\s*` +
    'vErrors = \\[\\1\\];\\s*\\}\\s*else \\{\\s*vErrors\\.push\\(\\1\\);\\s*\\}\\s*errors\\+\\+;',
  'g',
)

/**
 * The same as a call: two thousand times over, the names of its fields were a third of all. Without `schemaPath`, which nobody
 * reads of an error below the top, and without messages where explain-problems.ts has words of its own.
 */
const shortened = (code: string): string =>
  code.replace(WRITTEN_ERROR, (_, _name, path: string, _schemaPath, keyword: string, ...rest: string[]) => {
    const [params = '', message = '', ...others] = rest.slice(0, 4)
    const words = DESCRIBED.has(JSON.parse(keyword)) ? "''" : message
    return `vErrors = fail(vErrors, ${[path, keyword, params, words, ...others].join(', ')});errors++;`
  })

const FAIL = `function fail(errors, instancePath, keyword, params, message, parentSchema, data) {
  const error = { instancePath, schemaPath: '', keyword, params, message, schema: parentSchema[keyword], parentSchema, data }
  if (errors === null) return [error]
  errors.push(error)
  return errors
}`

/** No error quotes them, and each would be in the package once more. */
const withoutWords = (schema: object): object =>
  JSON.parse(
    JSON.stringify(schema, (key, value) => (key === 'description' && typeof value === 'string' ? undefined : value)),
  )

/** The validator of the same schema that requires nothing at its top, of the strict one: of their own they would be a fifth more. */
const WITHOUT_REQUIRED = `function withoutRequired(strict) {
  return function lenient(value, ctx) {
    strict(value, ctx)
    const errors = (strict.errors ?? []).filter(({ schemaPath }) => schemaPath !== '#/required')
    lenient.errors = errors.length > 0 ? errors : null
    return errors.length === 0
  }
}`

/** The text of the module, which imports none of ours. */
export function validatorsText(schemas: readonly object[]): string {
  const ajv = createWritingAjv()
  const own = new Map(schemas.map(schema => [schemaKey(schema), schema]))
  const lenient = [...own].flatMap(([key, schema]) => {
    const without = schemaKey(withoutRequired(schema))
    return without !== key && own.has(without) ? [[without, key] as const] : []
  })
  for (const [key] of lenient) own.delete(key)
  const keys = [...own.keys()]
  for (const [index, schema] of [...own.values()].entries()) ajv.addSchema(withoutWords(schema), `v${index}`)
  const code = standalone.default(ajv, Object.fromEntries(keys.map((_, index) => [`v${index}`, `v${index}`])))
  const table = [
    ...keys.map((key, index) => `'${key}': v${index}`),
    ...lenient.map(([key, strict]) => `'${key}': withoutRequired(v${keys.indexOf(strict)})`),
  ]
  return [
    `const OWN_FORMATS = { ${Object.entries(OWN_FORMATS).map(([name, check]) => `${name}: ${check}`)} }`,
    ...REQUIRE,
    shortened(code),
    FAIL,
    WITHOUT_REQUIRED,
    `export const BUILT_VALIDATORS = { ${table.join(', ')} }`,
    '',
  ].join('\n')
}

function write(file: string, text: string): void {
  const path = join(process.argv[2] ?? DIST, file)
  writeFileSync(path, text)
  // It was of the empty file that stood there.
  rmSync(`${path}.map`, { force: true })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  write('core/config/built-validators.js', validatorsText(ownSchemas()))
  write('core/mcp/schema/built-meta-validators.js', metaValidatorsText())
}
