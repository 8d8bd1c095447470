// Path patterns of routes and plugins: parsing, overlap and precedence. path-table.ts matches requests.

import { type ConfigLocation, StartError, stopAtFirst } from './errors.ts'
import { canonicalPath, encodeSegment } from './request-target.ts'

export const PARAMETER = /^:([A-Za-z_]\w*)(\?)?$/

interface PathPart {
  readonly text: string
  readonly parameter?: string
  readonly optional?: boolean
}

export type Pattern = readonly PathPart[]

export const normalize = (path: string): string => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path)

function canonicalText(text: string): string | undefined {
  const encoded = text.includes('%') ? text : encodeSegment(text)
  return canonicalPath(`/${encoded}`)?.slice(1)
}

/** Parses a pattern such as `/t/:category?`. Throws a StartError at `where`. */
export function parsePattern(path: string, where: string | ConfigLocation): Pattern {
  const fail = (why: string) =>
    typeof where === 'string'
      ? new StartError('MH1201', `${where}: ${why}`, { exitCode: 2 })
      : new StartError('MH1201', why, where)
  if (!path.startsWith('/')) throw fail('a path starts with "/"')
  const texts = path === '/' ? [] : normalize(path).slice(1).split('/')
  const parts = texts.map((text): PathPart => {
    const [, parameter, optional] = PARAMETER.exec(text) ?? []
    if (parameter !== undefined) return { text, parameter, optional: optional !== undefined }
    if (/[:*?{}()[\]!+\\#<>]/.test(text)) throw fail(`"${text}" is neither plain text nor a parameter such as ":name"`)
    const canonical = text === '' ? undefined : canonicalText(text)
    if (canonical === undefined) throw fail(`"${text}" cannot be a segment of a path`)
    return { text: canonical }
  })
  const names = parts.flatMap(({ parameter }) => parameter ?? [])
  if (new Set(names).size < names.length) throw fail('a parameter occurs twice')
  return parts
}

export function formsOf(pattern: Pattern): Array<{ readonly pattern: Pattern; readonly shortened: boolean }> {
  const full = { pattern: pattern.map(({ optional: _, ...part }) => part), shortened: false }
  if (!pattern.some(({ optional }) => optional)) return [full]
  return [full, { pattern: pattern.filter(({ optional }) => !optional), shortened: true }]
}

export const shapeOf = (pattern: Pattern): string =>
  `/${pattern.map(({ text, parameter }) => (parameter === undefined ? text : '{}')).join('/')}`

export const rankOf = (pattern: Pattern): string =>
  pattern.map(({ parameter }) => (parameter === undefined ? '0' : '1')).join('')

const isFixed = ({ parameter }: PathPart) => parameter === undefined

function intersect(one: Pattern, other: Pattern): Pattern | undefined {
  if (one.length !== other.length) return undefined
  const parts: PathPart[] = []
  for (const [index, part] of one.entries()) {
    const otherPart = other[index] as PathPart
    if (isFixed(part) && isFixed(otherPart) && part.text !== otherPart.text) return undefined
    parts.push(isFixed(part) ? part : otherPart)
  }
  return parts
}

export function covers(one: Pattern, other: Pattern): boolean {
  const common = intersect(one, other)
  return common !== undefined && shapeOf(common) === shapeOf(other)
}

export const isPrefixOf = (prefix: Pattern, pattern: Pattern): boolean =>
  pattern.length >= prefix.length && intersect(prefix, pattern.slice(0, prefix.length)) !== undefined

export function fill(pattern: Pattern, params: Readonly<Record<string, string>>): Pattern {
  return pattern.flatMap((part): PathPart[] => {
    const value = part.parameter === undefined ? undefined : params[part.parameter]
    if (value !== undefined) return [{ text: encodeSegment(value) }]
    return part.optional ? [] : [part]
  })
}

type Params = Readonly<Record<string, string>>

interface Form {
  readonly path: string
  readonly pattern: Pattern
  readonly shortened: boolean
}

function isNarrower(one: Form, other: Form): boolean {
  const [first, second] = [rankOf(one.pattern), rankOf(other.pattern)]
  return first === second ? other.shortened && !one.shortened : first < second
}

function checkPair(
  one: Form,
  other: Form,
  shapes: ReadonlySet<string>,
  report: (of: string, error: StartError) => void,
) {
  const common = intersect(one.pattern, other.pattern)
  if (!common) return
  const otherRoute = `routes['${other.path}']`
  const reportConflict = (why: string) =>
    report(
      one.path,
      new StartError('MH1202', why, { at: ['routes', one.path], also: [{ at: ['routes', other.path] }] }),
    )
  const shape = shapeOf(common)
  if (shapeOf(one.pattern) === shapeOf(other.pattern)) {
    if (one.shortened === other.shortened) reportConflict(`it and ${otherRoute} are the same path; change one of them`)
  } else if (!covers(one.pattern, other.pattern) && !covers(other.pattern, one.pattern) && !shapes.has(shape)) {
    const place = `/${common.map(({ text }) => text).join('/')}`
    const fix = `add routes['${place}'], or change one of them`
    reportConflict(`it and ${otherRoute} both match ${place}, and neither is more specific; ${fix}`)
  }
}

export type RouteIndex = ReturnType<typeof indexRoutes>

export function indexRoutes(patterns: ReadonlyMap<string, Pattern>, report = stopAtFirst) {
  const forms = [...patterns].flatMap(([path, pattern]) => formsOf(pattern).map(form => ({ path, ...form })))
  const shapes = new Set(forms.map(({ pattern }) => shapeOf(pattern)))
  const failed = new Set<string>()
  const fail = (path: string, error: StartError) => {
    if (!failed.has(path)) report(error)
    failed.add(path)
  }
  for (const [index, form] of forms.entries()) {
    for (const other of forms.slice(0, index)) if (other.path !== form.path) checkPair(form, other, shapes, fail)
  }
  const byRoute = new Map(
    [...patterns.keys()].map(path => [
      path,
      forms
        .filter(form => form.path === path)
        .map(form => {
          const overlapping = forms.filter(other => other.path !== path && intersect(other.pattern, form.pattern))
          return { form, narrower: overlapping.filter(other => isNarrower(other, form)) }
        }),
    ]),
  )
  const isFull = ({ pattern }: Form, params: Params) =>
    pattern.every(({ parameter }) => parameter === undefined || params[parameter] !== undefined)

  return {
    hasFailed: (path: string) => failed.has(path),
    isTaken(path: string, params: Params) {
      const { form, narrower } = byRoute.get(path)?.find(entry => isFull(entry.form, params)) ?? {}
      if (!form || !narrower || narrower.length === 0) return false
      const concrete = fill(form.pattern, params)
      return narrower.some(({ pattern }) => covers(pattern, concrete))
    },
  }
}
