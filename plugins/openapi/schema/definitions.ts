// The schemas that `$ref`s lead to: converted once each, and shared by the tools that need them.
import { createHash } from 'node:crypto'
import type { JsonSchema } from '../../../core/index.ts'
import { type Place, placePath, toPointer } from '../document/place.ts'
import type { Found } from '../document/references.ts'
import { type Conversion, convertSchema, type Uses } from './convert.ts'

export type Definitions = ReturnType<typeof createDefinitions>

export interface Reached {
  readonly name: string
  readonly schema: JsonSchema | boolean
  /** Number of `$ref`s on the way to the definition. */
  readonly distance: number
  readonly refersTo: ReadonlySet<string>
}

interface Definition {
  readonly target: Found
  schema?: JsonSchema | boolean
  readonly uses: Uses
}

const createUses = (): Uses => ({ all: new Set(), inPlace: new Set() })

export function createDefinitions(settings: Omit<Conversion, 'define'>) {
  const names = new Map<string, string>()
  const definitions = new Map<string, Definition>()
  const converted = new Set<string>()

  const conversion: Conversion = {
    ...settings,
    define(target) {
      const key = `${target.place.file.url.href}${toPointer(target.place)}`
      const known = names.get(key)
      if (known !== undefined) return known
      const name = createName(key, target.place, definitions)
      names.set(key, name)
      definitions.set(name, { target, uses: createUses() })
      return name
    },
  }

  function definitionOf(name: string): Definition & { schema: JsonSchema | boolean } {
    const definition = definitions.get(name)
    if (!definition) throw new Error(`there is no definition ${name}`)
    definition.schema ??= convertSchema(definition.target, conversion, definition.uses)
    return definition as Definition & { schema: JsonSchema | boolean }
  }

  /** Replaces definitions that refer to themselves without end, such as `A: { allOf: [A] }`. */
  function breakCycles(name: string, way: readonly string[]): void {
    if (converted.has(name)) return
    const definition = definitionOf(name)
    if (way.includes(name)) {
      settings.note(definition.target.place, 'refers to itself for the same value: any value is accepted')
      definition.schema = {}
      definition.uses.all.clear()
      definition.uses.inPlace.clear()
    }
    for (const next of [...definition.uses.inPlace]) breakCycles(next, [...way, name])
    converted.add(name)
  }

  return {
    /** Converts a schema. `all` receives the names of definitions that it refers to. */
    convert(found: Found, all: Set<string>): JsonSchema | boolean {
      const uses = createUses()
      const schema = convertSchema(found, conversion, uses)
      for (const name of uses.all) all.add(name)
      return schema
    },
    /** Returns the definitions that these names lead to, nearest first. */
    reachedFrom(start: Iterable<string>): Reached[] {
      const reached = new Map<string, Reached>()
      let [waiting, distance] = [new Set(start), 1]
      while (waiting.size > 0) {
        const next = new Set<string>()
        for (const name of waiting) {
          breakCycles(name, [])
          const { schema, uses } = definitionOf(name)
          reached.set(name, { name, schema, distance, refersTo: uses.all })
        }
        for (const name of waiting) {
          for (const other of reached.get(name)?.refersTo ?? []) if (!reached.has(other)) next.add(other)
        }
        ;[waiting, distance] = [next, distance + 1]
      }
      return [...reached.values()]
    },
  }
}

const hashKey = (key: string) => createHash('sha256').update(key).digest('hex').slice(0, 6)

/** Returns `Pet` for `#/components/schemas/Pet`, otherwise the last keys. Independent of the selected operations. */
function createName(key: string, place: Place, taken: ReadonlyMap<string, unknown>): string {
  const keys = placePath(place)
  const [, kind, last = ''] = keys.map(String)
  const isNamed = keys.length === 3 && kind === 'schemas'
  const plain = (isNamed ? last : keys.slice(-3).join('_')) || 'document'
  const name = plain.replaceAll(/[^\w.-]/g, '_')
  return (isNamed && name === plain) || !taken.has(name) ? name : `${name}_${hashKey(key)}`
}
