// What MCP adds to the host for plugin authors: what is served, and what happens around each Call.

import { type Report, StartError } from '../http/errors.ts'
import type { PluginInstance } from '../kernel/plugin-plan.ts'
import { type Note, notesFor, startPlugin } from '../kernel/set-up.ts'
import type { Call, Next } from './call.ts'
import type { Catalog, CatalogItem } from './catalog.ts'
import { methodNameFault } from './check-added.ts'
import type { Definition } from './define.ts'
import { type AddedExtension, createExtensions, type Extension, type Extensions } from './extension.ts'
import type { MethodTable } from './methods/index.ts'
import type { Observer } from './observe.ts'
import type { Revision } from './revisions.ts'
import type { CompiledRoute, McpRoute } from './routes.ts'

type Wrap = (call: Call, next: Next) => Promise<object>
type Answer = (call: Call) => object | Promise<object>
type Redirect = (call: Call) => Readonly<Record<string, unknown>> | undefined
type Unlists = (name: string) => boolean
type Explain = (item: CatalogItem | undefined, route: McpRoute) => readonly string[]

export interface AuthorHost {
  /** The name and version of the config's `server`. */
  readonly server: { readonly name: string; readonly version: string }
  /** Wraps every Call, as Koa middleware wraps a request. The first to be set up is outermost. */
  around(wrap: Wrap): void
  /** Is told of every Call when it is over, whoever answered or refused it. Changes nothing: what it throws is logged. */
  observe(observer: Observer): void
  /** Answers a JSON-RPC method. One that the host or another plugin answers stops the start; so does a notification's name. */
  method(name: string, answer: Answer): void
  /**
   * Adds an extension of the protocol to the plugin's routes: declares `capabilities.extensions[id]` there, and adds methods,
   * result types, `Mcp-Name` rules and filters of `subscriptions/listen`. `id` is as `com.example/tasks`. Throws a StartError
   * where another plugin adds the id, or something of it is taken on one of the routes.
   */
  extension(id: string, extension: Extension): AddedExtension
  /** Contributes definitions to each of the plugin's routes. */
  contribute(definitions: readonly Definition[]): void
  /**
   * Other params in the place of a Call's, before anybody is told of it: access, limits, `around` and observers know the Call
   * that has them, and no other. Undefined: it stays as it is. A HostError that it throws is the answer.
   */
  redirect(paramsFor: Redirect): void
  /**
   * Leaves tools out of the lists of the plugin's routes, by their names. Who knows the name may call one all the same: what
   * protects is a policy. Asked anew with a reload, and whenever definitions change.
   */
  unlist(leavesOut: Unlists): void
  /**
   * Puts others in the place of a list that was given to `contribute`, at once, while the host runs: for what `reconfigure`
   * gives, for the reload tells clients whose lists changed. Throws, and nothing has changed, where one is not sound.
   */
  exchange(contributed: readonly Definition[], others: readonly Definition[]): void
  /** Names a file or folder that the plugin makes of what it serves: `mcp-host dev` reloads once something there changes. */
  reads(path: string): void
  /** Tells the host that what is listed can differ from caller to caller, so no list is `public`. */
  variesByCaller(): void
  /**
   * Says for `mcp-host explain`, a line each, what the plugin asks of callers on a route (`item` undefined), or of an item
   * there beside that. Access is explained by what fills the slot `access`.
   */
  explain(say: Explain): void
  /** Names the protocol revisions that a transport serves on a route, for the start-up page. */
  revisions(list: (route: McpRoute) => readonly Revision[]): void
}

interface Contribution {
  readonly toolset: string
  readonly definitions: readonly Definition[]
  /** Absent until the host is built. */
  exchange?: Catalog['exchange']
}

/** Everything that the plugins of one host registered with MCP, in the order of set-up. */
export interface AuthorNotes {
  readonly reads: AuthorHost['reads']
  readonly around: Note<Wrap>[]
  readonly observers: Note<Observer>[]
  readonly methods: Note<{ readonly name: string; readonly answer: Answer }>[]
  readonly extensions: Extensions
  readonly contributed: Note<Contribution>[]
  readonly redirects: Note<Redirect>[]
  readonly unlisted: Note<Unlists>[]
  readonly varies: Note<true>[]
  readonly explained: Note<Explain>[]
  readonly revisions: Note<(route: McpRoute) => readonly Revision[]>[]
}

