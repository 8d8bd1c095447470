// Sets up plugins and collects their registrations, from which the pipeline is built.

import { systemClock, withTimeout } from '../http/clock.ts'
import { errorText, type Report, StartError, stopAtFirst } from '../http/errors.ts'
import type { Authenticator } from './authenticators.ts'
import type { SectionReader } from './define-plugin.ts'
import type { CrossOrigin, Endpoint, EndpointPlace, HostMiddleware, MountedApp, MountSettings } from './endpoint.ts'
import type { InternalKernelHost, PluginConfig } from './kernel-host.ts'
import type { Logger } from './log.ts'
import { HOOK_POINTS, type HookPoint } from './order.ts'
import type { PluginInstance } from './plugin-plan.ts'
import type { Route } from './route.ts'
import type { SlotTable } from './slots.ts'

/** A registration that applies to the routes of its plugin instance. */
export interface Note<Value> {
  readonly instance: PluginInstance
  readonly value: Value
}

export interface KernelNotes {
  readonly middleware: Record<HookPoint, Note<HostMiddleware>[]>
  readonly authenticators: Note<Authenticator>[]
  readonly cors: Note<(route: Route) => CrossOrigin | undefined>[]
  readonly endpoints: Note<{ path: string; endpoint: Endpoint } & EndpointPlace>[]
  readonly routeEndpoints: Note<{ suffix: string; define: (route: Route) => Endpoint | undefined }>[]
  readonly mounts: Note<{ path: string; app: MountedApp; settings: MountSettings }>[]
  readonly onReload: Note<(options: never) => (() => unknown) | undefined>[]
  readonly onReady: Note<() => void | Promise<void>>[]
  readonly starting: Array<() => void | Promise<void>>
  readonly closing: Array<() => void | Promise<void>>
  readonly preClose: Array<() => void>
  readonly shared: Map<symbol | object, unknown>
  readonly ready: Map<string, () => boolean | string | Promise<boolean | string>>
}

export const createNotes = (): KernelNotes => ({
  middleware: Object.fromEntries(HOOK_POINTS.map(point => [point, []])) as unknown as KernelNotes['middleware'],
  authenticators: [],
  cors: [],
  endpoints: [],
  routeEndpoints: [],
  mounts: [],
  onReload: [],
  onReady: [],
  starting: [],
  closing: [],
  preClose: [],
  shared: new Map(),
  ready: new Map(),
})

export const notesFor = <Value>(notes: readonly Note<Value>[], route: Route): Value[] =>
  notes.filter(({ instance }) => instance.routes.includes(route)).map(({ value }) => value)

interface HostFacts<Slots extends object>
  extends Pick<
    InternalKernelHost,
    'checkReadiness' | 'clock' | 'countTogether' | 'inEveryProcess' | 'log' | 'metrics' | 'ownKeys' | 'report'
  > {
  readonly config: Omit<PluginConfig, 'at' | 'node'>
  readonly slots: SlotTable<Slots>
  address(): string
  nodeOf(instance: PluginInstance): string
  section(name: string): unknown
}

/** Time limit of each `setup`, `onReady` and `onStart` task, milliseconds. */
const START_PATIENCE = 60_000
/** Time limit of each `onClose` task, milliseconds. */
export const CLOSE_PATIENCE = 5_000

export async function inTime(part: () => void | Promise<void>, limit: number, clock = systemClock): Promise<void> {
  const running = part()
  if (running === undefined) return
  await withTimeout(
    running,
    limit,
    () => {
      throw new Error(`it did not finish within ${limit / 1_000} s; something that it waits for does not come`)
    },
    clock,
  )
}

/** Runs a startup step of a plugin. Its errors get the plugin's name and, without `report`, stop startup. */
export async function startPlugin(
  instance: PluginInstance,
  part: () => void | Promise<void>,
  report = stopAtFirst,
): Promise<void> {
  try {
    await inTime(part, START_PATIENCE)
  } catch (cause) {
    const at = instance.at
    if (cause instanceof StartError) return report(cause.orAt(at))
    report(
      new StartError('MH1503', `plugins.${instance.name} failed to start: ${errorText(cause)}`, { cause }).orAt(at),
    )
  }
}

