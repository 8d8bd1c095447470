// Summarizes a route for the start page, with an example call.
import type { CatalogItem, ToolItem } from './catalog.ts'
import { isObject } from './is-object.ts'
import type { Revision } from './revisions.ts'
import { type CompiledRoute, samplePath, sampleUrl } from './routes.ts'
import { isStandardSchema } from './schema/standard-schema.ts'

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
  readonly tellsLogin: boolean
  /** Authorization servers; `isDevelopment`: anyone can sign in. */
  readonly logins: { readonly issuers: readonly string[]; readonly isDevelopment: boolean }
  readonly example?: ExampleCall
}

export interface RouteDetails {
  readonly open: readonly CatalogItem[]
  readonly others: readonly CatalogItem[]
  readonly tellsLogin: boolean
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
  { open, others, tellsLogin, logins, sources, authenticators }: RouteDetails,
): RouteSummary {
  const isOpen = route.authorize === undefined
  const example = findExampleCall(isOpen ? open : [...open, ...others])
  const restricted = others.filter(({ kind }) => kind === 'tools').length
  const except = isOpen && restricted > 0 ? `, except ${restricted === 1 ? '1 tool' : `${restricted} tools`}` : ''
  return {
    path: route.path,
    url: sampleUrl(route),
    samplePath: samplePath(route),
    toolsets: route.toolsets,
    tools: restricted + open.filter(({ kind }) => kind === 'tools').length,
    sources,
    revisions: route.revisions,
    stateless: route.stateless,
    callers: describeCallers(route, authenticators) + except,
    open: isOpen,
    tellsLogin,
    logins,
    ...(example && { example }),
  }
}

interface ExampleCall {
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
}

const MAX_DEPTH = 4

/** Returns a value that the schema contains, or an array with at most one element. Invented values usually fail. */
function knownValue(schema: unknown, depth: number): readonly unknown[] {
  if (!isObject(schema)) return []
  const { examples, enum: values } = schema
  for (const list of [examples, values]) if (Array.isArray(list) && list.length > 0) return list.slice(0, 1)
  for (const key of ['default', 'const']) if (key in schema) return [schema[key]]
  const object = schema['type'] === 'object' && depth < MAX_DEPTH ? knownObject(schema, depth + 1) : undefined
  return object ? [object] : []
}

function knownObject({ properties, required }: Record<string, unknown>, depth: number) {
  const object: Record<string, unknown> = {}
  for (const name of Array.isArray(required) ? required : []) {
    const known = knownValue(isObject(properties) ? properties[name] : undefined, depth)
    if (known.length === 0) return undefined
    object[name] = known[0]
  }
  return object
}

/** Keywords that accept `{}` if no property is required. */
const FIT_EMPTY: ReadonlySet<string> = new Set([
  ...['$schema', '$defs', 'definitions', 'title', 'description', 'type', 'properties', 'additionalProperties'],
  ...['required', 'default', 'examples'],
])

const isEmpty = (object: object) => Object.keys(object).length === 0

function fits({ input, definition }: ToolItem, args: ExampleCall['arguments']): boolean {
  const keywords = Object.keys(input.json)
  // Avoids loading ajv in the common case.
  if (isEmpty(args) && !isStandardSchema(definition.input) && keywords.every(name => FIT_EMPTY.has(name))) return true
  const checked = input.validate(args)
  return !(checked instanceof Promise) && checked.ok
}

/** Prefers tools without arguments, then read-only tools; never destructive ones. */
function findExampleCall(items: readonly CatalogItem[]): ExampleCall | undefined {
  const tools = items
    .filter(item => item.kind === 'tools')
    .filter(({ definition }) => definition.annotations?.destructiveHint !== true)
  const isReading = ({ definition }: ToolItem) => definition.annotations?.readOnlyHint === true
  const known = [...tools.filter(isReading), ...tools.filter(tool => !isReading(tool))].flatMap(tool => {
    const args = knownObject(tool.input.json, 0)
    return args ? [{ tool, args }] : []
  })
  const ordered = [...known.filter(({ args }) => isEmpty(args)), ...known.filter(({ args: given }) => !isEmpty(given))]
  const found = ordered.find(({ tool, args }) => fits(tool, args))
  return found && { tool: found.tool.key, arguments: found.args }
}
