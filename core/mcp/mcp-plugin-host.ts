// The MCP part of the plugin host: definitions, methods, and hooks around each call.

import { formatPath, type Report, StartError } from '../http/errors.ts'
import { getOrCreate } from '../http/get-or-create.ts'
import type { PluginInstance } from '../kernel/plugin-plan.ts'
import { missingCapability, type Registration, registeredOn, runStartTask } from '../kernel/set-up.ts'
import type { Call, Next } from './calls/call.ts'
import { createContextMembers } from './calls/context-members.ts'
import type { Observer } from './calls/observe.ts'
import { createToolKeys, type ToolKey } from './calls/tool-key-handlers.ts'
import type { Catalog, CatalogItem } from './definitions/catalog.ts'
import type { CallContext, Definition, RuntimeHost } from './definitions/define.ts'
import type { ProvidedSource, ServedToolset } from './definitions/provided-toolsets.ts'
import type { MethodTable } from './methods/index.ts'
import { type AddedExtension, createExtensions, type Extension } from './routes/extensions.ts'
import { type CompiledRoute, type McpRoute, TOOLSET_NAME_PATTERN } from './routes/routes.ts'
import { HANDSHAKE_REVISIONS, type Revision } from './wire/revisions.ts'

type Wrap = (call: Call, next: Next) => Promise<object>
type MethodHandler = (call: Call) => object | Promise<object>
type Redirect = (call: Call) => Readonly<Record<string, unknown>> | undefined
/** A text is the reason that calls fail as well. */
type IsHidden = (name: string, route: McpRoute) => boolean | string
type Explain = (item: CatalogItem | undefined, route: McpRoute) => readonly string[]

/** The location of a toolset in the options of its plugin (`at`), and texts about it. */
export type ToolsetPlace = Partial<Omit<ProvidedSource, 'toolset'>>

export interface AddToolset {
  /** Serves them on all routes of the plugin. */
  (definitions: readonly Definition[]): ServedToolset
  /**
   * Serves them as a toolset that routes select by name, like toolsets of the config. Requires `provides:
   * ['toolsets']`. Without `definitions`, they are known only after startup. Throws a StartError for a name that is in
   * use.
   */
  (name: string, definitions?: readonly Definition[], place?: ToolsetPlace): ServedToolset
}

export interface McpPluginHost {
  /** Middleware around every JSON-RPC call. The first plugin to be set up is outermost. */
  onCall(wrap: Wrap): void
  /** Receives the record of every finished request, including refused requests. Errors are logged. */
  onFinish(observer: Observer): void
  /** Serves tools, resources and prompts. */
  readonly toolset: AddToolset
  /** Registers what a key of `toolKeys` does, in `setup`. */
  toolKey<Value>(name: string, key: ToolKey<Value>): void
  /** Adds a member of `context` to the `ctx` of handlers. `create` runs at its first use in a call. */
  context<Value>(name: string, create: (call: Call, ctx: CallContext) => Value): void
  /** Adds a protocol extension, such as `com.example/tasks`. Throws a StartError for a duplicate id or part. */
  extension(id: string, extension: Extension): AddedExtension
  /** Adds and removes definitions at run time, like `ctx.host` of handlers. Throws before all plugins are set up. */
  readonly runtime: RuntimeHost
}

/** Members for built-in plugins. */
export interface InternalMcpPluginHost extends McpPluginHost {
  /** Registers a JSON-RPC method. Startup fails for a name that is already registered. */
  method(name: string, handle: MethodHandler): void
  /** Replaces params before access checks and limits. Undefined: unchanged. A HostError becomes the response. */
  redirect(paramsFor: Redirect): void
  /** Hides tools from lists, by name. They can still be called: use a policy to protect them. A text states why calls fail. */
  unlist(isHidden: IsHidden): void
  /** Registers a file or folder that the plugin reads. `mcp-host dev` reloads after a change. */
  reads(path: string): void
  /** Declares that lists can differ between callers, so no list is `public`. */
  variesByCaller(): void
  /** Lines for `mcp-host explain`: requirements on a route (`item` undefined) or for an item. */
  explain(say: Explain): void
  /** Adds protocol versions that the plugin serves on a route. */
  revisions(list: (route: McpRoute) => readonly Revision[]): void
}

interface Contribution {
  readonly toolset: string
  readonly definitions: readonly Definition[]
  /** Set for a toolset that routes select by name. */
  readonly source?: ProvidedSource
  served?: ServedToolset
}

export const createMcpRegistrations = (
  reads: InternalMcpPluginHost['reads'],
  defaults: Parameters<typeof createContextMembers>[0],
  configToolsets: Readonly<Record<string, unknown>>,
) => ({
  reads,
  onCall: [] as Registration<Wrap>[],
  onFinish: [] as Registration<Observer>[],
  methods: [] as Registration<{ readonly name: string; readonly handle: MethodHandler }>[],
  extensions: createExtensions(),
  toolKeys: createToolKeys(),
  context: createContextMembers(defaults),
  contributed: [] as Registration<Contribution>[],
  toolsets: new Map<string, ProvidedSource>(),
  configToolsets,
  redirects: [] as Registration<Redirect>[],
  unlisted: [] as Registration<IsHidden>[],
  varies: [] as Registration<true>[],
  explained: [] as Registration<Explain>[],
  revisions: [] as Registration<(route: McpRoute) => readonly Revision[]>[],
})

export type McpRegistrations = ReturnType<typeof createMcpRegistrations>