async function closePlugin(
  log: Logger,
  clock: InternalKernelHost['clock'],
  part: () => void | Promise<void>,
): Promise<void> {
  try {
    await inTime(part, CLOSE_PATIENCE, clock)
  } catch (err) {
    log.error({ code: 'MH1510', err }, 'failed to close')
  }
}

/** The plugin does not declare what it provides with `host.<member>`. */
export const lacksCapability = ({ name, at }: PluginInstance, member: string, capability: string): StartError =>
  new StartError('MH1522', `plugins.${name}: host.${member}() requires provides: ['${capability}'] in definePlugin`, {
    exitCode: 2,
  }).orAt(at)

export function createKernelHost<Slots extends object>(
  instance: PluginInstance,
  notes: KernelNotes,
  { log, slots, address, nodeOf, section, inEveryProcess, config, ...facts }: HostFacts<Slots>,
): Omit<InternalKernelHost<Slots>, 'services'> & SectionReader<object> {
  const note = <Value>(list: Note<Value>[], value: Value) => void list.push({ instance, value })
  const hook = (point: HookPoint) => (middleware: HostMiddleware) => note(notes.middleware[point], middleware)
  const own = log.child({ plugin: instance.name })
  return {
    ...facts,
    name: instance.name,
    config: {
      ...config,
      at: instance.at,
      node: nodeOf(instance),
      section(name: string) {
        if (Object.hasOwn(instance.plugin.sections ?? {}, name)) return section(name) as undefined
        const why = `it reads the section "${name}" of the config, but does not declare it in \`sections\``
        throw new StartError('MH1027', why, { at: instance.at })
      },
    },
    inEveryProcess: (name, answer) => inEveryProcess([...instance.at, name].join(' '), answer),
    log: own,
    routes: instance.routes,
    url: path => `${address()}${path}`,
    use: hook('use'),
    cors: policyOf => note(notes.cors, policyOf),
    onRequest: hook('onRequest'),
    authenticate: (middleware: HostMiddleware, { challenge, always }: Omit<Authenticator, 'middleware'> = {}) =>
      note(notes.authenticators, { middleware, challenge, always }),
    authorize: hook('authorize'),
    endpoint(path, endpoint, place) {
      if (typeof endpoint === 'function') note(notes.routeEndpoints, { suffix: path, define: endpoint })
      else note(notes.endpoints, { ...place, path, endpoint })
    },
    mount: (path, app, settings = {}) => note(notes.mounts, { path, app, settings }),
    provide: (slot, service) => slots.fill(slot, service, instance),
    share<Value>(key: symbol | object, create: () => Value, close?: (value: Value) => void | Promise<void>): Value {
      if (notes.shared.has(key)) return notes.shared.get(key) as Value
      const value = create()
      notes.shared.set(key, value)
      if (close) notes.closing.push(() => closePlugin(own, facts.clock, () => close(value)))
      return value
    },
    onReady: task => note(notes.onReady, task),
    onReload: prepare => note(notes.onReload, prepare),
    onStart: task => void notes.starting.push(() => startPlugin(instance, task)),
    onClose: task => void notes.closing.push(() => closePlugin(own, facts.clock, task)),
    preClose: task => void notes.preClose.push(task),
    readiness: (name, check) => void notes.ready.set(name, check),
  }
}

export async function setUpPlugins<Host>(
  instances: readonly PluginInstance[],
  hostFor: (instance: PluginInstance) => Host,
  report: Report,
): Promise<void> {
  for (const instance of instances) {
    const { plugin, options } = instance
    const setup = plugin.setup as (host: Host, options: object) => unknown
    await startPlugin(instance, async () => void (await setup.call(plugin, hostFor(instance), options)), report)
  }
}

export async function runTasks(tasks: readonly Note<() => void | Promise<void>>[], report: Report): Promise<void> {
  for (const { instance, value: task } of tasks) await startPlugin(instance, task, report)
}
