// Sets up plugins and collects their registrations, from which the pipeline is built.

import { systemClock, withTimeout } from '../http/clock.ts'
import { errorText, type Report, StartError, stopAtFirst } from '../http/errors.ts'
import type { Authenticator } from './authenticators.ts'
import type { SectionReader } from './define-plugin.ts'
import type { CrossOrigin, Endpoint, EndpointSettings, HostMiddleware, MountedApp, MountSettings } from './endpoint.ts'
import type { InternalKernelHost, PluginConfig } from './kernel-host.ts'
import type { Logger } from './log.ts'
import { HOOK_POINTS, type HookPoint } from './order.ts'
import type { PluginInstance } from './plugin-plan.ts'
import type { Route } from './route.ts'
import type { SlotTable } from './slots.ts'

export interface Registration<Value> {
  readonly instance: PluginInstance
  readonly value: Value
}

type Task = () => void | Promise<void>

export const createKernelRegistrations = () => ({
  middleware: Object.fromEntries(HOOK_POINTS.map(point => [point, []])) as unknown as Readonly<
    Record<HookPoint, Registration<HostMiddleware>[]>
  >,
  authenticators: [] as Registration<Authenticator>[],
  cors: [] as Registration<(route: Route) => CrossOrigin | undefined>[],
  endpoints: [] as Registration<{ path: string; endpoint: Endpoint } & EndpointSettings>[],
  routeEndpoints: [] as Registration<{ suffix: string; define: (route: Route) => Endpoint | undefined }>[],
  mounts: [] as Registration<{ path: string; app: MountedApp; settings: MountSettings }>[],
  onReload: [] as Registration<(options: never) => (() => unknown) | undefined>[],
  onReady: [] as Registration<Task>[],
  onStart: [] as Task[],
  onClose: [] as Task[],
  preClose: [] as Array<() => void>,
  shared: new Map<symbol | object, unknown>(),
  readiness: new Map<string, () => boolean | string | Promise<boolean | string>>(),
})

export type KernelRegistrations = ReturnType<typeof createKernelRegistrations>

export const registeredOn = <Value>(registrations: readonly Registration<Value>[], route: Route): Value[] =>
  registrations.filter(({ instance }) => instance.routes.includes(route)).map(({ value }) => value)

interface KernelHostParts<Slots extends object>
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
const START_TIMEOUT = 60_000
/** Time limit of each `onClose` task, milliseconds. */
export const CLOSE_TIMEOUT = 5_000

export async function runWithTimeout(task: Task, limit: number, clock = systemClock): Promise<void> {
  const running = task()
  if (running === undefined) return
  await withTimeout(
    running,
    limit,
    () => {
      throw new Error(`it did not finish within ${limit / 1_000} s; check what it awaits`)
    },
    clock,
  )
}

/** Runs a startup step of a plugin. Its errors get the plugin's name and, without `report`, stop startup. */
export async function runStartTask(instance: PluginInstance, task: Task, report = stopAtFirst): Promise<void> {
  try {
    await runWithTimeout(task, START_TIMEOUT)
  } catch (cause) {
    const at = instance.at
    if (cause instanceof StartError) return report(cause.locatedAt(at))
    const failure = new StartError('MH1503', `plugins.${instance.name} failed to start: ${errorText(cause)}`, { cause })
    report(failure.locatedAt(at))
  }
}

async function runCloseTask(log: Logger, clock: InternalKernelHost['clock'], task: Task): Promise<void> {
  try {
    await runWithTimeout(task, CLOSE_TIMEOUT, clock)
  } catch (err) {
    log.error({ code: 'MH1510', err }, 'failed to close')
  }
}

export const missingCapability = ({ name, at }: PluginInstance, member: string, capability: string): StartError =>
  new StartError('MH1522', `plugins.${name}: host.${member}() requires provides: ['${capability}'] in definePlugin`, {
    exitCode: 2,
  }).locatedAt(at)

export function createKernelHost<Slots extends object>(
  instance: PluginInstance,
  registrations: KernelRegistrations,
  { log, slots, address, nodeOf, section, inEveryProcess, config, ...shared }: KernelHostParts<Slots>,
): Omit<InternalKernelHost<Slots>, 'services'> & SectionReader<object> {
  const register = <Value>(list: Registration<Value>[], value: Value) => void list.push({ instance, value })
  const hook = (point: HookPoint) => (middleware: HostMiddleware) =>
    register(registrations.middleware[point], middleware)
  const pluginLog = log.child({ plugin: instance.name })
  return {
    ...shared,
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
    inEveryProcess: (name, respond) => inEveryProcess([...instance.at, name].join(' '), respond),
    log: pluginLog,
    routes: instance.routes,
    url: path => `${address()}${path}`,
    use: hook('use'),
    cors: policyOf => register(registrations.cors, policyOf),
    onRequest: hook('onRequest'),
    authenticate: (middleware: HostMiddleware, { challenge, always }: Omit<Authenticator, 'middleware'> = {}) =>
      register(registrations.authenticators, { middleware, challenge, always }),
    authorize: hook('authorize'),
    endpoint(path, endpoint, place) {
      if (typeof endpoint === 'function') register(registrations.routeEndpoints, { suffix: path, define: endpoint })
      else register(registrations.endpoints, { ...place, path, endpoint })
    },
    mount: (path, app, settings = {}) => register(registrations.mounts, { path, app, settings }),
    provide: (slot, service) => slots.fill(slot, service, instance),
    share<Value>(key: symbol | object, create: () => Value, close?: (value: Value) => void | Promise<void>): Value {
      if (registrations.shared.has(key)) return registrations.shared.get(key) as Value
      const value = create()
      registrations.shared.set(key, value)
      if (close) registrations.onClose.push(() => runCloseTask(pluginLog, shared.clock, () => close(value)))
      return value
    },
    onReady: task => register(registrations.onReady, task),
    onReload: prepare => register(registrations.onReload, prepare),
    onStart: task => void registrations.onStart.push(() => runStartTask(instance, task)),
    onClose: task => void registrations.onClose.push(() => runCloseTask(pluginLog, shared.clock, task)),
    preClose: task => void registrations.preClose.push(task),
    readiness: (name, check) => void registrations.readiness.set(name, check),
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
    await runStartTask(instance, async () => void (await setup.call(plugin, hostFor(instance), options)), report)
  }
}

export async function runTasks(tasks: readonly Registration<Task>[], report: Report): Promise<void> {
  for (const { instance, value: task } of tasks) await runStartTask(instance, task, report)
}
