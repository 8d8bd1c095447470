// Values as JSON would hold them: for whoever checks what was written in code, where a key may be there and undefined.

/** An object that is written out, not an instance of a class. */
export function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  // A config that was made in another realm, as by a CommonJS loader, has another Object.prototype.
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
