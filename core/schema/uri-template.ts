// URI templates (RFC 6570) read backwards: which values, expanded, would give this URI? Parsed once, at start-up.
// Matching fills a table from the URI's end, then walks it once: time and space grow with the URI, never faster.
import { type Part, parseUriTemplate, type ValuePart } from './parse-uri-template.ts'

export interface CompiledUriTemplate {
  readonly template: string
  readonly variables: readonly string[]
  /**
   * The variables' values, percent-decoded, or undefined when the URI is not of this family. Every value but a
   * query's is at least one character long and takes as many as it can; a query's variables may be absent and come
   * in any order. A `{var}` never holds a slash, encoded or not, nor is it `.` or `..`; `{+var}`, `{#var}` and
   * `{/var*}` may, and what they hold must be checked before it becomes a file's path. URIs of more than 65,536
   * characters match nothing.
   */
  match(uri: string): Record<string, string> | undefined
}

const MAX_URI = 65_536

/**
 * Compiles a template. Throws what is wrong with one that is malformed or cannot be matched: a prefix (`{var:3}`),
 * an exploded `{;list*}`, a variable named twice, anything but a fragment after a query.
 */
export function compileUriTemplate(template: string): CompiledUriTemplate {
  const parts = parseUriTemplate(template)
  const variables = parts.flatMap(part =>
    part.kind === 'value' ? [part.name] : part.kind === 'query' ? part.names : [],
  )
  const prefix = parts[0]?.kind === 'literal' ? parts[0].text : ''
  return {
    template,
    variables,
    match(uri) {
      if (uri.length > MAX_URI || !uri.startsWith(prefix)) return undefined
      const values: [string, string][] = []
      return collect(parts, uri, values) ? Object.fromEntries(values) : undefined
    },
  }
}

/** For each part and the end: where in the URI it and all that follows match what is left. 1 is yes. */
function fitTable(parts: readonly Part[], uri: string): Uint8Array[] {
  let next = new Uint8Array(uri.length + 1)
  next[uri.length] = 1
  const rows = [next]
  for (let index = parts.length - 1; index >= 0; index--) {
    const part = parts[index]
    if (part?.kind === 'literal') next = fitLiteral(part.text, uri, next)
    else if (part?.kind === 'value') next = fitValue(part.excludes, uri, next)
    else if (part) next = fitQuery(part.lead, uri, next)
    rows.unshift(next)
  }
  return rows
}

function fitLiteral(text: string, uri: string, next: Uint8Array): Uint8Array<ArrayBuffer> {
  const fits = new Uint8Array(next.length)
  for (let at = uri.indexOf(text); at !== -1; at = uri.indexOf(text, at + 1)) fits[at] = next[at + text.length] ?? 0
  return fits
}

function fitValue(excludes: string, uri: string, next: Uint8Array): Uint8Array<ArrayBuffer> {
  const fits = new Uint8Array(next.length)
  for (let at = uri.length - 1; at >= 0; at--) {
    // One character of the value, and then either the rest of the template or more of the value.
    const follows = next[at + 1] === 1 || fits[at + 1] === 1
    if (follows && !excludes.includes(uri.charAt(at))) fits[at] = 1
  }
  return fits
}

function fitQuery(lead: string, uri: string, next: Uint8Array): Uint8Array<ArrayBuffer> {
  const fits = new Uint8Array(next)
  let end = uri.length
  for (let at = uri.length - 1; at >= 0; at--) {
    if (uri[at] === '#') end = at
    if (uri[at] === lead && next[end] === 1) fits[at] = 1
  }
  return fits
}

/** Adds the values of `uri` to `values`; false where it does not match. */
function collect(parts: readonly Part[], uri: string, values: [string, string][]): boolean {
  const rows = fitTable(parts, uri)
  if (rows[0]?.[0] !== 1) return false
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
