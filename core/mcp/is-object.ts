// What JSON calls an object, which to JavaScript lists and null are too.

/** True for a JSON object: no list, and not null. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
