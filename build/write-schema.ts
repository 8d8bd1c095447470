// `npm run schema`: writes what is made from the schemas of the config and of the built-in plugins: config.schema.json
// for editors, and the types of both. A test holds the files fresh.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { schemaText } from '../cli/schema.ts'
import { buildConfigSchema } from '../core/config/host-schema.ts'
import { pluginsOf } from '../core/create-host.ts'
import type { JsonSchema } from '../core/index.ts'
import { builtInPlugins } from '../plugins/index.ts'
import { writeTypes } from './write-types.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const TYPES = 'core/config/config-types.ts'
const OPTIONS = 'core/config/plugin-options.ts'

const importsOf = (names: readonly string[], from: string): string[] =>
  names.length === 0 ? [] : [`import type { ${names.join(', ')} } from '${from}'`]

/** Names of core/mcp/units.ts; all others are of config-parts.ts. */
const UNITS = ['Duration', 'Size']

function configTypes(): string {
  const { text, foreign } = writeTypes([buildConfigSchema(pluginsOf(builtInPlugins))])
  return [
    '// The config in types, generated from host-schema.ts by `npm run schema`: change it there.',
    ...importsOf(
      foreign.filter(name => UNITS.includes(name)),
      '../mcp/units.ts',
    ),
    ...importsOf(
      foreign.filter(name => !UNITS.includes(name)),
      './config-parts.ts',
    ),
    '',
    text,
  ].join('\n')
}

/** `AuthJwtOptions` of `auth-jwt`. */
const typeName = (plugin: string): string =>
  `${plugin.replace(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Options`

function pluginOptions(): string {
  const titled = Object.entries(pluginsOf(builtInPlugins)).map(
    ([name, { options }]) => [name, { ...options, title: typeName(name) } as JsonSchema] as const,
  )
  const { text, foreign, filled } = writeTypes(titled.map(([, schema]) => schema))
  const map = (names: (type: string) => string) =>
    titled.map(([name]) => `  '${name}': ${names(typeName(name))}`).join('\n')
  return [
    '// The options of the built-in plugins in types, generated from their schemas by `npm run schema`: change them there.',
    '// It is as long as all that plugins can be told.',
    ...importsOf(foreign, '../mcp/units.ts'),
    '',
    text,
    `/** Built-in plugins and their options. */\nexport interface BuiltInOptions {\n${map(type => type)}\n}\n`,
    '/** The same as `setup` gets them: with their defaults. */',
    `export interface FilledOptions {\n${map(type => filled.get(type) ?? type)}\n}\n`,
  ].join('\n')
}

/** As the formatter wants it, so that who formats all files changes nothing here. */
function format(file: string, text: string): string {
  const biome = createRequire(import.meta.url).resolve('@biomejs/biome/bin/biome')
  const formatted = execFileSync(process.execPath, [biome, 'check', '--write', `--stdin-file-path=${file}`], {
    cwd: ROOT,
    input: text,
    encoding: 'utf8',
  })
  return formatted
}

/** The text of each file that is made from schemas, by its path in the repository. */
export const writtenFiles = (): Readonly<Record<string, string>> => ({
  'config.schema.json': schemaText(),
  [TYPES]: format(TYPES, configTypes()),
  [OPTIONS]: format(OPTIONS, pluginOptions()),
})

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [file, text] of Object.entries(writtenFiles())) writeFileSync(join(ROOT, file), text)
}
