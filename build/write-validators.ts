// A step of `npm run build`: compiles the validators of the config, of the built-in plugins' options and of definitions
// into core/config/built-validators.js of dist, or of the folder that it is given, so that no start compiles them; into
// core/mcp/schema/built-meta-validators.js that of the meta-schema by which authors' schemas are checked; and into
// core/mcp/methods/built-param-validators.js those of methods' params, so that no first request waits for them.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import standalone from 'ajv/dist/standalone/index.js'
import { DEFINITION_SCHEMAS, PLUGIN_SCHEMA } from '../core/config/definition-schema.ts'
import { buildConfigSchema, withoutRequired } from '../core/config/host-schema.ts'
import { createWritingAjv } from '../core/config/own-ajv.ts'
import { schemaKey } from '../core/config/schema-key.ts'
import { collectSections } from '../core/config/sections.ts'
import { pluginsOf } from '../core/create-host.ts'
import { PARAM_OPTIONS, PARAM_SCHEMAS } from '../core/mcp/methods/params.ts'
import { DIALECTS, type Dialect, LENIENT } from '../core/mcp/schema/meta-schema.ts'
import { builtInPlugins } from '../plugins/index.ts'

const DIST = fileURLToPath(new URL('../dist', import.meta.url))

const plugins = pluginsOf(builtInPlugins)

/** Every schema of ours that a start may validate with. */
export const ownSchemas = (): object[] => [
  buildConfigSchema({}, collectSections(Object.entries(plugins))),
  PLUGIN_SCHEMA,
  ...Object.values(DEFINITION_SCHEMAS),
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

/** The text of the module with the validators of the params of the host's own methods. */
export function paramValidatorsText(): string {
  const ajv = new Ajv2020({ ...PARAM_OPTIONS, code: { source: true, esm: true } })
  // Methods share schemas; one that is written twice would be declared twice.
  const schemas = [...new Set(Object.values(PARAM_SCHEMAS))]
  for (const [index, schema] of schemas.entries()) ajv.addSchema(schema, `v${index}`)
  const code = standalone.default(ajv, Object.fromEntries(schemas.map((_, index) => [`v${index}`, `v${index}`])))
  const table = Object.entries(PARAM_SCHEMAS)
    .map(([name, schema]) => `'${name}': v${schemas.indexOf(schema)}`)
    .join(', ')
  return [...REQUIRE, code, `export const BUILT_PARAM_VALIDATORS = { ${table} }`, ''].join('\n')
}

/** The text of the module; `formats` is where it finds own-ajv.js. */
export function validatorsText(schemas: readonly object[], formats = './own-ajv.js'): string {
  const ajv = createWritingAjv()
  const keys = [...new Map(schemas.map(schema => [schemaKey(schema), schema]))]
  for (const [index, [, schema]] of keys.entries()) ajv.addSchema(schema, `v${index}`)
  const code = standalone.default(ajv, Object.fromEntries(keys.map((_, index) => [`v${index}`, `v${index}`])))
  return [
    `import { OWN_FORMATS } from '${formats}'`,
    ...REQUIRE,
    code,
    `export const BUILT_VALIDATORS = { ${keys.map(([key], index) => `'${key}': v${index}`).join(', ')} }`,
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
  write('core/mcp/methods/built-param-validators.js', paramValidatorsText())
}
