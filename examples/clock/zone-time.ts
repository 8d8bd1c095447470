// Time-zone arithmetic with nothing but Intl: what a clock on a wall shows, and when it shows it.
// clock.ts turns it into tools; it knows nothing of MCP.

const DAY = 86_400_000

/** What the clocks of a zone show at one moment. */
export interface ZoneReading {
  zone: string
  /** `YYYY-MM-DDTHH:mm:ss`, without an offset. */
  local: string
  /** `+05:30`; with seconds for the local mean times of long ago. */
  offset: string
  /** In English. */
  weekday: string
}

/** The moment that a local time names. Moments are milliseconds since 1970. */
export type LocalMoment =
  | { readonly occurs: 'once' | 'never'; readonly instant: number }
  /** Clocks were set back over it: `instant` is its first occurrence, `second` the other. */
  | { readonly occurs: 'twice'; readonly instant: number; readonly second: number }

const formatters = new Map<string, Intl.DateTimeFormat>()

// One formatter costs as much as hundreds of readings. Only names of real zones get in, and in one spelling,
// so the map cannot grow past their number.
function formatterOf(zone: string): Intl.DateTimeFormat {
  const key = zone.toLowerCase()
  const known = formatters.get(key)
  if (known) return known
  const numeric = 'numeric'
  const fields = {
    year: numeric,
    month: numeric,
    day: numeric,
    hour: numeric,
    minute: numeric,
    second: numeric,
  } as const
  const formatter = new Intl.DateTimeFormat('en-US', { timeZone: zone, hourCycle: 'h23', ...fields })
  formatters.set(key, formatter)
  return formatter
}

/** Whether Intl knows the zone: canonical names and aliases, in any case; never a bare offset. */
export function isZone(zone: string): boolean {
  if (!/^[a-z]/i.test(zone)) return false
  try {
    formatterOf(zone)
    return true
  } catch {
    return false
  }
}

/** What the clocks show, as the milliseconds at which a clock in UTC shows the same. */
function wallClock(instant: number, zone: string): number {
  const parts = formatterOf(zone).formatToParts(instant)
  const part = (name: Intl.DateTimeFormatPartTypes) => Number(parts.find(({ type }) => type === name)?.value)
  return Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'))
}

const offsetAt = (instant: number, zone: string) => wallClock(instant, zone) - Math.floor(instant / 1000) * 1000

const formatWall = (wall: number) => new Date(wall).toISOString().replace(/\.\d+Z$/, '')

function formatOffset(offset: number): string {
  const [hours = '', minutes = '', seconds = ''] = new Date(Math.abs(offset)).toISOString().slice(11, 19).split(':')
  return `${offset < 0 ? '-' : '+'}${hours}:${minutes}${seconds === '00' ? '' : `:${seconds}`}`
}

const weekdays = new Intl.DateTimeFormat('en-US', { timeZone: 'UTC', weekday: 'long' })

/** Reads the clocks of a zone. Throws a RangeError for a zone that Intl does not know. */
export function readInZone(instant: number, zone: string): ZoneReading {
  const wall = wallClock(instant, zone)
  const offset = formatOffset(offsetAt(instant, zone))
  return { zone, local: formatWall(wall), offset, weekday: weekdays.format(wall) }
}

/**
 * Reads `HH:mm`, `HH:mm:ss` or either after `YYYY-MM-DDT`; without a date it is today in `zone` as of `now`.
 * Undefined for anything else, and for a day or hour that no calendar has.
 */
export function parseLocal(text: string, zone: string, now: number): number | undefined {
  const match = /^(?:([1-9]\d{3}-\d\d-\d\d)T)?(\d\d:\d\d)(:\d\d)?$/.exec(text)
  if (!match) return undefined
  const [, date = formatWall(wallClock(now, zone)).slice(0, 10), time, seconds = ':00'] = match
  const full = `${date}T${time}${seconds}`
  const wall = Date.parse(`${full}Z`)
  // Some engines read 30 February as 2 March.
  return Number.isNaN(wall) || formatWall(wall) !== full ? undefined : wall
}

/**
 * The moment at which the clocks of `zone` show `wall` (from `parseLocal`). A time that occurs twice is its first
 * occurrence. One that clocks jumped over is read as if they had not: as much later as the jump was wide.
 */
export function findMoment(wall: number, zone: string): LocalMoment {
  // No offset reaches 24 hours, so a day to either side is before and after any change that touches `wall`.
  const before = wall - offsetAt(wall - DAY, zone)
  const after = wall - offsetAt(wall + DAY, zone)
  const [instant, second] = [...new Set([before, after])].filter(moment => wallClock(moment, zone) === wall)
  if (instant === undefined) return { occurs: 'never', instant: before }
  return second === undefined ? { occurs: 'once', instant } : { occurs: 'twice', instant, second }
}

/** Zones whose name contains `query`; spaces count as underscores, case does not count. */
export function searchZones(query: string): string[] {
  const wanted = query.trim().replaceAll(/\s+/g, '_')
  const zones = ['UTC', ...Intl.supportedValuesOf('timeZone')]
  const found = zones.filter(zone => zone.toLowerCase().includes(wanted.toLowerCase()))
  if (found.length > 0) return found
  // Intl lists each zone under one name (Asia/Calcutta) but accepts the others too (Asia/Kolkata).
  const city = wanted.replaceAll(/(?<=^|_)[a-z]/g, letter => letter.toUpperCase())
  const regions = new Set(zones.filter(zone => zone.includes('/')).map(zone => zone.slice(0, zone.indexOf('/'))))
  return [wanted, ...[...regions].map(region => `${region}/${city}`)].filter(isZone)
}
