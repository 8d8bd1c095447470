// Where something stands in a config file, and the path that leads to a value.
// Readers of every format (read-document.ts, locate-in-code.ts) answer with these.

/** Both count from 1. */
export interface Position {
  readonly line: number
  readonly column: number
}

export type Path = readonly (string | number)[]

/** Finds the key, or the list entry, that a path ends in; undefined where that is not certain. */
export type Locate = (path: Path) => Position | undefined

/** The position of the character at `offset`. */
export function positionAt(source: string, offset: number): Position {
  const before = source.slice(0, offset)
  const start = before.lastIndexOf('\n') + 1
  return { line: before.split('\n').length, column: offset - start + 1 }
}

/** A path as one would write it: `routes['/admin'].toolsets[0]`. The empty path is `(config)`. */
export function formatPath(path: Path): string {
  if (path.length === 0) return '(config)'
  return path
    .map(key => (typeof key === 'number' ? `[${key}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `['${key}']`))
    .join('')
    .replace(/^\./, '')
}
