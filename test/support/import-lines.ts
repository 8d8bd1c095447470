// What a source file imports, read from its text, and whether it may: for test/architecture.test.ts.
// The formatter puts every static import at the start of a line, which is what this relies on.
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

/** The code of a text. */
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
export function packageOf(specifier: string): string | undefined {
  if (/^[.?]/.test(specifier) || specifier.startsWith('node:') || builtinModules.includes(specifier)) return undefined
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

/** The repository's file that a relative specifier names. */
export const fileOf = (from: string, specifier: string): string | undefined =>
  specifier.startsWith('.') ? join(dirname(from), specifier) : undefined

const CORE_PACKAGES: ReadonlySet<string> = new Set([
  '@koa/router',
  'ajv',
  'ajv-formats',
  'cosmiconfig',
  'fastest-levenshtein',
  'import-meta-resolve',
  'koa',
  'koa-body',
  'koa-compose',
  'lru-cache',
  'koa-mount',
  'pino',
  'proxy-addr',
  'tinyglobby',
  'tsx',
  'yaml',
])

const isIn = (folder: string, file: string) => file.startsWith(`${folder}/`)

function mayCoreImport(from: string, { specifier }: Import): boolean {
  const name = packageOf(specifier)
  if (name !== undefined) return CORE_PACKAGES.has(name)
  const file = fileOf(from, specifier)
  if (file === undefined || isIn('core', file)) return true
  return from === 'core/create-host.ts' && ['plugins/index.ts', 'client/node/guarded-fetch.ts'].includes(file)
}

const REDIS_STORES = [
  'change-bus-redis',
  'session-store-redis',
  'event-store-redis',
  'grant-store-redis',
  'task-store-redis',
]

/** Folders of `plugins/` that are no plugins but what several share, and who shares it. */
export const FAMILIES: Readonly<Record<string, readonly string[]>> = {
  'families/redis': [...REDIS_STORES, 'cluster-redis', 'rate-limit'],
  'families/address': ['auth-bridge', 'audit', 'metrics', 'rate-limit'],
  'families/issuer-keys': ['auth-jwt', 'auth-bridge'],
  'families/oidc-provider': ['dev-auth-server', 'auth-bridge'],
  'families/other-names': ['skills', 'tool-policy'],
  'families/own-file': ['access-log', 'audit', 'store-sqlite'],
  'families/per-request': ['transport-streamable', 'transport-stdio'],
  'families/secrets': ['session-store-redis', 'grant-store-redis', 'task-store-redis', 'store-sqlite'],
  'families/session-outage': ['session-store-redis', 'store-sqlite'],
  'families/stream-bounds': ['event-store-redis', 'store-sqlite'],
}

/** The plugins that are made of others of their family. */
const MADE_OF: Readonly<Record<string, readonly string[]>> = { 'cluster-redis': REDIS_STORES }

/** The folder of a plugin or of a family, without `plugins/`. */
const homeOf = (file: string) => /^plugins\/((?:families\/)?[^/]+)\//.exec(file)?.[1] ?? ''

/** What plugins see of core: the package's entries, but for those of embedders and of tests. */
const SURFACE = ['core/index.ts', 'core/auth.ts', 'core/transport.ts']

/** A plugin: core's surface, its own files, its family's entry, packages. The table: the entries of all. */
function mayPluginImport(from: string, { specifier }: Import): boolean {
  const file = fileOf(from, specifier)
  if (file === undefined) return packageOf(specifier) !== 'mcp-host'
  if (from === 'plugins/index.ts') return file === `plugins/${homeOf(file)}/index.ts`
  const home = homeOf(from)
  const families = Object.keys(FAMILIES).filter(family => FAMILIES[family]?.includes(home))
  const entries = [...families, ...(MADE_OF[home] ?? [])].map(folder => `plugins/${folder}/index.ts`)
  return SURFACE.includes(file) || isIn(`plugins/${home}`, file) || entries.includes(file)
}

function mayClientImport(from: string, { specifier }: Import): boolean {
  const file = fileOf(from, specifier)
  if (file !== undefined) return isIn('client', file) && (isIn('client/node', from) || !isIn('client/node', file))
  const name = packageOf(specifier)
  return name === undefined ? isIn('client/node', from) : name !== 'mcp-host'
}

function mayExampleImport(from: string, { specifier }: Import): boolean {
  const file = fileOf(from, specifier)
  return file === undefined || isIn('examples', file)
}

function mayCliImport(from: string, { specifier }: Import): boolean {
  const file = fileOf(from, specifier)
  return file === undefined || ['cli', 'core', 'plugins', 'client'].some(folder => isIn(folder, file))
}

const RULES: Readonly<Record<string, (from: string, imported: Import) => boolean>> = {
  core: mayCoreImport,
  plugins: mayPluginImport,
  client: mayClientImport,
  cli: mayCliImport,
  examples: mayExampleImport,
  'mcp.config.example.ts': mayExampleImport,
}

/** The only files whose `import()` computes its module. */
const LOADERS = ['core/config/import-module.ts', 'core/config/module-graph.ts', 'core/threads/start-thread.ts']

/** The verbs that call any server speak to it with the official client, and so do tests with `mcp-host/testing`. */
const isOfficialClient = (from: string, name: string | undefined) =>
  (isIn('cli/client', from) || isIn('core/testing', from)) && name === '@modelcontextprotocol/client'

/** Whether a file of the repository may import this. The other official SDKs are for tests and benchmarks alone. */
export function mayImport(from: string, imported: Import): boolean {
  if (imported.specifier === '?') return LOADERS.includes(from)
  const name = packageOf(imported.specifier)
  if (name?.startsWith('@modelcontextprotocol/')) return isOfficialClient(from, name)
  const rule = RULES[from.split('/')[0] ?? '']
  if (!rule) throw new Error(`no rule for ${from}`)
  return rule(from, imported)
}
