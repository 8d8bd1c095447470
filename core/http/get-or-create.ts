// Reads a value of a map, or creates it.

/** Returns the value of `key`. For a missing key, stores the result of `create` first. */
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
