// Finds the imports of a source file and decides whether they are allowed: for test/architecture.test.ts.
// It relies on the formatter, which puts every static import at the start of a line.
import { builtinModules } from 'node:module'
import { dirname, join } from 'node:path/posix'

export interface Import {
  /** As written. */
  readonly specifier: string
  /** Erased by the compiler: `import type`, `export type`. */
  readonly typeOnly: boolean
}

const COMMENT = /^\s*\/\/.*$|^\s*\/\*[\s\S]*?\*\/|\s\/\/ .*$/gm
const FROM =
  /^(?:import\s+(type\s)?[^'"]*?from|export\s+(type\s)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s+from)\s*'([^']+)'/gm
const BARE = /^import\s+'([^']+)'/gm
const DYNAMIC = /\bimport\(\s*(?:'([^']+)'|([^)]*))/g

/** The code of a text, without comments. */
export const withoutComments = (source: string): string => source.replace(COMMENT, '')

/** Every import, re-export and `import()` of a text; one whose module is computed has the specifier `?`. */
export function readImports(source: string): Import[] {
  const code = withoutComments(source)
  return [
    ...[...code.matchAll(FROM)].map(([, imported, exported, specifier = '']) => ({
      specifier,
      typeOnly: (imported ?? exported) !== undefined,
    })),
    ...[...code.matchAll(BARE)].map(([, specifier = '']) => ({ specifier, typeOnly: false })),
    ...[...code.matchAll(DYNAMIC)].map(([, specifier = '?']) => ({ specifier, typeOnly: false })),
  ]
}

/** `@koa/router` of `@koa/router/types`; undefined for files and for Node's own modules. */
export function packageName(specifier: string): string | undefined {
  if (/^[.?]/.test(specifier) || specifier.startsWith('node:') || builtinModules.includes(specifier)) return undefined
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

/** The repository file that a relative specifier names. */
export const resolveImport = (from: string, specifier: string): string | undefined =>
  specifier.startsWith('.') ? join(dirname(from), specifier) : undefined

const CORE_PACKAGES: ReadonlySet<string> = new Set([
  '@babel/parser',
  '@babel/types',
  '@koa/router',
  'ajv',
  'ajv-formats',
  'cosmiconfig',
  'fastest-levenshtein',
  'import-meta-resolve',
  'jsonc-parser',
  'koa',
  'koa-body',
  'koa-compose',
  'lru-cache',
  'koa-mount',
  'pino',
  'proxy-addr',
  'tinyglobby',
  'tsx',
  'undici',
  'yaml',
])

const isIn = (folder: string, file: string) => file.startsWith(`${folder}/`)

/** What the composition root passes to plugins as services. */
const COMPOSED = ['plugins/index.ts', 'client/node/fetch.ts', 'client/token-client.ts', 'client/login-client.ts']

function mayCoreImport(from: string, { specifier, typeOnly }: Import): boolean {
  const name = packageName(specifier)
  if (name !== undefined) return CORE_PACKAGES.has(name)
  const file = resolveImport(from, specifier)
  if (file === undefined || isIn('core', file)) return true
  if (!COMPOSED.includes(file)) return false
  return from === 'core/create-host.ts' || (from === 'core/internal-host.ts' && typeOnly)
}

/** Folders of `plugins/` with code that plugins share, and the plugins that share it. */
export const FAMILIES: Readonly<Record<string, readonly string[]>> = {
  'families/redis': ['cluster-redis', 'rate-limit'],
  'families/dpop': ['auth-jwt', 'auth-introspection'],
  'families/credentials': ['auth-bridge', 'console', 'openapi', 'upstream'],
  'families/grant-store': ['auth-bridge', 'cluster-redis', 'families/credentials', 'families/dpop'],
  'families/canonical-json': ['apps', 'upstream'],
  'families/texts': ['openapi', 'upstream'],
  'families/upstream-calls': ['console', 'openapi', 'upstream'],
  'families/issuer-keys': ['auth-jwt', 'auth-introspection', 'auth-bridge'],
  'families/operator-actions': ['audit', 'console'],
  'families/plugin-files': ['access-log', 'audit', 'store-sqlite'],
  'families/separate-port': ['console', 'health', 'metrics'],
  'families/pages': ['auth-bridge', 'transport-streamable'],
  'families/per-request': ['transport-streamable', 'transport-stdio'],
  'families/task-store': ['tasks', 'cluster-redis', 'console'],
  'families/stores': ['cluster-redis', 'store-sqlite', 'store-postgres', 'families/redis'],
}

/** The folder of a plugin or family, without `plugins/`. */
const homeOf = (file: string) => /^plugins\/((?:families\/)?[^/]+)\//.exec(file)?.[1] ?? ''

/** What built-in plugins may import from core: the package's entries for tools, plugins and stores, and three internal files. */
const SURFACE = ['index', 'plugin', 'store', 'internal', 'auth', 'transport'].map(name => `core/${name}.ts`)

/** The entry of the MCP client engine, for plugins. */
const REMOTE = 'remote/index.ts'

/**
 * A plugin can import core's entries, the client engine, its own files, its family's entry and packages. The table of plugins
 * imports all entries.
 */
function mayPluginImport(from: string, { specifier }: Import): boolean {
  const file = resolveImport(from, specifier)
  if (file === undefined) return packageName(specifier) !== 'mcp-host'
  if (from === 'plugins/index.ts' && !['core/index.ts', 'core/plugin.ts'].includes(file)) {
    // The declarations of the entry of families/redis need @redis/client.
    return [`plugins/${homeOf(file)}/index.ts`, 'plugins/families/redis/section.ts'].includes(file)
  }
  const home = homeOf(from)
  const families = Object.keys(FAMILIES).filter(family => FAMILIES[family]?.includes(home))
  const entries = families.map(folder => `plugins/${folder}/index.ts`)
  return [...SURFACE, REMOTE].includes(file) || isIn(`plugins/${home}`, file) || entries.includes(file)
}

function mayClientImport(from: string, { specifier }: Import): boolean {
  const file = resolveImport(from, specifier)
  if (file !== undefined) return isIn('client', file) && (isIn('client/node', from) || !isIn('client/node', file))
  const name = packageName(specifier)
  return name === undefined ? isIn('client/node', from) : name !== 'mcp-host'
}

/** The MCP client engine can import what it shares with the host: messages, types, versions and headers of the protocol. */
function mayRemoteImport(from: string, { specifier }: Import): boolean {
  const file = resolveImport(from, specifier)
  if (file !== undefined) return isIn('remote', file) || isIn('core/mcp/wire', file)
  const name = packageName(specifier)
  return name === undefined || name === 'undici'
}

function mayExampleImport(from: string, { specifier }: Import): boolean {
  const file = resolveImport(from, specifier)
  return file === undefined || isIn('examples', file)
}

function mayCliImport(from: string, { specifier }: Import): boolean {
  const file = resolveImport(from, specifier)
  return file === undefined || ['cli', 'core', 'plugins', 'client', 'remote'].some(folder => isIn(folder, file))
}

const RULES: Readonly<Record<string, (from: string, imported: Import) => boolean>> = {
  core: mayCoreImport,
  plugins: mayPluginImport,
  client: mayClientImport,
  remote: mayRemoteImport,
  cli: mayCliImport,
  examples: mayExampleImport,
  'mcp.config.example.ts': mayExampleImport,
}

/** The only files with a computed `import()`. */
const LOADERS = ['core/config/import-module.ts', 'core/config/module-graph.ts', 'core/threads/start-thread.ts']

/** Tests with `mcp-host/testing` use the official client. One example shows it with tasks. */
const isOfficialClient = (from: string, name: string | undefined) =>
  from === 'examples/tasks/official-client.ts' ||
  (isIn('core/testing', from) && name === '@modelcontextprotocol/client')

/** Whether a repository file may import this. Only tests, benchmarks and that example use the other official SDKs. */
export function mayImport(from: string, imported: Import): boolean {
  if (imported.specifier === '?') return LOADERS.includes(from)
  const name = packageName(imported.specifier)
  if (name?.startsWith('@modelcontextprotocol/')) return isOfficialClient(from, name)
  const rule = RULES[from.split('/')[0] ?? '']
  if (!rule) throw new Error(`no rule for ${from}`)
  return rule(from, imported)
}
