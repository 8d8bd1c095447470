// A step of `npm run build`: compiles the validators of the config, of the built-in plugins' options and of definitions
// into core/config/built-validators.js of dist, or of the folder that it is given, so that no start compiles them.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import standalone from 'ajv/dist/standalone/index.js'
import { DEFINITION_SCHEMAS, PLUGIN_SCHEMA } from '../core/config/definition-schema.ts'
import { buildConfigSchema, withoutRequired } from '../core/config/host-schema.ts'
import { createWritingAjv } from '../core/config/own-ajv.ts'
import { schemaKey } from '../core/config/schema-key.ts'
import { collectSections } from '../core/config/sections.ts'
import { pluginsOf } from '../core/create-host.ts'
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

/** The text of the module; `formats` is where it finds own-ajv.js. */
export function validatorsText(schemas: readonly object[], formats = './own-ajv.js'): string {
  const ajv = createWritingAjv()
  const keys = [...new Map(schemas.map(schema => [schemaKey(schema), schema]))]
  for (const [index, [, schema]] of keys.entries()) ajv.addSchema(schema, `v${index}`)
  const code = standalone.default(ajv, Object.fromEntries(keys.map((_, index) => [`v${index}`, `v${index}`])))
  return [
    "import { createRequire } from 'node:module'",
    `import { OWN_FORMATS } from '${formats}'`,
    'const require = createRequire(import.meta.url)',
    code,
    `export const BUILT_VALIDATORS = { ${keys.map(([key], index) => `'${key}': v${index}`).join(', ')} }`,
    '',
  ].join('\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const file = join(process.argv[2] ?? DIST, 'core/config/built-validators.js')
  writeFileSync(file, validatorsText(ownSchemas()))
  // It was of the empty file that stood there.
  rmSync(`${file}.map`, { force: true })
}
