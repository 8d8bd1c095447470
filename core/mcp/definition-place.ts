// Where definitions are written, for failures that no line of their author threw: the log then names the definition.
// Noted by core/create-host.ts; looked up when something failed, and then once.
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

/** The error with the definition as its only frame; where nobody knows its file, without frames: those would be ours. */
function blameDefinition(error: Error, definition: Definition): Error {
  const { file, line = 1 } = places.get(definition)?.() ?? {}
  const frame = file === undefined ? '' : `\n    at ${definition.name} (${file}:${line}:1)`
  error.stack = `${error.name}: ${error.message}${frame}`
  return error
}

/** An error from the encoding of a handler's value: a TypeError gets the definition as its only frame. */
export const encodingError = (error: unknown, definition: Definition): unknown =>
  error instanceof TypeError ? blameDefinition(error, definition) : error
