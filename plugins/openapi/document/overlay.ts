// Applies OpenAPI Overlay 1.0 documents to a document, in place.
import { assertInstalled } from '../../../core/auth.ts'
import { errorText, isObject } from '../../../core/plugin.ts'
import { below, DocumentError, type DocumentFile, rootPlace } from './place.ts'

type Key = string | number

/** Throws a DocumentError for an overlay that is not valid. */
export async function applyOverlay(overlay: DocumentFile, target: DocumentFile): Promise<DocumentFile> {
  assertInstalled(['jsonpath-rfc9535'], { what: `The overlay ${overlay.name}` })
  const { exec } = await import('jsonpath-rfc9535')
  const place = rootPlace(overlay)
  const { root } = overlay
  if (!isObject(root)) throw new DocumentError(place, 'an overlay must be an object')
  const { overlay: version, actions } = root
  if (!/^1\.\d/.test(`${version}`)) throw new DocumentError(below(place, 'overlay'), 'must be version 1.0')
  if (!Array.isArray(actions)) throw new DocumentError(below(place, 'actions'), 'must be a list')
  let written = 0
  for (const [index, action] of actions.entries()) {
    const at = below(place, 'actions', index)
    if (!isObject(action)) throw new DocumentError(at, 'an action must be an object')
    const path = action['target']
    if (typeof path !== 'string') throw new DocumentError(below(at, 'target'), 'must be a JSONPath')
    if (overlay.url.protocol !== 'file:' && !isSimple(path))
      throw new DocumentError(below(at, 'target'), 'is too complex for an overlay at a URL')
    const found: Key[][] = []
    const { length } = JSON.stringify(action['update'] ?? null)
    try {
      exec(target.root as Parameters<typeof exec>[0], path, (_, keys) => void found.push(keysOf(keys)))
    } catch (error) {
      throw new DocumentError(below(at, 'target'), `is not a JSONPath: ${errorText(error)}`)
    }
    if (action['remove'] !== true) written += found.length * length
    if (overlay.url.protocol !== 'file:' && written > MAX_WRITTEN)
      throw new DocumentError(below(at, 'update'), 'writes too much for an overlay at a URL')
    if (action['remove'] === true) for (const keys of found.reverse()) remove(target.root, keys)
    else if (action['update'] !== undefined)
      for (const keys of found) update(valueAt(target.root, keys), action['update'])
  }
  // True if a path contains an index, because list items may have moved.
  const hasIndex = (path: readonly Key[]) => path.some(key => /^\d+$/.test(`${key}`))
  return { ...target, lineAt: path => (hasIndex(path) ? undefined : target.lineAt(path)) }
}

/** Maximum length of a target in an overlay at a URL. */
const MAX_TARGET = 1_000

/** Maximum characters that the actions of an overlay at a URL write. */
const MAX_WRITTEN = 8 * 1_024 ** 2

/** True if the time for a target is about linear: without regular expressions, unions and nested searches. */
function isSimple(target: string): boolean {
  if (target.length > MAX_TARGET) return false
  const syntax = target.replaceAll(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/g, '')
  return !/,|\b(?:match|search)\s*\(/.test(syntax) && ['..', '?', '$'].every(one => syntax.split(one).length <= 2)
}

/** Names in paths use the escapes of normalized paths (RFC 9535, 2.7). */
const keysOf = (path: readonly Key[]): Key[] =>
  path.map(key => (typeof key === 'number' ? key : key.replaceAll(/\\(u[\da-fA-F]{4}|.)/gs, decodeEscape)))

function decodeEscape(escaped: string, code: string): string {
  return code === "'" ? code : (JSON.parse(`"${escaped}"`) as string)
}

const valueAt = (root: unknown, keys: readonly Key[]): unknown =>
  keys.reduce((value, key) => (typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined), root)

function remove(root: unknown, keys: readonly Key[]): void {
  const key = keys.at(-1)
  const parent = valueAt(root, keys.slice(0, -1))
  if (Array.isArray(parent) && typeof key === 'number') parent.splice(key, 1)
  else if (isObject(parent) && key !== undefined) delete (parent as Record<string, unknown>)[key]
}

/** Merges objects. Lists get the value as a new item, or the items of a list. */
function update(target: unknown, value: unknown): void {
  if (Array.isArray(target)) addItems(target, [structuredClone(value)].flat())
  else if (isObject(target) && isObject(value)) merge(target as Record<string, unknown>, value)
}

/** `push(...items)` overflows the stack for long lists. */
function addItems(list: unknown[], items: readonly unknown[]): void {
  for (const item of items) list.push(item)
}

function merge(target: Record<string, unknown>, value: Readonly<Record<string, unknown>>): void {
  for (const [key, added] of Object.entries(value)) {
    const own = Object.hasOwn(target, key) ? target[key] : undefined
    if (isObject(own) && isObject(added)) merge(own as Record<string, unknown>, added)
    else if (Array.isArray(own) && Array.isArray(added)) addItems(own, structuredClone(added))
    // Unlike an assignment, `defineProperty` never sets a prototype.
    else Object.defineProperty(target, key, { value: structuredClone(added), ...OWN })
  }
}

const OWN = { configurable: true, enumerable: true, writable: true } as const
