// Where something stands in a config file, and the path that leads to a value.
// Readers of every format (read-document.ts, locate-in-code.ts) answer with these.
import type { Path } from '../http/errors.ts'

/** Both count from 1. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** Finds the key, or the list entry, that a path ends in; undefined where that is not certain. */
export type Locate = (path: Path) => Position | undefined

/** The position of the character at `offset`. */
export function positionAt(source: string, offset: number): Position {
  const before = source.slice(0, offset)
  const start = before.lastIndexOf('\n') + 1
  return { line: before.split('\n').length, column: offset - start + 1 }
}
