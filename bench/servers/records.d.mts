/** Returns a JSON text of this size. */
export function makeRecords(megabytes: number): string
