// The files of a new server, by what was chosen.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownPackage } from '../version.ts'
import {
  type Choices,
  capitalize,
  nodeFor,
  packagesFor,
  replacementsFor,
  toIdentifier,
  withoutScope,
} from './choices.ts'
import type { NewFiles } from './write-new.ts'

export type Replacements = ReadonlyArray<readonly [written: string, by: string]>

/** The text of a template; `file` is its path in templates/. */
export function readTemplate(file: string, replacements: Replacements): string {
  const text = readFileSync(join(ownPackage.folder, 'templates', file), 'utf8')
  return replacements.reduce((made, [written, by]) => made.replaceAll(written, () => by), text)
}

const jsonText = (value: object): string => `${JSON.stringify(value, null, 2)}\n`

function versionOf(name: string): string {
  const { dependencies, devDependencies } = ownPackage
  return dependencies[name] ?? devDependencies[name] ?? '*'
}

const versionsOf = (...names: string[]): Record<string, string> =>
  Object.fromEntries(names.map(name => [name, versionOf(name)]))

/** npm takes it as it is; the test runner finds the files, and tsx lets it read TypeScript. */
const TEST_SCRIPT = 'node --import tsx --test test/*.test.ts'

const OPTIONAL = ['@modelcontextprotocol/client', 'pino-pretty'] as const
const OF_PROTECTED = ['oidc-provider'] as const

const manifestOf = ({ name, isProtected, store }: Choices): object => ({
  name,
  version: '0.1.0',
  private: true,
  type: 'module',
  engines: { node: nodeFor(store) },
  scripts: { dev: 'mcp-host dev', start: 'mcp-host start', check: 'tsc && mcp-host check', test: TEST_SCRIPT },
  dependencies: { ...versionsOf(...packagesFor(store)), 'mcp-host': `^${ownPackage.version}` },
  devDependencies: versionsOf(
    ...[...OPTIONAL, ...(isProtected ? OF_PROTECTED : []), '@types/node', 'tsx', 'typescript'].sort(),
  ),
})

/** Strict, for Node, and nothing is written: tsx runs the sources as they are. */
const COMPILER_OPTIONS = {
  target: 'es2023',
  lib: ['es2023', 'esnext.disposable'],
  types: ['node'],
  module: 'nodenext',
  strict: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  skipLibCheck: true,
} as const

const TSCONFIG = {
  compilerOptions: { ...COMPILER_OPTIONS, allowImportingTsExtensions: true, noEmit: true },
  include: ['**/*.ts'],
}

export function projectFiles(choices: Choices): NewFiles {
  const { name, format, isProtected, store } = choices
  const config = `mcp.config.${format}`
  const replaced = [...replacementsFor(store, format), ['my-server', withoutScope(name)], ['CONFIG', config]] as const
  const common = (file: string) => readTemplate(`project/${file}`, replaced)
  const own = (file: string) => readTemplate(`${isProtected ? 'protected' : 'open'}/${file}`, replaced)
  const serverTest = own('test/server.test.ts')
  return new Map([
    [config, own(config)],
    ['tools/days_between.ts', common('tools/days_between.ts')],
    ['tools/server_status.ts', common('tools/server_status.ts')],
    ['test/tools.test.ts', common('test/tools.test.ts')],
    ['test/server.test.ts', format === 'ts' ? serverTest : withConfigFile(serverTest, config)],
    ['package.json', jsonText(manifestOf(choices))],
    ['tsconfig.json', jsonText(TSCONFIG)],
    ['.env.example', common('env.example')],
    ['.gitignore', common('gitignore')],
    ['README.md', own('README.md')],
  ])
}

/** A config that cannot be imported is named. */
const withConfigFile = (test: string, config: string): string =>
  test.replace("import config from '../mcp.config.ts'", `\nconst config = '${config}'`)

const pluginManifest = (name: string): object => ({
  name,
  version: '0.1.0',
  description: 'A plugin for mcp-host: says in the log who calls which tool.',
  keywords: ['mcp', 'model-context-protocol', 'mcp-host', 'mcp-host-plugin'],
  type: 'module',
  engines: { node: '>=20.19' },
  exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' }, './package.json': './package.json' },
  files: ['dist'],
  scripts: { build: 'tsc -p tsconfig.build.json', check: 'tsc', test: TEST_SCRIPT, prepack: 'npm run build' },
  // One copy for the host and all its plugins: the project that installs this one has it.
  peerDependencies: { 'mcp-host': `^${ownPackage.version}` },
  devDependencies: {
    'mcp-host': `^${ownPackage.version}`,
    ...versionsOf('@modelcontextprotocol/client', '@types/node', 'tsx', 'typescript'),
  },
})

const PLUGIN_TSCONFIG = {
  compilerOptions: { ...COMPILER_OPTIONS, rewriteRelativeImportExtensions: true, noEmit: true },
  include: ['src', 'test'],
}

const BUILD = {
  extends: './tsconfig.json',
  compilerOptions: { noEmit: false, declaration: true, rootDir: 'src', outDir: 'dist' },
  include: ['src'],
}

/** `audit` of `mcp-host-audit`, `@acme/mcp-host-audit` and `mcp-host-plugin-audit`. */
const shortName = (name: string): string => withoutScope(name).replace(/^(?:mcp-host-)?(?:plugin-)?(?=.)/, '')

export function pluginFiles({ name }: Choices): NewFiles {
  const short = shortName(name)
  const identifier = toIdentifier(short, 'plugin')
  const replaced = [
    ['mcp-host-example', name],
    ['ExampleName', capitalize(identifier)],
    ['exampleName', identifier],
    ['example_name', short],
    ['./plugin.ts', '../src/index.ts'],
  ] as const
  return new Map([
    ['src/index.ts', readTemplate('add/plugin.ts', replaced)],
    ['test/index.test.ts', readTemplate('add/plugin.test.ts', replaced)],
    ['package.json', jsonText(pluginManifest(name))],
    ['tsconfig.json', jsonText(PLUGIN_TSCONFIG)],
    ['tsconfig.build.json', jsonText(BUILD)],
    ['.gitignore', 'node_modules/\ndist/\n'],
    ['README.md', readTemplate('plugin/README.md', replaced)],
  ])
}
