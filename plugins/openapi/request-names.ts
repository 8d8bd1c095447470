// Refuses object arguments whose keys would set other parameters.
import type { JsonSchema } from '../../core/index.ts'
import { isObject } from '../../core/plugin.ts'
import type { Operation, Parameter } from './operation.ts'
import { ArgumentFault } from './request-values.ts'

/** Throws an ArgumentFault for a name that an object writes. */
type CheckName = (name: string) => void

/** Normalizes a name: some servers ignore case, read `a[b]` as a part of `a`, and read `.` and space as `_`. */
const comparable = (name: string): string => (name.split('[', 1)[0] ?? '').toLowerCase().replaceAll(/[. ]/g, '_')

/** `taken`: names that the object cannot set. `declared`: the only names that it can set. */
export function createNameCheck(
  { name: own, style }: { readonly name: string; readonly style?: string | undefined },
  taken: Iterable<string>,
  declared?: ReadonlySet<string>,
): CheckName {
  const keyOf = style === 'deepObject' ? (name: string) => name.toLowerCase() : comparable
  const others = new Set([...taken].filter(name => name !== own).map(keyOf))
  return name => {
    if (others.has(keyOf(name))) throw new ArgumentFault(`sets "${name}", which is another parameter`)
    if (declared && !declared.has(name)) throw new ArgumentFault(`has the unknown key "${name}"`)
  }
}

/** Returns the properties of a schema; undefined if the schema accepts others. */
function propertiesIn(schema: JsonSchema, schemas: Operation['schemas']): ReadonlySet<string> | undefined {
  const names = new Set<string>()
  // A Set also iterates over schemas that are added during the iteration.
  const parts = new Set<unknown>([schema])
  for (const part of parts) {
    if (!isObject(part)) continue
    const { $ref, properties, additionalProperties = false, unevaluatedProperties = false, patternProperties } = part
    if (additionalProperties !== false || unevaluatedProperties !== false || patternProperties) return undefined
    for (const name of Object.keys(isObject(properties) ? properties : {})) names.add(name)
    if (typeof $ref === 'string') parts.add(schemas[$ref.slice('#/$defs/'.length)])
    const { allOf, anyOf, oneOf, then: one, else: other } = part
    for (const next of [allOf, anyOf, oneOf, one, other].flat()) parts.add(next)
  }
  return names
}

const writesKeys = ({ explode, style, contentType }: Parameter): boolean =>
  explode && style !== 'deepObject' && contentType === undefined

/** Returns the parameters of one location, each with its check. `owned`: names that the host sets. */
export function withNameChecks(
  { parameters, schemas }: Pick<Operation, 'parameters' | 'schemas'>,
  place: Parameter['in'],
  owned: Iterable<string>,
): { readonly parameter: Parameter; readonly checkName: CheckName }[] {
  const all = parameters
    .filter(parameter => parameter.in === place)
    .map(parameter => ({
      parameter,
      declared: writesKeys(parameter) ? propertiesIn(parameter.schema, schemas) : undefined,
    }))
  return all.map(({ parameter, declared }) => {
    const others = all.filter(one => one.parameter !== parameter)
    const taken = [...owned, ...others.flatMap(one => [one.parameter.name, ...(one.declared ?? [])])]
    return { parameter, checkName: createNameCheck(parameter, taken, declared) }
  })
}
