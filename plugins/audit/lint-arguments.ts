// Warns about names in `arguments` that no tool or no argument has.
import { isObject, nearest, type PluginHost, type Services, StartError } from '../../core/index.ts'

type Item = ReturnType<Services['itemsOf']>[number]
type Tool = Extract<Item, { kind: 'tools' }>

/** With these keywords `properties` does not list all arguments. */
const ELSEWHERE = ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'if', 'patternProperties', 'dependentSchemas']

/** Undefined if unknown. */
function argumentsOf({ wire }: Tool): readonly string[] | undefined {
  const schema = wire['inputSchema']
  if (!isObject(schema) || ELSEWHERE.some(keyword => keyword in schema)) return undefined
  const { properties, additionalProperties } = schema
  if (isObject(properties)) return Object.keys(properties)
  return additionalProperties === false ? [] : undefined
}

export function lintArguments(
  listed: ReadonlyMap<string, readonly string[]>,
  host: Pick<PluginHost, 'at' | 'routes' | 'report'>,
  services: Services,
): void {
  const tools = host.routes
    .flatMap(route => services.reachableItemsOf(route))
    .flatMap(item => (item.kind === 'tools' ? item : []))
  const warn = (what: string, at: readonly string[]) =>
    host.report(new StartError(what, { at: [...host.at, 'arguments', ...at] }), 'warning')
  for (const [tool, names] of listed) {
    const found = tools.filter(({ key }) => key === tool)
    if (found.length === 0) {
      const near = nearest(
        tool,
        tools.map(({ key }) => key),
      )
      warn(`no tool has this name that is defined at start: its arguments are not written${hintOf(near)}`, [tool])
      continue
    }
    const taken = found.map(argumentsOf)
    if (taken.includes(undefined)) continue
    const known = taken.flatMap(one => one ?? [])
    for (const name of names) {
      if (known.includes(name)) continue
      warn(`the tool has no argument "${name}": nothing is written${hintOf(nearest(name, known))}`, [tool])
    }
  }
}

const hintOf = (near: string | undefined) => (near === undefined ? '' : `; did you mean "${near}"?`)
