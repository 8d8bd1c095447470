// Connects the plugin `console` to this program: surface and lock, explanations, sources of the config, and reloads.
import { isPlain } from '../core/config/define-config.ts'
import type { LoadedConfig } from '../core/config/load-config.ts'
import { shortName } from '../core/config/problems.ts'
import { lineOf } from '../core/config/source-locations.ts'
import { schemasAlong } from '../core/config/walk-schema.ts'
import type { Host } from '../core/host.ts'
import { errorText, type Path } from '../core/http/errors.ts'
import { isConfiguredPlugin } from '../core/kernel/define-plugin.ts'
import { isObject } from '../core/plugin.ts'
import { isTls, RELOADABLE, RELOADABLE_OF_ROUTES } from '../core/reload.ts'
import { toUser } from '../plugins/console/access.ts'
import type { ConfigKey, LastReload, LockChange, LockState, SurfaceItem } from '../plugins/console/api.ts'
import type { ConsoleProgram } from '../plugins/console/program.ts'
import { type CommandContext, selfCommand } from './context.ts'
import type { Change } from './lock/compare-surfaces.ts'
import type { Lock, Surface, SurfaceList } from './lock/surface.ts'
import type { Reloaded, ServeSettings } from './serve.ts'

/** The config of `dev`: the console is on, on a free port, unless the config contains it. */
export function withConsole(loaded: LoadedConfig): LoadedConfig {
  const { config } = loaded
  if (!isObject(config)) return loaded
  const { plugins = {} } = config
  if (!isObject(plugins) || plugins['console'] !== undefined) return loaded
  return { ...loaded, config: { ...config, plugins: { ...plugins, console: { port: 0 } } } }
}

interface Version {
  /** As in its file. */
  readonly read: LoadedConfig
  /** With the settings of the command line. */
  readonly adapted: LoadedConfig
}

const unwrapPlugin = (value: unknown) => (isConfiguredPlugin(value) ? value.options : value)

/** True if the config sets the value, or a short form in place of one of its parents. */
function isWritten(config: unknown, path: Path): boolean {
  let value = config
  for (const key of path) {
    const parent = unwrapPlugin(value)
    if (parent === undefined || !isPlain(parent)) return parent !== undefined
    value = Object.hasOwn(parent, key) ? Reflect.get(parent, key) : undefined
  }
  return value !== undefined
}

function pathsIn(value: unknown, path: Path = []): Path[] {
  const parent = unwrapPlugin(value)
  if (!isPlain(parent) || (path[0] === 'toolsets' && path.length > 1)) return [path]
  const nested = Object.entries(parent).flatMap(([key, nestedValue]) => pathsIn(nestedValue, [...path, key]))
  return path.length === 0 ? nested : [path, ...nested]
}

/** True if only a restart applies a change of this value. A plugin can still refuse to apply a certain change. */
function needsRestart(path: Path, onReload: Host['served']['onReload']): boolean {
  const [first, , third] = path
  if (first === 'toolsets' || RELOADABLE.has(String(first)) || isTls(path)) return false
  if (first === 'routes' && third !== 'plugins') return !RELOADABLE_OF_ROUTES.has(String(third))
  return !onReload.some(({ instance: { at } }) => at.every((key, index) => key === path[index]))
}

const descriptionAt = (schema: object, path: Path): string | undefined =>
  schemasAlong(schema, path)
    .at(-1)
    ?.flatMap(({ description }) => (typeof description === 'string' ? description : []))[0]

const KINDS = {
  tools: 'tools',
  resources: 'resources',
  resourceTemplates: 'resources',
  prompts: 'prompts',
} as const satisfies Record<SurfaceList, SurfaceItem['kind']>

const LISTS = Object.keys(KINDS) as SurfaceList[]

const itemsOf = ({ routes }: Surface): Array<Omit<SurfaceItem, 'limits'>> =>
  Object.entries(routes).flatMap(([path, route]) =>
    LISTS.flatMap(list =>
      Object.entries(route[list]).map(([name, { shown, needs, unlisted, task }]) => {
        const { title, description } = shown
        return {
          path,
          route: route.route,
          kind: KINDS[list],
          template: list === 'resourceTemplates',
          name,
          ...(typeof title === 'string' && { title }),
          ...(typeof description === 'string' && { description }),
          shown,
          needs,
          listed: unlisted !== true,
          ...(task !== undefined && { task }),
        }
      }),
    ),
  )

