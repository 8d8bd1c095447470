// Maps that create values on demand, and maps of counts.

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

/** Adds to the count of `key`. Deletes the key at zero. */
export function addCount<Key>(counts: Map<Key, number>, key: Key, added: number): void {
  const count = (counts.get(key) ?? 0) + added
  if (count > 0) counts.set(key, count)
  else counts.delete(key)
}
