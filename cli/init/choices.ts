// What somebody who begins a project chooses: by flags, by answers at a terminal, or not at all.
import { isBuiltin } from 'node:module'
import type { Replacements } from './project-files.ts'

export type ConfigFormat = 'ts' | 'yaml'

/** `file`: on this machine, for a restart and for workers. `redis`: for several machines. `memory`: until the process ends. */
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

/** npm installs no package into one of the same name. */
const DEPENDENCIES: ReadonlySet<string> = new Set(['mcp-host', 'tsx', 'typescript', 'node_modules'])

const isPackageName = (text: string): boolean =>
  text.length <= MAX_LENGTH && PACKAGE_NAME.test(text) && !DEPENDENCIES.has(text)

/** The text where npm takes it as a name, else one that it takes: `My Server!` becomes `my-server`. */
export function toPackageName(text: string, otherwise: string): string {
  if (isPackageName(text)) return text
  const made = text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9._]+/g, '-')
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '')
    .slice(0, MAX_LENGTH)
  if (isPackageName(made)) return made
  return made === '' ? otherwise : `${made}-server`
}

export const withoutScope = (name: string): string => name.replace(/^@[^/]*\//, '')

const RESERVED: ReadonlySet<string> = new Set(
  (
    'arguments await break case catch class const continue debugger default delete do else enum eval export extends false ' +
    'finally for function if implements import in instanceof interface let new null package private protected public ' +
    'return static super switch this throw true try typeof undefined var void while with yield'
  ).split(' '),
)

/** `get_weather` and `get-weather` become `getWeather`; what is no name of a variable gets `kind` behind it or in front. */
export function toIdentifier(name: string, kind: string): string {
  const [first = kind, ...rest] = name.split(/[^A-Za-z0-9]+/).filter(word => word !== '')
  const words = [`${first.charAt(0).toLowerCase()}${first.slice(1)}`, ...rest.map(capitalize)]
  const made = words.join('')
  if (RESERVED.has(made)) return `${made}${capitalize(kind)}`
  return /^[0-9]/.test(made) ? `${kind}${made}` : made
}

export const capitalize = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`

/** SQLite, in which the file is, came with Node 22.13. */
export const hasSqlite = (): boolean => isBuiltin('node:sqlite')

export const defaultStore = (): Store => (hasSqlite() ? 'file' : 'memory')

export function noteOnNode(store: Store, isChosen: boolean): string | undefined {
  if (hasSqlite() || (store === 'memory' && isChosen) || store === 'redis') return undefined
  const later = 'Node 22.13 or later would keep them in a file'
  const here = `this is Node ${process.versions.node}`
  if (store === 'memory') return `Sessions are kept in memory, and end with the process: ${here}; ${later}.\n`
  return `Sessions are kept in a file, which takes Node 22.13 or later, and ${here}.\n`
}

export const nodeFor = (store: Store): string => (store === 'file' ? '>=22.13' : '>=20.19')

export const packagesFor = (store: Store): string[] => (store === 'redis' ? ['@redis/client'] : [])

/** Lines of a config: a setting with its comment and the empty line after it, and a plugin. */
interface Lines {
  readonly setting: string
  readonly plugin: string
}

/** As the templates have them. */
const OF_FILE: Readonly<Record<ConfigFormat, Lines>> = {
  ts: {
    setting: `\
  // Signs what clients bring back; the first start makes the file. MCP_HOST_SECRETS in the environment comes before it.
  secrets: { file: './state/secrets' },

`,
    plugin: `\
    'store-sqlite': { file: './state/mcp-host.db' }, // sessions outlive a restart, and \`--workers\` share them
`,
  },
  yaml: {
    setting: `\
# Signs what clients bring back; the first start makes the file. MCP_HOST_SECRETS in the environment comes before it.
secrets: { file: ./state/secrets }

`,
    plugin: `\
  store-sqlite: { file: ./state/mcp-host.db } # sessions outlive a restart, and \`--workers\` share them
`,
  },
}

/** Redis is for several machines, and a file that each made for itself would not be the same. */
const OF_REDIS: Readonly<Record<ConfigFormat, Lines>> = {
  ts: {
    setting: `\
  // Signs what clients bring back: several machines need the same MCP_HOST_SECRETS in the environment, which comes first.
  secrets: { file: './state/secrets' },

  redis: { url: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379' },

`,
    plugin: `\
    'cluster-redis': {}, // any machine serves any session, and sessions outlive a restart
`,
  },
  yaml: {
    setting: `\
# Signs what clients bring back: several machines need the same MCP_HOST_SECRETS in the environment, which comes first.
secrets: { file: ./state/secrets }

redis: { url: 'redis://127.0.0.1:6379' }

`,
    plugin: `\
  cluster-redis: {} # any machine serves any session, and sessions outlive a restart
`,
  },
}

const NONE: Lines = { setting: '', plugin: '' }

/** What takes the place of the templates' lines for a file. */
function configFor(store: Store, format: ConfigFormat): Replacements {
  if (store === 'file') return []
  const [from, to] = [OF_FILE[format], store === 'redis' ? OF_REDIS[format] : NONE]
  return [
    [from.setting, to.setting],
    [from.plugin, to.plugin],
  ]
}

const ENV_OF_FILE = '# Signs session ids, in the place of the file ./state/secrets, which the first start makes.\n'
const ENV_OF_REDIS =
  '# Signs session ids: the same on every machine. Without it each makes a file ./state/secrets of its own, and the second\n' +
  '# machine does not start.\n'
const ENV_OF_MEMORY =
  '# Signs session ids. Without it one is made at each start: sessions end there, and no second process can share them.\n'

const OTHERS: Readonly<Record<Exclude<Store, 'file'>, Replacements>> = {
  redis: [
    [ENV_OF_FILE, ENV_OF_REDIS],
    ['sessions are kept in `state/`', 'sessions are kept in Redis, at the address in [CONFIG](CONFIG)'],
    // Tests need no Redis.
    ['testHost(config)', "testHost(config, { plugins: { 'cluster-redis': false } })"],
  ],
  memory: [
    [ENV_OF_FILE, ENV_OF_MEMORY],
    ['sessions are kept in `state/`', 'sessions end with the process'],
  ],
}

const REDIS_URL = '\n# Where sessions are kept. Default: redis://127.0.0.1:6379\n# REDIS_URL=\n'

/** For every template: what stands there for the file, and what another store has there. */
export function replacementsFor(store: Store, format: ConfigFormat): Replacements {
  if (store === 'file') return []
  // A config in YAML reads no environment.
  const url = store === 'redis' && format === 'ts' ? REDIS_URL : ''
  return [...configFor(store, format), ...OTHERS[store], ['# MCP_HOST_SECRETS=\n', `# MCP_HOST_SECRETS=\n${url}`]]
}

export interface PackageCommands {
  readonly name: 'npm' | 'pnpm' | 'yarn' | 'bun'
  readonly install: string
  readonly test: string
  /** In front of the name of any other script. */
  readonly run: string
  /** In front of a program of node_modules. */
  readonly execute: string
}

const MANAGERS: ReadonlyMap<string, PackageCommands> = new Map(
  [
    { name: 'npm', install: 'npm install', test: 'npm test', run: 'npm run', execute: 'npx' },
    { name: 'pnpm', install: 'pnpm install', test: 'pnpm test', run: 'pnpm run', execute: 'pnpm exec' },
    { name: 'yarn', install: 'yarn install', test: 'yarn test', run: 'yarn run', execute: 'yarn' },
    { name: 'bun', install: 'bun install', test: 'bun run test', run: 'bun run', execute: 'bunx' },
  ].map(manager => [manager.name, manager as PackageCommands]),
)

/** `agent` is `npm_config_user_agent`, such as `pnpm/10.1.0 npm/? node/v24.0.0 linux x64`. Default: npm. */
export function packageCommandsOf(agent: string | undefined): PackageCommands {
  const found = MANAGERS.get(agent?.split('/', 1)[0] ?? '') ?? MANAGERS.get('npm')
  if (!found) throw new Error('npm is not among the package managers')
  return found
}
