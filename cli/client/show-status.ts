// What is known about logins, in words. Times are local and to the minute.

/** `2026-01-31 18:05`; milliseconds since the epoch. */
export function localTime(at: number): string {
  const date = new Date(at)
  const two = (value: number) => String(value).padStart(2, '0')
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-')
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`
}

/** Until when a login serves. */
export function describeEnd(expiresAt: number | undefined, refreshable: boolean): string {
  const end = expiresAt === undefined ? 'until it is revoked' : `until ${localTime(expiresAt)}`
  return refreshable ? `${end}, then renewed by itself` : end
}
