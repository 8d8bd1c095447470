// The set-up of plugins: what each of them declares is written down by hook point, with the routes it holds for. From the
// plan (plugin-plan.ts) to the pipeline, which is built from these notes.

import { systemClock, type Timer } from '../http/clock.ts'
import { errorText, type Report, StartError, stopAtFirst } from '../http/errors.ts'
import type { SectionReader } from './define-plugin.ts'
import type { CrossOrigin, Endpoint, EndpointPlace, HostMiddleware, MountedApp, MountSettings } from './endpoint.ts'
import type { KernelHost } from './kernel-host.ts'
import type { Logger } from './log.ts'
import { HOOK_POINTS, type HookPoint } from './order.ts'
import type { PluginInstance } from './plugin-plan.ts'
import type { Route } from './route.ts'
import type { SlotTable } from './slots.ts'

/** One thing that an instance of a plugin registered; it holds for that instance's routes. */
export interface Note<Value> {
  readonly instance: PluginInstance
  readonly value: Value
}

/** Everything that the plugins of one host registered with the kernel, in the order of set-up. */
export interface KernelNotes<Services = never> {
  readonly middleware: Record<HookPoint, Note<HostMiddleware>[]>
  readonly crossOrigin: Note<(route: Route) => CrossOrigin | undefined>[]
  readonly endpoints: Note<{ path: string; endpoint: Endpoint } & EndpointPlace>[]
  readonly routeEndpoints: Note<{ suffix: string; define: (route: Route) => Endpoint | undefined }>[]
  readonly mounts: Note<{ path: string; app: MountedApp; settings: MountSettings }>[]
  readonly serving: Note<(services: Services) => void | Promise<void>>[]
  readonly reconfigure: Note<(options: never) => (() => unknown) | undefined>[]
  readonly checking: Note<() => void | Promise<void>>[]
  readonly starting: Array<() => void | Promise<void>>
  readonly closing: Array<() => void | Promise<void>>
  readonly draining: Array<() => void>
  /** By the key of those who share it. */
  readonly shared: Map<symbol | object, unknown>
  readonly ready: Map<string, () => boolean | string | Promise<boolean | string>>
}

export const createNotes = <Services>(): KernelNotes<Services> => ({
  middleware: Object.fromEntries(HOOK_POINTS.map(point => [point, []])) as unknown as KernelNotes['middleware'],
  crossOrigin: [],
  endpoints: [],
  routeEndpoints: [],
  mounts: [],
  serving: [],
  reconfigure: [],
  checking: [],
  starting: [],
  closing: [],
  draining: [],
  shared: new Map(),
  ready: new Map(),
})

/** The values of the notes that hold on a route. */
export const notesFor = <Value>(notes: readonly Note<Value>[], route: Route): Value[] =>
  notes.filter(({ instance }) => instance.routes.includes(route)).map(({ value }) => value)

/** What every plugin of a host is told alike. */
export interface HostFacts<Slots extends object>
  extends Pick<
      KernelHost,
      'http' | 'processes' | 'inEveryProcess' | 'figures' | 'directory' | 'keys' | 'ownKeys' | 'readiness' | 'report'
    >,
    Pick<KernelHost, 'clock' | 'countTogether' | 'log' | 'purpose'> {
  readonly slots: SlotTable<Slots>
  /** The host's own URL, without a slash at its end. */
  address(): string
  /** What this node is called by the plugins of these routes. */
  nodeOf(instance: PluginInstance): string
  /** What stands at a top-level key of the config. */
  section(name: string): unknown
}

/** Runs a plugin's part of the start; what it throws stops the start, with the plugin's name, or is reported. */
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
    report(new StartError(`plugins.${instance.name} failed to start: ${errorText(cause)}`, { cause }).orAt(at))
  }
}

/** Runs a plugin's part of the end: one that fails is logged, and the others close all the same. */
async function closePlugin(log: Logger, clock: KernelHost['clock'], part: () => void | Promise<void>): Promise<void> {
  try {
    await inTime(part, CLOSE_PATIENCE, clock)
  } catch (err) {
    log.error({ err }, 'failed to close')
  }
}

