// Where a new server keeps sessions. The templates keep them in a file; what another store has in the place of those lines, or
// without, is here, so that each template stays a whole file that works.
import { isBuiltin } from 'node:module'
import type { ConfigFormat, Store } from './choices.ts'
import type { Replacements } from './templates.ts'

/** SQLite, in which the file is, came with Node 22.13. */
export const hasSqlite = (): boolean => isBuiltin('node:sqlite')

export const defaultStore = (): Store => (hasSqlite() ? 'file' : 'memory')

/** What this Node has to do with the choice; undefined where there is nothing to say. */
export function noteOnNode(store: Store, isChosen: boolean): string | undefined {
  if (hasSqlite() || (store === 'memory' && isChosen) || store === 'redis') return undefined
  const later = 'Node 22.13 or later would keep them in a file'
  const here = `this is Node ${process.versions.node}`
  if (store === 'memory') return `Sessions are kept in memory, and end with the process: ${here}; ${later}.\n`
  return `Sessions are kept in a file, which takes Node 22.13 or later, and ${here}.\n`
}

/** Of package.json. */
export const nodeFor = (store: Store): string => (store === 'file' ? '>=22.13' : '>=20.19')

/** What the plugin of a store needs beside mcp-host. */
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
