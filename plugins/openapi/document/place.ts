// Places in documents, for errors that name file, line and JSON pointer.

type Key = string | number

/** A file or URL with its parsed value. */
export interface DocumentFile {
  /** The path as in the config, or the URL, for messages. */
  readonly name: string
  /** `file:` or `https:`; `http:` for allowed hosts. */
  readonly url: URL
  readonly root: unknown
  /** Parses the text again, so only for errors. Undefined for values that an overlay added. */
  lineAt(path: readonly Key[]): number | undefined
}

/** The location of a value in a document, as the list of its keys, last key first. */
export interface Place {
  readonly file: DocumentFile
  readonly key?: Key
  readonly parent?: Place
}

export const rootPlace = (file: DocumentFile): Place => ({ file })

export const below = (parent: Place, ...keys: readonly Key[]): Place => {
  let place = parent
  for (const key of keys) place = { file: parent.file, key, parent: place }
  return place
}

export function placePath(place: Place): Key[] {
  const path: Key[] = []
  for (let at: Place | undefined = place; at?.key !== undefined; at = at.parent) path.push(at.key)
  return path.reverse()
}

const encode = (key: Key) => `${key}`.replaceAll('~', '~0').replaceAll('/', '~1')

export const toPointer = (place: Place): string => ['#', ...placePath(place).map(encode)].join('/')

/** Returns the keys of a pointer such as `#/paths/~1pets/get`; undefined for other fragments. */
export function parsePointer(fragment: string): string[] | undefined {
  if (fragment === '' || fragment === '#') return []
  try {
    const pointer = decodeURIComponent(fragment.replace(/^#/, ''))
    if (!pointer.startsWith('/')) return undefined
    return pointer
      .slice(1)
      .split('/')
      .map(key => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  } catch {
    return undefined
  }
}

/** Returns the line of the value, or of the nearest value that contains a missing one. */
function lineAt(place: Place): number | undefined {
  for (let path = placePath(place); ; path = path.slice(0, -1)) {
    const line = place.file.lineAt(path)
    if (line !== undefined || path.length === 0) return line
  }
}

/** Formats `orders.yaml:12 (#/paths/~1orders/get): text`. */
export function withLocation(place: Place, text: string): string {
  const line = lineAt(place)
  return `${place.file.name}${line === undefined ? '' : `:${line}`} (${toPointer(place)}): ${text}`
}

/** A fault of a document with its location. */
export class DocumentError extends Error {
  readonly place: Place
  readonly fault: string

  constructor(place: Place, fault: string) {
    super(fault)
    this.name = 'DocumentError'
    this.place = place
    this.fault = fault
  }
}

/** A document that a `$ref` names and that is not loaded yet. */
export class MissingDocument extends Error {
  readonly url: URL
  readonly place: Place

  constructor(url: URL, place: Place) {
    super(`${url} is not loaded`)
    this.name = 'MissingDocument'
    this.url = url
    this.place = place
  }
}
