// Maps whose values are created when they are first needed.

/** Returns the value of a key, which `create` makes and the map keeps if there is none. */
export function getOrCreate<Key, Value>(
  map: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  create: (key: Key) => Value,
): Value {
  const known = map.get(key)
  if (known !== undefined) return known
  const value = create(key)
  map.set(key, value)
  return value
}
