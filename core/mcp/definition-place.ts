// Source locations of definitions, so that logs can name the definition of a failure.
import type { Definition } from './define.ts'

interface Place {
  readonly file?: string
  readonly line?: number
}

const places = new WeakMap<Definition, () => Place>()

export function notePlace(definition: Definition, find: () => Place): void {
  let found: Place | undefined
  places.set(definition, () => {
    found ??= find()
    return found
  })
}

function blameDefinition(error: Error, definition: Definition): Error {
  const { file, line = 1 } = places.get(definition)?.() ?? {}
  const frame = file === undefined ? '' : `\n    at ${definition.name} (${file}:${line}:1)`
  error.stack = `${error.name}: ${error.message}${frame}`
  return error
}

export const encodingError = (error: unknown, definition: Definition): unknown =>
  error instanceof TypeError ? blameDefinition(error, definition) : error