const KIND_WORDS: Readonly<Record<string, SurfaceItem['kind']>> = {
  tool: 'tools',
  resource: 'resources',
  'resource template': 'resources',
  prompt: 'prompts',
}

/** Characters of the values of all changes. */
const MAX_VALUES = 500_000

async function describeChanges(changes: readonly Change[]): Promise<LockChange[]> {
  const { valueLines } = await import('./lock/describe-changes.ts')
  let left = MAX_VALUES
  return changes.flatMap(change => {
    const diff = valueLines(change).join('\n')
    left -= diff.length * Math.max(1, change.at.length)
    return describeChange(change, left < 0 && diff !== '' ? 'Too many values. Run mcp-host diff to print them.' : diff)
  })
}

function describeChange({ at, of, impact, what }: Change, diff: string): LockChange[] {
  const kind = of && KIND_WORDS[of.kind]
  const item = of ? [`${of.kind} ${of.name}`] : []
  return (at.length === 0 ? [undefined] : at).map(path => ({
    at: [...(path === undefined ? [] : [path]), ...item].join('  '),
    impact,
    text: what,
    ...(diff !== '' && { diff }),
    ...(path !== undefined && { path }),
    ...(of && kind && { kind, name: of.name }),
  }))
}

/** The surface of a config, read without connections to upstream servers. */
interface Configured {
  readonly surface: Surface
  /** Names of upstream servers. */
  readonly servers: readonly string[]
}

function serversIn(config: object): string[] {
  const { plugins = {} } = config as { readonly plugins?: Readonly<Record<string, unknown>> }
  const options = unwrapPlugin(plugins['upstream'])
  return isObject(options) && isObject(options['servers']) ? Object.keys(options['servers']) : []
}

/** Maximum age of a surface, milliseconds: documents of other hosts can change. */
const MAX_AGE = 300_000

type ReadChanges = () => Promise<readonly Change[] | undefined>

async function readLockState(readChanges: ReadChanges, ofServers: () => readonly Change[]): Promise<LockState> {
  try {
    const found = await readChanges()
    const changes = await describeChanges([...(found ?? []), ...ofServers()])
    return { state: !found ? 'none' : changes.length === 0 ? 'same' : 'changed', changes }
  } catch (error) {
    return { state: 'unreadable', problem: errorText(error), changes: [] }
  }
}

const OPTION_OF = { tools: 'tool', resources: 'resource', prompts: 'prompt' } as const

function describeReload(reloaded: Reloaded): LastReload {
  const at = Date.now()
  if ('report' in reloaded) return { at, ok: reloaded.report.restart.length === 0, ...reloaded.report }
  return { at, ok: false, taken: [], restart: [], told: 0, problem: errorText(reloaded.error) }
}

export interface OperatorLink {
  /** Adds this program to the settings of a host. */
  connect(settings: ServeSettings): ServeSettings
  /** The console's URL with a new one-time token; undefined while the console is off. */
  createLoginUrl(): string | undefined
  noteReload(reloaded: Reloaded): void
  /** Set how to reload once the host serves. Resolves after `noteReload`, which a worker does not call. */
  reload: (() => Promise<void>) | undefined
}