/** `reads` hears of what plugins read. */
export const createAuthorNotes = (reads: AuthorHost['reads']): AuthorNotes => ({
  reads,
  around: [],
  observers: [],
  methods: [],
  extensions: createExtensions(),
  contributed: [],
  redirects: [],
  unlisted: [],
  varies: [],
  explained: [],
  revisions: [],
})

/** The host as one instance of a plugin sees it. */
export function createAuthorHost(
  instance: PluginInstance,
  notes: AuthorNotes,
  server: AuthorHost['server'],
): AuthorHost {
  const note = <Value>(list: Note<Value>[], value: Value) => void list.push({ instance, value })
  const toolset = `/plugins.${instance.name} on ${instance.routes.map(({ path }) => path).join(', ')}`
  return {
    server,
    reads: notes.reads,
    around: wrap => note(notes.around, wrap),
    observe: observer => note(notes.observers, observer),
    method(name, answer) {
      const fault = methodNameFault(name)
      if (fault !== undefined) throw new StartError(`plugins.${instance.name}: ${fault}`, { exitCode: 2 })
      note(notes.methods, { name, answer })
    },
    extension(id, extension) {
      const added = notes.extensions.add({ plugin: instance.name, id, extension, routes: instance.routes })
      for (const method of added.methods) note(notes.methods, method)
      return added
    },
    contribute: definitions => note(notes.contributed, { toolset, definitions }),
    redirect: paramsFor => note(notes.redirects, paramsFor),
    unlist: leavesOut => note(notes.unlisted, leavesOut),
    exchange(contributed, others) {
      const at = notes.contributed.findIndex(
        ({ value }) => value.toolset === toolset && value.definitions === contributed,
      )
      const { exchange } = notes.contributed[at]?.value ?? {}
      if (!exchange) throw new Error('host.exchange() takes a list that was contributed, once the host is built')
      exchange(toolset, contributed, others)
      notes.contributed[at] = { instance, value: { toolset, definitions: others, exchange } }
    },
    variesByCaller: () => note(notes.varies, true),
    explain: say => note(notes.explained, say),
    revisions: list => note(notes.revisions, list),
  }
}

/** The toolsets that the catalog keeps for what plugins contribute to a route. */
export const contributedTo = (notes: AuthorNotes, route: CompiledRoute): readonly string[] => [
  ...new Set(notesFor(notes.contributed, route).map(({ toolset }) => toolset)),
]

/** Whether plugins leave the tool of a name out of a route's lists: one function a route. */
export function createUnlisting(notes: AuthorNotes): (route: CompiledRoute) => Unlists {
  const found = new Map<CompiledRoute, Unlists>()
  return route => {
    let list: Unlists[] | undefined
    const unlists: Unlists = name => {
      // Asked once all is declared, of every tool.
      list ??= notesFor(notes.unlisted, route)
      return list.some(leavesOut => leavesOut(name))
    }
    const known = found.get(route) ?? unlists
    found.set(route, known)
    return known
  }
}

/** The protocol revisions on a route, newest first, whichever transport names them; their names are dates. */
export function createRevisions(
  notes: AuthorNotes,
  isSettled: () => boolean,
): (route: CompiledRoute) => readonly Revision[] {
  const found = new Map<CompiledRoute, readonly Revision[]>()
  return route => {
    const known = found.get(route)
    if (known) return known
    const revisions = [...new Set(notesFor(notes.revisions, route).flatMap(list => list(route)))].sort().reverse()
    // Every request asks; until all is declared there may be more to come.
    if (isSettled()) found.set(route, revisions)
    return revisions
  }
}

/** Gives catalog and methods what plugins have for them; what does not go stops the start, with the plugin's name. */
export async function addContributions(
  notes: AuthorNotes,
  catalog: Catalog,
  methods: MethodTable,
  report: Report,
): Promise<void> {
  for (const { instance, value } of notes.contributed) {
    const add = () => {
      for (const definition of value.definitions) catalog.add(value.toolset, definition)
      value.exchange = catalog.exchange
    }
    await startPlugin(instance, add, report)
  }
  for (const { instance, value } of notes.methods) {
    const { name, answer } = value
    const add = () => methods.add(name, { answer, by: instance.name }, instance.routes)
    await startPlugin(instance, add, report)
  }
  for (const { plugin, id, method, routes } of notes.extensions.awaited) {
    if (routes.every(route => methods.has(method, route))) continue
    const why = `extension "${id}": it has results for "${method}", a method that nobody answers on its routes`
    const what = `plugins.${plugin}: ${why}; correct the name, or add the method`
    report(new StartError(what, { exitCode: 2 }).orAt(['plugins', plugin]))
  }
}
