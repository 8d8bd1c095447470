// Summarizes a route for the start page, with an example tool.
import type { CatalogItem, ToolItem } from '../definitions/catalog.ts'
import type { Revision } from '../wire/revisions.ts'
import { type CompiledRoute, samplePath, sampleUrl } from './routes.ts'

/** A toolset of a plugin that can change at run time. */
export interface ToolsetSource {
  readonly toolset: string
  readonly state: string
  /** True if the toolset has no items or its items are unknown. */
  readonly isEmpty: boolean
  /** The reasons for definitions that cannot be served, by kind and name, such as `tools search`. */
  readonly withheld: ReadonlyMap<string, string>
}

export interface RouteSummary {
  readonly path: string
  /** A URL of the route for clients; a required parameter has the name of a toolset. */
  readonly url: string
  readonly samplePath: string
  readonly toolsets: readonly string[]
  /** The number of tools, including those that some callers cannot use. */
  readonly tools: number
  readonly sources: readonly ToolsetSource[]
  readonly revisions: readonly Revision[]
  readonly stateless: boolean
  readonly callers: string
  /** True if callers need no token; some tools can still require one. */
  readonly open: boolean
  readonly hasLoginMetadata: boolean
  /** Authorization servers; `isDevelopment`: anyone can sign in. */
  readonly logins: { readonly issuers: readonly string[]; readonly isDevelopment: boolean }
  /** A tool that needs no arguments. */
  readonly example: string | undefined
}

export interface RouteDetails {
  readonly items: readonly CatalogItem[]
  /** Items that require a login. */
  readonly restricted: readonly CatalogItem[]
  /** Items for callers with a login, or without it on an open route. */
  readonly available: readonly CatalogItem[]
  readonly hasLoginMetadata: boolean
  readonly logins: RouteSummary['logins']
  readonly sources: readonly ToolsetSource[]
  readonly authenticators: readonly string[]
}

function describeRule({ authorize }: CompiledRoute): string {
  if (authorize === undefined) return 'open'
  if (authorize === true) return 'login required'
  if (typeof authorize === 'string') return `login required (policy "${authorize}")`
  const { scope } = authorize as { readonly scope?: unknown }
  const isScope = typeof scope === 'string' && Object.keys(authorize).length === 1
  return `login required (${isScope ? `scope ${scope}` : JSON.stringify(authorize)})`
}

const describeCallers = (route: CompiledRoute, authenticators: readonly string[]): string =>
  `${describeRule(route)}${authenticators.length > 1 ? ` (${authenticators.join(', then ')})` : ''}`

export function summarizeRoute(
  route: CompiledRoute,
  { items, restricted, available, hasLoginMetadata, logins, sources, authenticators }: RouteDetails,
): RouteSummary {
  const isOpen = route.authorize === undefined
  const count = restricted.filter(({ kind }) => kind === 'tools').length
  const except = isOpen && count > 0 ? `, except ${count === 1 ? '1 tool' : `${count} tools`}` : ''
  return {
    path: route.path,
    url: sampleUrl(route),
    samplePath: samplePath(route),
    toolsets: route.toolsets,
    tools: items.filter(({ kind }) => kind === 'tools').length,
    sources,
    revisions: route.revisions,
    stateless: route.stateless,
    callers: describeCallers(route, authenticators) + except,
    open: isOpen,
    hasLoginMetadata,
    logins,
    example: findExampleTool(available),
  }
}

const ARGUMENT_KEYWORDS = ['required', '$ref', 'allOf', 'anyOf', 'oneOf']

/** Returns a tool that needs no arguments, preferably a read-only one; never a destructive one. */
function findExampleTool(items: readonly CatalogItem[]): string | undefined {
  const tools = items.filter(
    item =>
      item.kind === 'tools' &&
      item.definition.annotations?.destructiveHint !== true &&
      ARGUMENT_KEYWORDS.every(name => [item.input.json[name] ?? []].flat().length === 0),
  ) as ToolItem[]
  return (tools.find(({ definition }) => definition.annotations?.readOnlyHint) ?? tools[0])?.key
}