/** The host as one instance of a plugin sees it. */
export function createKernelHost<Slots extends object, Services>(
  instance: PluginInstance,
  notes: KernelNotes<Services>,
  { log, slots, address, nodeOf, section, inEveryProcess, ...facts }: HostFacts<Slots>,
): KernelHost<Slots, Services> & SectionReader<object> {
  const note = <Value>(list: Note<Value>[], value: Value) => void list.push({ instance, value })
  const hook = (point: HookPoint) => (middleware: HostMiddleware) => note(notes.middleware[point], middleware)
  const own = log.child({ plugin: instance.name })
  return {
    ...facts,
    name: instance.name,
    at: instance.at,
    node: nodeOf(instance),
    inEveryProcess: (name, answer) => inEveryProcess([...instance.at, name].join(' '), answer),
    log: own,
    routes: instance.routes,
    url: path => `${address()}${path}`,
    use: hook('use'),
    crossOrigin: policyOf => note(notes.crossOrigin, policyOf),
    edge: hook('edge'),
    identify: hook('identify'),
    admit: hook('admit'),
    endpoint: (path, endpoint, place) => note(notes.endpoints, { ...place, path, endpoint }),
    routeEndpoint: (suffix, define) => note(notes.routeEndpoints, { suffix, define }),
    mount: (path, app, settings = {}) => note(notes.mounts, { path, app, settings }),
    fill: (slot, service) => slots.fill(slot, service, instance),
    section(name: string) {
      if (Object.hasOwn(instance.plugin.sections ?? {}, name)) return section(name) as undefined
      const why = `it reads the section "${name}" of the config, but does not declare it in \`sections\``
      throw new StartError(why, { at: instance.at })
    },
    share<Value>(key: symbol | object, create: () => Value, close?: (value: Value) => void | Promise<void>): Value {
      if (notes.shared.has(key)) return notes.shared.get(key) as Value
      const value = create()
      notes.shared.set(key, value)
      if (close) notes.closing.push(() => closePlugin(own, facts.clock, () => close(value)))
      return value
    },
    serving: task => note(notes.serving, task),
    checking: task => note(notes.checking, task),
    reconfigure: prepare => note(notes.reconfigure, prepare),
    starting: task => void notes.starting.push(() => startPlugin(instance, task)),
    closing: task => void notes.closing.push(() => closePlugin(own, facts.clock, task)),
    draining: task => void notes.draining.push(task),
    ready: (name, check) => void notes.ready.set(name, check),
  }
}

/** The first phase: sets the plugins up, one after the other. */
export async function setUpPlugins<Host>(
  instances: readonly PluginInstance[],
  hostFor: (instance: PluginInstance) => Host,
  report: Report,
): Promise<void> {
  for (const instance of instances) {
    const { plugin, options } = instance
    const setup = plugin.setup as (host: Host, options: object) => void | Promise<void>
    await startPlugin(instance, () => setup.call(plugin, hostFor(instance), options), report)
  }
}

/** The second phase: what is served is defined with the services. */
export async function definePlugins<Services>(
  { serving }: KernelNotes<Services>,
  services: Services,
  report: Report,
): Promise<void> {
  for (const { instance, value: task } of serving) await startPlugin(instance, () => task(services), report)
}

/** What plugins hold against everything that is defined. */
export async function checkDefined({ checking }: Pick<KernelNotes, 'checking'>, report: Report): Promise<void> {
  for (const { instance, value: task } of checking) await startPlugin(instance, task, report)
}

/** How long each of `setup`, `serving` and `starting` may take, milliseconds. */
export const START_PATIENCE = 60_000
/** How long each `closing` task may take, milliseconds. */
export const CLOSE_PATIENCE = 5_000

/** Rejects if `part` takes longer than `limit` milliseconds. The timer keeps the process alive until then. */
export async function inTime(part: () => void | Promise<void>, limit: number, clock = systemClock): Promise<void> {
  const running = part()
  if (running === undefined) return
  let timer: Timer | undefined
  const late = new Promise<never>((_, reject) => {
    const why = `it has not ended after ${limit / 1_000} s; something that it waits for does not come`
    timer = clock.setTimeout(() => reject(new Error(why)), limit)
  })
  try {
    await Promise.race([running, late])
  } finally {
    clock.clear(timer)
  }
}
