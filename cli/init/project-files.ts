// The choices of `mcp-host init`, and the files of a new server or plugin.
import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { ownPackage } from '../version.ts'
import type { NewFiles } from './write-new.ts'

export type ConfigFormat = 'ts' | 'yaml'

/** `file`: one machine, with restarts and workers. `redis`: several machines. `memory`: until the process ends. */
export type Store = 'file' | 'redis' | 'memory'

export interface Choices {
  readonly folder: string
  readonly name: string
  readonly format: ConfigFormat
  readonly isProtected: boolean
  readonly store: Store
  readonly isPlugin: boolean
}

export type Given = Partial<Choices>

export const DEFAULT_NAME = 'my-server'
export const DEFAULT_PLUGIN_NAME = 'mcp-host-example'

const MAX_LENGTH = 214
const PACKAGE_NAME = /^(?:@[a-z0-9-][a-z0-9-._]*\/)?[a-z0-9][a-z0-9-._]*$/

/** npm cannot install a package into a project of the same name. */
const DEPENDENCIES: ReadonlySet<string> = new Set(['mcp-host', 'tsx', 'typescript', 'node_modules'])

const isPackageName = (text: string): boolean =>
  text.length <= MAX_LENGTH && PACKAGE_NAME.test(text) && !DEPENDENCIES.has(text)

/** Converts text to a valid npm package name: `My Server!` becomes `my-server`. Falls back to `otherwise`. */
export function toPackageName(text: string, fallback: string): string {
  if (isPackageName(text)) return text
  const result = text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9._]+/g, '-')
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '')
    .slice(0, MAX_LENGTH)
  if (isPackageName(result)) return result
  return result === '' ? fallback : `${result}-server`
}

const withoutScope = (name: string): string => name.replace(/^@[^/]*\//, '')

const RESERVED: ReadonlySet<string> = new Set(
  (
    'arguments await break case catch class const continue debugger default delete do else enum eval export extends false ' +
    'finally for function if implements import in instanceof interface let new null package private protected public ' +
    'return static super switch this throw true try typeof undefined var void while with yield'
  ).split(' '),
)

/** Converts `get_weather` and `get-weather` to `getWeather`. Adds `kind` if the result is not a valid identifier. */
export function toIdentifier(name: string, kind: string): string {
  const [first = kind, ...rest] = name.split(/[^A-Za-z0-9]+/).filter(word => word !== '')
  const result = [`${first.charAt(0).toLowerCase()}${first.slice(1)}`, ...rest.map(capitalize)].join('')
  if (RESERVED.has(result)) return `${result}${capitalize(kind)}`
  return /^[0-9]/.test(result) ? `${kind}${result}` : result
}

export const capitalize = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`

/** `node:sqlite` requires Node 22.13. */
export const hasSqlite = (): boolean => isBuiltin('node:sqlite')

export const defaultStore = (): Store => (hasSqlite() ? 'file' : 'memory')

export function noteOnNode(store: Store, isChosen: boolean): string | undefined {
  if (hasSqlite() || (store === 'memory' && isChosen) || store === 'redis') return undefined
  const what = store === 'memory' ? 'Sessions are kept in memory. A file' : 'The session file'
  return `${what} requires Node.js 22.13 or later; this is ${process.versions.node}.\n`
}

const NOTES = {
  file: 'Signs session ids. The first start creates the file; MCP_HOST_SECRETS in the environment takes precedence.',
  redis:
    'Signs session ids. Several machines need the same MCP_HOST_SECRETS in the environment, which takes precedence.',
} as const

const SECRETS: Readonly<Record<ConfigFormat, string>> = {
  ts: "  secrets: { file: './state/secrets' },\n\n",
  yaml: 'secrets: { file: ./state/secrets }\n\n',
}

const REDIS: Readonly<Record<ConfigFormat, string>> = {
  ts: "  redis: { url: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379' },\n\n",
  yaml: "redis: { url: 'redis://127.0.0.1:6379' }\n\n",
}

const SQLITE_NOTE = 'keeps sessions across restarts and shares them with `--workers`'
const CLUSTER_NOTE = 'keeps sessions across restarts and shares them between machines'

const PLUGINS: Readonly<Record<'file' | 'redis', Readonly<Record<ConfigFormat, string>>>> = {
  file: {
    ts: `    'store-sqlite': { file: './state/mcp-host.db' }, // ${SQLITE_NOTE}\n`,
    yaml: `  store-sqlite: { file: ./state/mcp-host.db } # ${SQLITE_NOTE}\n`,
  },
  redis: {
    ts: `    'cluster-redis': {}, // ${CLUSTER_NOTE}\n`,
    yaml: `  cluster-redis: {} # ${CLUSTER_NOTE}\n`,
  },
}

/** Returns the parts of a config that depend on the store. Templates contain the parts for `file`. */
function partsFor(store: Store, format: ConfigFormat): readonly [setting: string, plugin: string] {
  if (store === 'memory') return ['', '']
  const note = `${format === 'ts' ? '  //' : '#'} ${NOTES[store]}\n`
  return [note + SECRETS[format] + (store === 'redis' ? REDIS[format] : ''), PLUGINS[store][format]]
}

