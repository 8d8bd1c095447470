// Times as they are printed; a time from outside can be one that no date can have.
/** ISO 8601 of milliseconds since the epoch; undefined for a time that no date can have. */
export function isoTime(at: number): string | undefined {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}
