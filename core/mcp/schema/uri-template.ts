// URI templates (RFC 6570) read backwards: which values, expanded, would give this URI? Parsed once, at start-up.
// Matching fills a table from the URI's end, then walks it once: time grows with the URI, never faster.
import { MAX_URI } from '../client-limits.ts'
import { type Part, parseUriTemplate, type ValuePart } from './parse-uri-template.ts'

export interface CompiledUriTemplate {
  readonly template: string
  readonly variables: readonly string[]
  /**
   * The variables' values, percent-decoded, or undefined when the URI is not of this family. Every value but a
   * query's is at least one character long and takes as many as it can; a query's variables may be absent and come
   * in any order. A `{var}` never holds a slash, encoded or not, nor is it `.` or `..`; `{+var}`, `{#var}` and
   * `{/var*}` may, and what they hold must be checked before it becomes a file's path. URIs of more than 8,192
   * characters match nothing.
   */
  match(uri: string): Record<string, string> | undefined
}

/**
 * Compiles a template. Throws what is wrong with one that is malformed or cannot be matched: a prefix (`{var:3}`),
 * an exploded `{;list*}`, a variable named twice, anything but a fragment after a query.
 */
export function compileUriTemplate(template: string): CompiledUriTemplate {
  const parts = parseUriTemplate(template)
  const variables = parts.flatMap(part =>
    part.kind === 'value' ? [part.name] : part.kind === 'query' ? part.names : [],
  )
  const fits = parts.map(toFit)
  const prefix = literalOf(parts[0])
  const suffix = literalOf(parts.at(-1))
  return {
    template,
    variables,
    match(uri) {
      if (uri.length > MAX_URI || !uri.startsWith(prefix) || !uri.endsWith(suffix)) return undefined
      const values: [string, string][] = []
      return fillTable(fits, uri, prefix.length) && collect(parts, uri, values) ? Object.fromEntries(values) : undefined
    },
  }
}

const literalOf = (part: Part | undefined) => (part?.kind === 'literal' ? part.text : '')

/** What one part looks for, as numbers. */
type Fit = (codes: Uint8Array, length: number, next: Uint8Array, fits: Uint8Array) => boolean

/** The URI that is being matched, for whatever template: its ASCII, anything else as what no part names. */
const codes = new Uint8Array(MAX_URI)
const OTHER = 127
let read = ''

function readCodes(uri: string) {
  if (uri === read) return
  for (let at = 0; at < uri.length; at++) codes[at] = Math.min(uri.charCodeAt(at), OTHER)
  read = uri
}

/** Rows of the table, used again by every match: none is asynchronous. */
const rows: Uint8Array[] = []
function rowOf(index: number): Uint8Array {
  rows[index] ??= new Uint8Array(MAX_URI + 1)
  return rows[index]
}

/**
 * Fills `rows`: for each part and the end, where in the URI it and all that follows match what is left. 1 is yes. True
 * where all of it matches; `begin`: the length of a literal that it begins with, which is known to be there.
 */
function fillTable(fits: readonly Fit[], uri: string, begin: number): boolean {
  readCodes(uri)
  let next = rowOf(fits.length)
  next.fill(0, 0, uri.length)
  next[uri.length] = 1
  for (let index = fits.length - 1; index >= (begin === 0 ? 0 : 1); index--) {
    const row = rowOf(index)
    // Nothing before can match where this matches nowhere.
    if (!fits[index]?.(codes, uri.length, next, row)) return false
    next = row
  }
  return next[begin] === 1
}

const toFit = (part: Part): Fit =>
  part.kind === 'literal'
    ? fitLiteral(Buffer.from(part.text))
    : part.kind === 'value'
      ? fitValue(allowedBeside(part.excludes))
      : fitQuery(part.lead.charCodeAt(0))

const fitLiteral =
  (text: Uint8Array): Fit =>
  (codes, length, next, fits) => {
    const first = text[0]
    const last = length - text.length
    let any = 0
    for (let at = length; at > last; at--) fits[at] = 0
    for (let at = last; at >= 0; at--) {
      let is = codes[at] === first ? (next[at + text.length] ?? 0) : 0
      for (let index = 1; is === 1 && index < text.length; index++) if (codes[at + index] !== text[index]) is = 0
      fits[at] = is
      any |= is
    }
    return any === 1
  }

/** By code: 1 where a value may hold it. */
function allowedBeside(excludes: string): Uint8Array {
  const allowed = new Uint8Array(OTHER + 1).fill(1)
  for (const excluded of excludes) allowed[excluded.charCodeAt(0)] = 0
  return allowed
}

const fitValue =
  (allowed: Uint8Array): Fit =>
  (codes, length, next, fits) => {
    let any = 0
    fits[length] = 0
    // One character of the value, and then either the rest of the template or more of the value.
    for (let at = length - 1, fit = 0; at >= 0; at--) {
      fit = ((next[at + 1] ?? 0) | fit) & (allowed[codes[at] ?? OTHER] ?? 0)
      fits[at] = fit
      any |= fit
    }
    return any === 1
  }

const fitQuery =
  (lead: number): Fit =>
  (codes, length, next, fits) => {
    let end = length
    let any = next[length] ?? 0
    fits[length] = any
    for (let at = length - 1; at >= 0; at--) {
      if (codes[at] === HASH) end = at
      const fit = (next[at] ?? 0) | (codes[at] === lead ? (next[end] ?? 0) : 0)
      fits[at] = fit
      any |= fit
    }
    return any === 1
  }
const HASH = 35

/** Adds the values of `uri`, whose table is filled, to `values`; false where it does not match after all. */
function collect(parts: readonly Part[], uri: string, values: [string, string][]): boolean {
  let at = 0
  for (const [index, part] of parts.entries()) {
    if (part.kind === 'literal') {
      at += part.text.length
    } else if (part.kind === 'value') {
      const end = longestEnd(part, uri, at, rows[index + 1])
      const value = decode(uri.slice(at, end))
      if (value === undefined || (part.segment && isUnsafeSegment(value))) return false
      values.push([part.name, value])
      at = end
    } else if (uri[at] === part.lead) {
      const fragment = uri.indexOf('#', at)
      const end = fragment === -1 ? uri.length : fragment
      if (!collectQuery(part, uri.slice(at + 1, end), values)) return false
      at = end
    }
  }
  return true
}

function longestEnd(part: ValuePart, uri: string, from: number, fits: Uint8Array | undefined): number {
  let longest = from
  for (let end = from + 1; end <= uri.length && !part.excludes.includes(uri.charAt(end - 1)); end++) {
    if (fits?.[end]) longest = end
  }
  return longest
}

/** `a=1&b=2`: known names only, each once; an exploded one may repeat, its values joined with a comma. */
function collectQuery(part: Extract<Part, { kind: 'query' }>, query: string, values: [string, string][]): boolean {
  const found = new Map<string, string>()
  for (const pair of query.split('&')) {
    const equals = pair.indexOf('=')
    const name = decode(equals === -1 ? pair : pair.slice(0, equals))
    const value = decode(equals === -1 ? '' : pair.slice(equals + 1))
    if (name === undefined || value === undefined || !part.names.includes(name)) return false
    const before = found.get(name)
    if (before !== undefined && !part.exploded.has(name)) return false
    found.set(name, before === undefined ? value : `${before},${value}`)
  }
  values.push(...found)
  return true
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

// What one path segment may not turn into once decoded: a way into another directory.
const isUnsafeSegment = (value: string) => value === '.' || value === '..' || /[/\\]/.test(value)