const ENV_OF_FILE = '# Signs session ids. Default: a secret in ./state/secrets, which the first start creates.\n'
const ENV_OF_REDIS =
  '# Signs session ids: the same on every machine. Without it, each machine creates its own file ./state/secrets, and the\n' +
  '# second one does not start.\n'
const ENV_OF_MEMORY = '# Signs session ids. Default: a temporary secret for each process.\n'

const OTHERS: Readonly<Record<Exclude<Store, 'file'>, Replacements>> = {
  redis: [
    [ENV_OF_FILE, ENV_OF_REDIS],
    ['sessions are kept in `state/`', 'sessions are kept in Redis, at the URL in [CONFIG](CONFIG)'],
    ['testHost(config)', "testHost(config, { plugins: { 'cluster-redis': false } })"],
  ],
  memory: [
    [ENV_OF_FILE, ENV_OF_MEMORY],
    ['sessions are kept in `state/`', 'sessions end with the process'],
  ],
}

const REDIS_URL = '\n# Where sessions are kept. Default: redis://127.0.0.1:6379\n# REDIS_URL=\n'

function replacementsFor(store: Store, format: ConfigFormat): Replacements {
  if (store === 'file') return []
  const url = store === 'redis' && format === 'ts' ? REDIS_URL : ''
  const [from, to] = [partsFor('file', format), partsFor(store, format)]
  const config = from.map((part, index) => [part, to[index] ?? ''] as const)
  return [...config, ...OTHERS[store], ['# MCP_HOST_SECRETS=\n', `# MCP_HOST_SECRETS=\n${url}`]]
}

export type PackageCommands = ReturnType<typeof packageCommandsOf>

const EXECUTE: Readonly<Record<string, string>> = { pnpm: 'pnpm exec', yarn: 'yarn', bun: 'bunx' }

/** `agent` is `npm_config_user_agent`, such as `pnpm/10.1.0 npm/? node/v24.0.0 linux x64`. Default: npm. */
export function packageCommandsOf(agent = '') {
  const [manager = ''] = agent.split('/', 1)
  const name = Object.hasOwn(EXECUTE, manager) ? manager : 'npm'
  const test = name === 'bun' ? 'bun run test' : `${name} test`
  return { install: `${name} install`, test, run: `${name} run`, execute: EXECUTE[name] ?? 'npx' }
}

type Replacements = ReadonlyArray<readonly [written: string, by: string]>

export function readTemplate(file: string, replacements: Replacements): string {
  const text = readFileSync(join(ownPackage.folder, 'templates', file), 'utf8')
  return replacements.reduce((result, [written, by]) => result.replaceAll(written, () => by), text)
}

const jsonText = (value: object): string => `${JSON.stringify(value, null, 2)}\n`

function versionOf(name: string): string {
  const { dependencies, devDependencies } = ownPackage
  return dependencies[name] ?? devDependencies[name] ?? '*'
}

const versionsOf = (...names: string[]): Record<string, string> =>
  Object.fromEntries(names.map(name => [name, versionOf(name)]))

/** The shell does not expand the glob; the test runner does. tsx enables TypeScript. */
const TEST_SCRIPT = 'node --import tsx --test test/*.test.ts'

const manifestOf = ({ name, isProtected, store }: Choices): object => ({
  name,
  version: '0.1.0',
  private: true,
  type: 'module',
  engines: { node: store === 'file' ? '>=22.13' : '>=20.19' },
  scripts: { dev: 'mcp-host dev', start: 'mcp-host start', check: 'tsc && mcp-host check', test: TEST_SCRIPT },
  dependencies: { ...(store === 'redis' && versionsOf('@redis/client')), 'mcp-host': `^${ownPackage.version}` },
  devDependencies: versionsOf(
    '@modelcontextprotocol/client',
    '@types/node',
    ...(isProtected ? ['oidc-provider'] : []),
    ...['pino-pretty', 'tsx', 'typescript'],
  ),
})

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

const withConfigFile = (test: string, config: string): string =>
  test.replace("import config from '../mcp.config.ts'", `\nconst config = '${config}'`)

const pluginManifest = (name: string): object => ({
  name,
  version: '0.1.0',
  description: 'A plugin for mcp-host: logs the caller of each tool call.',
  keywords: ['mcp', 'model-context-protocol', 'mcp-host', 'mcp-host-plugin'],
  type: 'module',
  engines: { node: '>=20.19' },
  exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' }, './package.json': './package.json' },
  files: ['dist'],
  scripts: { build: 'tsc -p tsconfig.build.json', check: 'tsc', test: TEST_SCRIPT, prepack: 'npm run build' },
  // A peer dependency lets host and plugins share one copy.
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

export function pluginFiles({ name }: Choices): NewFiles {
  const short = withoutScope(name).replace(/^(?:mcp-host-)?(?:plugin-)?(?=.)/, '')
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
