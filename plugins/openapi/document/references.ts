// Resolves `$ref` in the documents of one API.
import { isObject } from '../../../core/plugin.ts'
import type { Documents } from './load.ts'
import { below, DocumentError, type DocumentFile, type Place, parsePointer, rootPlace } from './place.ts'

export interface Found {
  readonly value: unknown
  readonly place: Place
}

/** Maximum length of a chain of `$ref`s. */
const MAX_CHAIN = 32
/** Maximum depth of the search for `$id` and `$anchor`. */
const MAX_SEARCHED = 100

export type References = ReturnType<typeof createReferences>

export function createReferences(documents: Documents) {
  const anchors = new WeakMap<DocumentFile, ReadonlyMap<string, Found>>()

  /** Returns values with an `$id` or `$anchor`, by URL. */
  function anchorsOf(file: DocumentFile): ReadonlyMap<string, Found> {
    const known = anchors.get(file)
    if (known) return known
    const found = new Map<string, Found>()
    const waiting = [{ value: file.root, place: rootPlace(file), base: file.url.href, depth: 0 }]
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const { value, place, depth } = next
      if (depth > MAX_SEARCHED || typeof value !== 'object' || value === null) continue
      const { $id, $anchor, $dynamicAnchor } = value as Readonly<Record<string, unknown>>
      const base = (typeof $id === 'string' && URL.parse($id, next.base)?.href) || next.base
      if (base !== next.base) found.set(withoutFragment(base), { value, place })
      for (const name of [$anchor, $dynamicAnchor]) {
        if (typeof name === 'string') found.set(`${withoutFragment(base)}#${name}`, { value, place })
      }
      for (const [key, child] of Object.entries(value)) {
        if (typeof child === 'object') waiting.push({ value: child, place: below(place, key), base, depth: depth + 1 })
      }
    }
    anchors.set(file, found)
    return found
  }

  function at(start: Found, keys: readonly string[], from: Place, ref: string): Found {
    let { value, place } = start
    for (const key of keys) {
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) {
        throw new DocumentError(from, `$ref "${ref}" cannot be resolved: ${JSON.stringify(key)} does not exist`)
      }
      value = Reflect.get(value, key)
      place = below(place, key)
    }
    return { value, place }
  }

  const local = new WeakMap<DocumentFile, Map<string, Found>>()

  /** Returns the value that a `$ref` names. `base`: the URL of the enclosing `$id`, by default that of the file. */
  function target(ref: string, from: Place, base = from.file.url.href): Found {
    const { file } = from
    if (base !== file.url.href || !ref.startsWith('#/')) return search(ref, from, base)
    const known = local.get(file) ?? new Map<string, Found>()
    local.set(file, known)
    const found = known.get(ref) ?? search(ref, from, base)
    known.set(ref, found)
    return found
  }

  function search(ref: string, from: Place, base: string): Found {
    const { file } = from
    const url = URL.parse(ref, base)
    if (!url) throw new DocumentError(from, `$ref "${ref}" is not a URL`)
    const document = withoutFragment(url.href)
    const isHere = document === withoutFragment(file.url.href)
    const keys = parsePointer(url.hash)
    if (isHere && keys) return at({ value: file.root, place: rootPlace(file) }, keys, from, ref)
    const inFile = anchorsOf(file)
    const resource = inFile.get(document)
    if (keys && resource) return at(resource, keys, from, ref)
    const anchor = inFile.get(url.href)
    if (anchor) return anchor
    const other = isHere || resource ? undefined : documents.of(new URL(document), from)
    if (other && keys) return at({ value: other.root, place: rootPlace(other) }, keys, from, ref)
    const elsewhere = other && anchorsOf(other).get(url.href)
    if (!elsewhere) throw new DocumentError(from, `$ref "${ref}" cannot be resolved: the anchor does not exist`)
    return elsewhere
  }

  return {
    target,
    /** Returns the value, or the target of its `$ref`. */
    follow(found: Found): Found {
      let now = found
      for (let steps = 0; isObject(now.value) && typeof now.value['$ref'] === 'string'; steps++) {
        if (steps === MAX_CHAIN) throw new DocumentError(found.place, '`$ref` refers to itself')
        now = target(now.value['$ref'], below(now.place, '$ref'))
      }
      return now
    },
  }
}

function withoutFragment(url: string): string {
  const [before = ''] = url.split('#', 1)
  return before
}
