// A schema that leads back to itself without a step into the value: nothing can be held against it, for that would never end.
// For schema.ts, which tells its author at start-up.
import { isObject } from '../is-object.ts'
import type { JsonSchema } from '../protocol.ts'
import { stepsOf } from './read-errors.ts'
import { subschemas } from './subschemas.ts'

type Steps = readonly string[]

/** What a reference by a JSON pointer (RFC 6901, in a URI) names; undefined for any other, and where it names no schema. */
function targetOf(ref: unknown, root: JsonSchema): JsonSchema | undefined {
  if (typeof ref !== 'string' || !/^#(?:\/|$)/.test(ref)) return undefined
  try {
    const below = (part: unknown, step: string | number) =>
      Object.hasOwn(Object(part), step) ? Reflect.get(Object(part), step) : undefined
    const found = stepsOf(decodeURIComponent(ref.slice(1)), root).reduce<unknown>(below, root)
    return isObject(found) ? found : undefined
  } catch {
    return undefined
  }
}

/** The schemas that a value is held against whenever it is held against this one. */
function* heldAlong(schema: JsonSchema, root: JsonSchema): Generator<JsonSchema> {
  const target = targetOf(schema['$ref'], root)
  if (target) yield target
  for (const list of [schema['allOf'], schema['oneOf'], [schema['not']], [schema['if']]]) {
    if (Array.isArray(list)) yield* list.filter(isObject)
  }
}

const pointerOf = (steps: Steps) =>
  ['#', ...steps.map(step => step.replaceAll('~', '~0').replaceAll('/', '~1'))].join('/')

export interface Circle {
  /** Where it begins. */
  readonly steps: Steps
  /** Every schema of it as a JSON pointer, the first one at its end again. */
  readonly pointers: readonly string[]
}

/** The first circle that is found. None where a part has an `$id`, by which references mean something else. */
export function findCircle(root: JsonSchema): Circle | undefined {
  const places = new Map<JsonSchema, Steps>()
  for (const { schema, path } of subschemas(root)) {
    if (schema !== root && schema['$id'] !== undefined) return undefined
    places.set(schema, path)
  }
  const free = new Set<JsonSchema>()
  for (const start of places.keys()) {
    const circle = circleFrom(start, root, free)
    if (!circle) continue
    const steps = circle.map(schema => places.get(schema) ?? [])
    return { steps: steps[0] ?? [], pointers: [...steps, steps[0] ?? []].map(pointerOf) }
  }
  return undefined
}

/** Adds to `free` what leads to none. */
function circleFrom(start: JsonSchema, root: JsonSchema, free: Set<JsonSchema>): readonly JsonSchema[] | undefined {
  const way = [{ schema: start, next: heldAlong(start, root) }]
  for (let last = way.at(-1); last; last = way.at(-1)) {
    const { value, done } = last.next.next()
    if (done) {
      free.add(last.schema)
      way.pop()
    } else if (!free.has(value)) {
      const from = way.findIndex(({ schema }) => schema === value)
      if (from !== -1) return way.slice(from).map(({ schema }) => schema)
      way.push({ schema: value, next: heldAlong(value, root) })
    }
  }
  return undefined
}
