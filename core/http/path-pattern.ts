// The paths of config and plugins, as patterns: what each may match, and which of two is the narrower.
// From the text of a key to what the path table (path-table.ts) and the routes (routes.ts) compare.
import { canonicalPath, encodeSegment } from './request-target.ts'
import { StartError, type Written } from './start-error.ts'

export const PARAMETER = /^:([A-Za-z_]\w*)(\?)?$/

export interface PathPart {
  /** Canonical, where the part is no parameter. */
  readonly text: string
  readonly parameter?: string
  readonly optional?: boolean
}

/** A path whose every part is there. */
export type Pattern = readonly PathPart[]

/** Without its trailing slash. */
export const normalize = (path: string): string => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path)

/** A part's text in its one spelling: what a URL escapes may be written escaped or plain. */
function canonicalText(text: string): string | undefined {
  const written = text.includes('%') ? text : encodeSegment(text)
  return canonicalPath(`/${written}`)?.slice(1)
}

/** Splits `/t/:category?`. Throws a StartError for what no path may have; it begins with `where`, or is there. */
export function parsePattern(path: string, where: string | Written): Pattern {
  const bad = (why: string) =>
    typeof where === 'string' ? new StartError(`${where}: ${why}`, { exitCode: 2 }) : new StartError(why, where)
  if (!path.startsWith('/')) throw bad('a path starts with "/"')
  const texts = path === '/' ? [] : normalize(path).slice(1).split('/')
  const parts = texts.map((text): PathPart => {
    const [, parameter, optional] = PARAMETER.exec(text) ?? []
    if (parameter !== undefined) return { text, parameter, optional: optional !== undefined }
    if (/[:*?{}()[\]!+\\#<>]/.test(text)) throw bad(`"${text}" is neither plain text nor a parameter such as ":name"`)
    const canonical = text === '' ? undefined : canonicalText(text)
    if (canonical === undefined) throw bad(`no request's path has "${text}" between its slashes`)
    return { text: canonical }
  })
  const names = parts.flatMap(({ parameter }) => parameter ?? [])
  if (new Set(names).size < names.length) throw bad('a parameter occurs twice')
  return parts
}

/** Each form that a pattern's addresses can have: with its optional parameter, and without. */
export function formsOf(pattern: Pattern): Array<{ readonly pattern: Pattern; readonly shortened: boolean }> {
  const full = { pattern: pattern.map(({ optional: _, ...part }) => part), shortened: false }
  if (!pattern.some(({ optional }) => optional)) return [full]
  return [full, { pattern: pattern.filter(({ optional }) => !optional), shortened: true }]
}

/** Patterns of one shape match the same paths; that of a fixed path is the path. */
export const shapeOf = (pattern: Pattern): string =>
  `/${pattern.map(({ text, parameter }) => (parameter === undefined ? text : '{}')).join('/')}`

/** Orders patterns that can match one path: the one whose text comes first before the one whose parameter does. */
export const rankOf = (pattern: Pattern): string =>
  pattern.map(({ parameter }) => (parameter === undefined ? '0' : '1')).join('')

const isFixed = ({ parameter }: PathPart) => parameter === undefined

/** The pattern of what both match; undefined where nothing is. */
export function meetingOf(one: Pattern, other: Pattern): Pattern | undefined {
  if (one.length !== other.length) return undefined
  const parts: PathPart[] = []
  for (const [index, part] of one.entries()) {
    const beside = other[index] as PathPart
    if (isFixed(part) && isFixed(beside) && part.text !== beside.text) return undefined
    parts.push(isFixed(part) ? part : beside)
  }
  return parts
}

/** Whether `one` matches every path that `other` does. */
export function covers(one: Pattern, other: Pattern): boolean {
  const meeting = meetingOf(one, other)
  return meeting !== undefined && shapeOf(meeting) === shapeOf(other)
}

/** Whether a path that `pattern` matches is at `place` or below it. */
export const reaches = (place: Pattern, pattern: Pattern): boolean =>
  pattern.length >= place.length && meetingOf(place, pattern.slice(0, place.length)) !== undefined

/** The pattern with these parameters filled in. An optional one that is absent is left out. */
export function fill(pattern: Pattern, params: Readonly<Record<string, string>>): Pattern {
  return pattern.flatMap((part): PathPart[] => {
    const value = part.parameter === undefined ? undefined : params[part.parameter]
    if (value !== undefined) return [{ text: encodeSegment(value) }]
    return part.optional ? [] : [part]
  })
}
