// Holds every definition of the toolsets against what it must be, and tells of those that clients or callers will stumble
// over, before any plugin is set up. For core/host.ts; the catalog then takes what is sound.
import { type Report, reporting, StartError } from '../http/start-error.ts'
import { describeToolset } from './catalog.ts'
import { type CatalogItem, compileDefinition, type FaultsOf, type ToolItem } from './catalog-item.ts'
import { type Definition, labelOf } from './define.ts'
import { isObject } from './is-object.ts'
import { didYouMean } from './nearest.ts'
import type { JsonSchema } from './protocol.ts'
import type { CompiledRoute } from './routes.ts'
import { isDraft07 } from './schema/advertised-schema.ts'
import { subschemas } from './schema/subschemas.ts'
import { collect, PAGE_SIZE, type View } from './view.ts'

/** The toolsets without what cannot be compiled, which is reported. */
export function soundDefinitions(
  toolsets: ReadonlyMap<string, readonly Definition[]>,
  faultsOf: FaultsOf,
  report: Report,
): Map<string, readonly Definition[]> {
  const sound = new Map<string, readonly Definition[]>()
  const seen = new Set<Definition>()
  for (const [toolset, definitions] of toolsets) {
    const where = describeToolset(toolset)
    const compiled = definitions.filter(definition => {
      const item = reporting(report, () => compileDefinition(definition, where, faultsOf))
      if (item && !seen.has(definition)) warnOf(item, `${where}: ${labelOf(definition)}`, report)
      seen.add(definition)
      return item !== undefined
    })
    sound.set(toolset, compiled)
  }
  return sound
}

/** Reports names that two definitions of one route have, if the plugins cannot be set up and no catalog is built. */
export function reportNameClashes(
  routes: readonly CompiledRoute[],
  toolsets: ReadonlyMap<string, readonly Definition[]>,
  report: Report,
): void {
  const items = (name: string) =>
    (toolsets.get(name) ?? []).map(definition => compileDefinition(definition, describeToolset(name), () => []))
  for (const names of routes.flatMap(route => route.knownCombinations())) {
    collect({ items }, { toolsets: names, extra: [] }, report)
  }
}

/** 2025-11-25 server/tools "Tool Names": what others use, some clients refuse with all tools of the server. */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/

/** The limit of the APIs of Anthropic and OpenAI. */
const API_NAME = /^[A-Za-z0-9_-]{1,64}$/
const AT_ROOT = ['anyOf', 'oneOf', 'allOf']
const APIS = 'Claude and OpenAI clients (Claude Code, Claude Desktop, Codex, ChatGPT)'

interface Refusal {
  readonly why: string
  readonly at: readonly string[]
}

/** What major clients refuse a tool for, although MCP allows it. */
function refusalsOf({ key, wire }: ToolItem): Refusal[] {
  const { inputSchema = {}, outputSchema = {} } = wire as Partial<Record<'inputSchema' | 'outputSchema', JsonSchema>>
  const refusals: Refusal[] = []
  if (!TOOL_NAME.test(key)) {
    refusals.push({ why: 'clients may refuse its name; use 1 to 64 letters, digits, "_" and "-"', at: ['name'] })
  } else if (!API_NAME.test(key)) {
    const why = `${APIS} change or refuse its name; use 1 to 64 letters, digits, "_" and "-"`
    refusals.push({ why, at: ['name'] })
  }
  const root = AT_ROOT.find(keyword => keyword in inputSchema)
  if (root !== undefined) {
    refusals.push({
      why: `${APIS} refuse \`${root}\` at the root of its input; move it into a property`,
      at: ['input', root],
    })
  }
  for (const [role, schema] of [
    ['input', inputSchema],
    ['output', outputSchema],
  ] as const) {
    const open = [...subschemas(schema)].find(
      ({ schema: { type, items, prefixItems } }) => [type].flat().includes('array') && !items && !prefixItems,
    )
    if (role === 'input' && open) {
      const why = `OpenAI clients, VS Code and Gemini refuse the array "${open.path.at(-1)}" without \`items\`; add them`
      refusals.push({ why, at: ['input', ...open.path] })
    }
    if (isDraft07(schema)) {
      refusals.push({
        why: `Claude clients refuse the draft-07 schema of its ${role}; write it in draft 2020-12`,
        at: [role],
      })
    }
  }
  return refusals
}

/** Warns of routes with more tools than one list page: some clients read only the first. */
export function warnOfPages(
  routes: readonly CompiledRoute[],
  viewOf: (route: CompiledRoute, toolsets: readonly string[]) => Pick<View, 'tools' | 'isUnlisted'>,
  report: Report,
): void {
  for (const route of routes) {
    const counts = route.knownCombinations().map(names => {
      const { tools, isUnlisted } = viewOf(route, names)
      return tools.size <= PAGE_SIZE ? tools.size : [...tools.values()].filter(tool => !isUnlisted(tool)).length
    })
    const most = Math.max(0, ...counts)
    if (most <= PAGE_SIZE) continue
    const why = `its ${most} tools are more than one list page (${PAGE_SIZE}); Cursor, Codex and others may read only the first page`
    report(new StartError(`${why}; split the route or use \`search\``, { at: ['routes', route.path] }), 'warning')
  }
}

function warnOf(item: CatalogItem, label: string, report: Report): void {
  if (item.kind !== 'tools') return
  const { definition, input } = item
  const warn = (why: string, ...at: string[]) =>
    report(new StartError(`${label}: ${why}`, { of: definition, at }), 'warning')
  const refusals = refusalsOf(item)
  const [first] = refusals
  if (first) warn(refusals.map(({ why }) => why).join('; '), ...first.at)
  for (const { name, known, isClosed, path } of strangers(input.json)) {
    const what = `its input requires "${name}", which is none of its properties; ${didYouMean(name, known)}`
    const at = ['input', ...path, 'required']
    if (isClosed) report(new StartError(`${label}: ${what} No arguments can ever fit`, { of: definition, at }))
    else warn(what, ...at)
  }
}

interface Stranger {
  readonly name: string
  readonly known: readonly string[]
  /** Whether what has no property is refused. */
  readonly isClosed: boolean
  readonly path: readonly string[]
}

/** What may bring properties that are written elsewhere. */
const OTHER_SOURCES = ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'if', 'patternProperties', 'dependentSchemas']
/** Under these a schema speaks of an object that another describes. */
const PARTIAL = new Set(['allOf', 'anyOf', 'oneOf', 'if', 'then', 'else', 'not', 'dependentSchemas', 'contains'])

/** Names under `required` that no property of the same schema has. */
function strangers(root: JsonSchema): Stranger[] {
  return [...subschemas(root)].flatMap(({ schema, path }) => {
    const { required, properties, additionalProperties } = schema
    if (!Array.isArray(required) || !isObject(properties)) return []
    if (path.some(step => PARTIAL.has(step)) || OTHER_SOURCES.some(keyword => keyword in schema)) return []
    if (isObject(additionalProperties)) return []
    const known = Object.keys(properties)
    const isClosed = additionalProperties === false
    return required
      .filter((name): name is string => typeof name === 'string' && !Object.hasOwn(properties, name))
      .map(name => ({ name, known, isClosed, path }))
  })
}