/** `lock`: the lock file, unless it is next to the config. */
export function createOperatorLink(context: CommandContext, lock?: string): OperatorLink {
  const { cwd } = context
  let latestVersion: Version | undefined
  let served: Version | undefined
  let last: LastReload | undefined
  let createUrl: (() => string) | undefined
  /** A reload replaces this process, and applies all changes. */
  let isWorker = false
  let latest:
    | {
        readonly version: Version
        readonly accepted: string
        readonly until: number
        readonly read: Promise<Configured>
      }
    | undefined

  function readConfigured(version: Version, file: string, { upstreams = {} }: Lock): Promise<Configured> {
    const accepted = JSON.stringify(upstreams)
    const now = Date.now()
    if (latest?.version !== version || latest.accepted !== accepted || latest.until < now)
      latest = { version, accepted, until: now + MAX_AGE, read: readWithoutConnections(version, file) }
    return latest.read
  }

  /**
   * Reads the surface without connecting to upstream servers. `upstreamChanges` compares their current lists with the lock
   * file.
   */
  async function readWithoutConnections(version: Version, file: string): Promise<Configured> {
    const [{ hostOfConfig }, { readSurface }, { collectWarnings }] = await Promise.all([
      import('../core/create-host.ts'),
      import('./lock/read-surface.ts'),
      import('./check.ts'),
    ])
    const options = { purpose: 'inspect', lock: { file, isFrozen: false } } as const
    const host = await hostOfConfig(version.adapted, collectWarnings(cwd).log, options)
    try {
      return { surface: readSurface(host.served), servers: serversIn(host.served.services.offered.now) }
    } finally {
      await host.close({ grace: 0 })
    }
  }

  async function readChanges(version: Version): Promise<readonly Change[] | undefined> {
    const [{ findUnaccepted }, { compareSurfaces }, { readLockIfThere }, { lockFileOf }] = await Promise.all([
      import('./diff.ts'),
      import('./lock/compare-surfaces.ts'),
      import('./lock.ts'),
      import('./lock/lock-file.ts'),
    ])
    const file = lockFileOf(version.read.file, lock, cwd)
    const found = await readLockIfThere(file, context)
    if (!found) return undefined
    const { surface, servers } = await readConfigured(version, file, found)
    return [...compareSurfaces(found, surface), ...findUnaccepted(servers, found)]
  }

  async function describeKeys(host: Host, { read, adapted }: Version): Promise<Record<string, ConfigKey>> {
    const [{ writtenSchema }, { pluginsOf }, { builtInPlugins }] = await Promise.all([
      import('../core/config/written-schema.ts'),
      import('../core/create-host.ts'),
      import('../plugins/index.ts'),
    ])
    const schema = writtenSchema(pluginsOf(builtInPlugins))
    const describe = (path: Path): ConfigKey => {
      const line = isWritten(read.config, path) ? lineOf(read, path) : undefined
      const description = descriptionAt(schema, path)
      return {
        ...(line !== undefined && { source: `${shortName(read.file, cwd)}:${line}` }),
        ...(description !== undefined && { description }),
        isDefault: !isWritten(adapted.config, path),
        restart: !isWorker && needsRestart(path, host.served.onReload),
      }
    }
    const paths = pathsIn(host.served.services.offered.now)
    return Object.fromEntries(paths.map(path => [path.join('.'), describe(path)]))
  }

  const createProgram = (host: Host): ConsoleProgram => ({
    command: selfCommand(context),
    announce(createLoginUrl) {
      createUrl = createLoginUrl
      served = latestVersion
    },
    async readConnectClients() {
      const { CLIENTS } = await import('./connect/clients.ts')
      return Object.entries(CLIENTS).map(([id, { title }]) => ({ id, title }))
    },
    async readSurface(servers) {
      const [{ readSurface }, { upstreamChanges }] = await Promise.all([
        import('./lock/read-surface.ts'),
        import('./diff.ts'),
      ])
      const lockState = await readLockState(
        async () => served && readChanges(served),
        () => servers.flatMap(upstreamChanges),
      )
      return { items: itemsOf(readSurface(host.served)), lock: lockState }
    },
    async explain({ path, caller, kind, name }) {
      const { explainAccess } = await import('./explain.ts')
      const { token, roles, scopes } = caller
      const isUser = token === undefined && (roles ?? scopes) !== undefined
      const item = kind === undefined || name === undefined ? {} : { [OPTION_OF[kind]]: name }
      return explainAccess(host, { route: path, ...item }, isUser ? { user: toUser(caller) } : { token })
    },
    async readConfig() {
      if (!served) return { keys: {} }
      return { file: served.read.file, keys: await describeKeys(host, served) }
    },
    async reload() {
      await operatorLink.reload?.()
      if (isWorker) return undefined
      return last ?? describeReload({ error: new Error('The host is starting or stopping.') })
    },
    lastReload: () => last,
  })

  const operatorLink: OperatorLink = {
    connect({ adapt, ...settings }) {
      isWorker = settings.processes !== undefined
      return {
        ...settings,
        adapt(read) {
          latestVersion = { read, adapted: adapt?.(read) ?? read }
          return latestVersion.adapted
        },
        program: createProgram,
      }
    },
    createLoginUrl: () => createUrl?.(),
    noteReload(reloaded) {
      last = describeReload(reloaded)
      if (last.ok) served = latestVersion
    },
    reload: undefined,
  }
  return operatorLink
}