export function createMcpPluginHost(
  instance: PluginInstance,
  registrations: McpRegistrations,
): Omit<InternalMcpPluginHost, 'runtime'> {
  const register = <Value>(list: Registration<Value>[], value: Value) => void list.push({ instance, value })
  if (instance.plugin.provides?.includes('transport')) {
    register(registrations.revisions, ({ stateless }) => (stateless ? [] : HANDSHAKE_REVISIONS))
  }
  const ownToolset = `/plugins.${instance.name} on ${instance.routes.map(({ path }) => path).join(', ')}`
  function addContribution(contribution: Contribution): ServedToolset {
    register(registrations.contributed, contribution)
    const served = () => {
      if (contribution.served) return contribution.served
      throw new Error('replace() and withheld are available only after the host is built')
    }
    return {
      replace: definitions => served().replace(definitions),
      get withheld() {
        return served().withheld
      },
    }
  }
  const { name: plugin, routes } = instance
  return {
    toolKey: <Value>(name: string, key: ToolKey<Value>) =>
      registrations.toolKeys.add({ name, key, plugin, declared: Object.keys(instance.plugin.toolKeys ?? {}), routes }),
    context: (name, create) =>
      registrations.context.add({ name, create, plugin, declared: Object.keys(instance.plugin.context ?? {}), routes }),
    reads: registrations.reads,
    onCall: wrap => register(registrations.onCall, wrap),
    onFinish: observer => register(registrations.onFinish, observer),
    method: (name, handle) => register(registrations.methods, { name, handle }),
    extension(id, extension) {
      const added = registrations.extensions.add({ plugin: instance.name, id, extension, routes: instance.routes })
      for (const method of added.methods) register(registrations.methods, method)
      return added
    },
    toolset(first: string | readonly Definition[], definitions?: readonly Definition[], place?: ToolsetPlace) {
      if (typeof first !== 'string') return addContribution({ toolset: ownToolset, definitions: first })
      const source = nameToolset(instance, registrations, first, { isLate: definitions === undefined, ...place })
      return addContribution({ toolset: first, definitions: definitions ?? [], source })
    },
    redirect: paramsFor => register(registrations.redirects, paramsFor),
    unlist: isHidden => register(registrations.unlisted, isHidden),
    variesByCaller: () => register(registrations.varies, true),
    explain: say => register(registrations.explained, say),
    revisions: list => register(registrations.revisions, list),
  }
}

function nameToolset(
  instance: PluginInstance,
  { toolsets, configToolsets }: Pick<McpRegistrations, 'toolsets' | 'configToolsets'>,
  name: string,
  { isLate, at: own = [], fix, describe, instructions }: ToolsetPlace & Pick<ProvidedSource, 'isLate'>,
): ProvidedSource {
  if (!instance.plugin.provides?.includes('toolsets')) throw missingCapability(instance, 'toolset', 'toolsets')
  const at = [...instance.at, ...own]
  if (!new RegExp(TOOLSET_NAME_PATTERN).test(name)) {
    throw new StartError('MH1523', `"${name}" cannot name a toolset: no "/", and no ":" at its start`, { at })
  }
  const other = Object.hasOwn(configToolsets, name) ? ['toolsets', name] : toolsets.get(name)?.at
  if (other) {
    const what = `there is another toolset "${name}", at ${formatPath(other)}; rename one of them`
    throw new StartError('MH1523', what, { at, also: [{ at: other }] })
  }
  const toolset = { toolset: name, at, fix, isLate, describe, instructions }
  toolsets.set(name, toolset)
  return toolset
}

export const contributedTo = (registrations: McpRegistrations, route: CompiledRoute): readonly string[] => [
  ...new Set(
    registeredOn(registrations.contributed, route).flatMap(({ toolset, source }) => (source ? [] : [toolset])),
  ),
]

export function createUnlisting(registrations: McpRegistrations): (route: CompiledRoute) => (name: string) => boolean {
  const found = new Map<CompiledRoute, (name: string) => boolean>()
  return route =>
    getOrCreate(found, route, () => {
      let list: IsHidden[] | undefined
      return name => {
        list ??= registeredOn(registrations.unlisted, route)
        return list.some(hides => hides(name, route) !== false)
      }
    })
}

export function createRevisions(
  registrations: McpRegistrations,
  isSettled: () => boolean,
): (route: CompiledRoute) => readonly Revision[] {
  const found = new Map<CompiledRoute, readonly Revision[]>()
  return route => {
    const known = found.get(route)
    if (known) return known
    const revisions = [...new Set(registeredOn(registrations.revisions, route).flatMap(list => list(route)))]
      .sort()
      .reverse()
    // The list is cached only after startup, because plugins can add protocol versions before.
    if (isSettled()) found.set(route, revisions)
    return revisions
  }
}

export async function addContributions(
  registrations: McpRegistrations,
  catalog: Catalog,
  methods: MethodTable,
  report: Report,
): Promise<void> {
  for (const { instance, value } of registrations.contributed) {
    const add = () => {
      value.served = catalog.provide(value.toolset, value.definitions, value.source)
    }
    await runStartTask(instance, add, report)
  }
  for (const { instance, value } of registrations.methods) {
    const { name, handle } = value
    const add = () => methods.add(name, { handle, by: instance.name }, instance.routes)
    await runStartTask(instance, add, report)
  }
  for (const { plugin, id, method, routes } of registrations.extensions.resultMethods) {
    if (routes.every(route => methods.has(method, route))) continue
    const why = `extension "${id}": it has results for "${method}", a method that no plugin of its routes handles`
    const what = `plugins.${plugin}: ${why}; correct the name, or add the method`
    report(new StartError('MH1507', what, { exitCode: 2 }).locatedAt(['plugins', plugin]))
  }
}
