// Holds every definition of the toolsets against what it must be, and tells of those that clients or callers will stumble
// over, before any plugin is set up. For core/host.ts; the catalog then takes what is sound.
import { type Report, reporting, StartError } from '../http/start-error.ts'
import { describeToolset } from './catalog.ts'
import { type CatalogItem, compileDefinition, type FaultsOf } from './catalog-item.ts'
import { type Definition, labelOf } from './define.ts'
import { isObject } from './is-object.ts'
import { didYouMean } from './nearest.ts'
import type { JsonSchema } from './protocol.ts'
import type { CompiledRoute } from './routes.ts'
import { subschemas } from './schema/subschemas.ts'
import { collect } from './view.ts'

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

function warnOf(item: CatalogItem, label: string, report: Report): void {
  if (item.kind !== 'tools') return
  const { definition, key, input } = item
  const warn = (why: string, ...at: string[]) =>
    report(new StartError(`${label}: ${why}`, { of: definition, at }), 'warning')
  if (!TOOL_NAME.test(key)) {
    warn('clients may refuse its name; use 1 to 128 letters, digits, "_", "-" and "."', 'name')
  }
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
