// Converts between instants and local times of time zones, with Intl only. Instants are milliseconds since 1970.

const DAY = 86_400_000

/** The local time of a zone at an instant. */
export interface ZoneReading {
  zone: string
  /** `YYYY-MM-DDTHH:mm:ss`, without an offset. */
  local: string
  /** `+05:30`. Historical local mean times also have seconds. */
  offset: string
  /** In English. */
  weekday: string
}

/** The instant of a local time. */
export type LocalMoment =
  | { readonly occurs: 'once' | 'never'; readonly instant: number }
  /** Clocks were set back: `instant` is the first occurrence, `second` the second one. */
  | { readonly occurs: 'twice'; readonly instant: number; readonly second: number }

const formatters = new Map<string, Intl.DateTimeFormat>()

// Creating a formatter costs as much as hundreds of conversions. The cache is limited by the number of valid zone names.
function getFormatter(zone: string): Intl.DateTimeFormat {
  const key = zone.toLowerCase()
  const cached = formatters.get(key)
  if (cached) return cached
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

/** Accepts canonical names and aliases in any case, but not offsets. */
export function isZone(zone: string): boolean {
  if (!/^[a-z]/i.test(zone)) return false
  try {
    getFormatter(zone)
    return true
  } catch {
    return false
  }
}

/** The local time at an instant, as the milliseconds at which UTC has the same local time. */
function toWallTime(instant: number, zone: string): number {
  const parts = getFormatter(zone).formatToParts(instant)
  const part = (name: Intl.DateTimeFormatPartTypes) => Number(parts.find(({ type }) => type === name)?.value)
  return Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'))
}

const offsetAt = (instant: number, zone: string) => toWallTime(instant, zone) - Math.floor(instant / 1000) * 1000

const formatWallTime = (wallTime: number) => new Date(wallTime).toISOString().replace(/\.\d+Z$/, '')

function formatOffset(offset: number): string {
  const [hours = '', minutes = '', seconds = ''] = new Date(Math.abs(offset)).toISOString().slice(11, 19).split(':')
  return `${offset < 0 ? '-' : '+'}${hours}:${minutes}${seconds === '00' ? '' : `:${seconds}`}`
}

const weekdays = new Intl.DateTimeFormat('en-US', { timeZone: 'UTC', weekday: 'long' })

/** Throws a RangeError if the zone is invalid. */
export function readInZone(instant: number, zone: string): ZoneReading {
  const wallTime = toWallTime(instant, zone)
  const offset = formatOffset(offsetAt(instant, zone))
  return { zone, local: formatWallTime(wallTime), offset, weekday: weekdays.format(wallTime) }
}

/**
 * Parses `HH:mm` or `HH:mm:ss`, optionally after `YYYY-MM-DDT`. The default date is the date of `now` in `zone`.
 * Returns undefined for other formats and for dates or times that do not exist.
 */
export function parseLocal(text: string, zone: string, now: number): number | undefined {
  const match = /^(?:([1-9]\d{3}-\d\d-\d\d)T)?(\d\d:\d\d)(:\d\d)?$/.exec(text)
  if (!match) return undefined
  const [, date = formatWallTime(toWallTime(now, zone)).slice(0, 10), time, seconds = ':00'] = match
  const full = `${date}T${time}${seconds}`
  const wallTime = Date.parse(`${full}Z`)
  // Some engines parse 30 February as 2 March.
  return Number.isNaN(wallTime) || formatWallTime(wallTime) !== full ? undefined : wallTime
}

/**
 * Returns the instant of a local time from `parseLocal`. If a time occurs twice, `instant` is the first occurrence. Skipped
 * times are moved forward by the length of the gap.
 */
export function findMoment(wallTime: number, zone: string): LocalMoment {
  // Offsets are smaller than a day, so these are the offsets before and after any clock change at this time.
  const before = wallTime - offsetAt(wallTime - DAY, zone)
  const after = wallTime - offsetAt(wallTime + DAY, zone)
  const [instant, second] = [...new Set([before, after])].filter(moment => toWallTime(moment, zone) === wallTime)
  if (instant === undefined) return { occurs: 'never', instant: before }
  return second === undefined ? { occurs: 'once', instant } : { occurs: 'twice', instant, second }
}

/** Finds zones whose name contains `query`, ignoring case. Spaces match underscores. */
export function searchZones(query: string): string[] {
  const name = query.trim().replaceAll(/\s+/g, '_')
  const zones = ['UTC', ...Intl.supportedValuesOf('timeZone')]
  const found = zones.filter(zone => zone.toLowerCase().includes(name.toLowerCase()))
  if (found.length > 0) return found
  // Intl lists one name per zone (Asia/Calcutta), but also accepts its aliases (Asia/Kolkata).
  const city = name.replaceAll(/(?<=^|_)[a-z]/g, letter => letter.toUpperCase())
  const regions = new Set(zones.filter(zone => zone.includes('/')).map(zone => zone.slice(0, zone.indexOf('/'))))
  return [name, ...[...regions].map(region => `${region}/${city}`)].filter(isZone)
}
