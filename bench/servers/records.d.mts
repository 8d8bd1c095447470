/** The text of so many megabytes of records. */
export function makeRecords(megabytes: number): string
