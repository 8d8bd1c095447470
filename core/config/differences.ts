// Where two versions of a config differ, as paths of keys. Never a value: it may be a secret.
import { isDeepStrictEqual } from 'node:util'
import type { Path } from '../http/start-error.ts'
import { isPlain } from './plain.ts'

/** Functions are new ones whenever their module is imported anew: of one text they count as the same. */
export function differences(before: unknown, after: unknown, path: Path = []): Path[] {
  if (Object.is(before, after)) return []
  if (typeof before === 'function' && typeof after === 'function') {
    return String(before) === String(after) ? [] : [path]
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    return before.flatMap((item, index) => differences(item, after[index], [...path, index]))
  }
  if (isPlain(before) && isPlain(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...keys].flatMap(key => differences(Reflect.get(before, key), Reflect.get(after, key), [...path, key]))
  }
  return isDeepStrictEqual(before, after) ? [] : [path]
}
