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

/** `table[part * width + position]` is 1 where that part and all that follow match what is left of the URI. */
function fitTable(parts: readonly Part[], uri: string): Uint8Array {
  const width = uri.length + 1
  const table = new Uint8Array((parts.length + 1) * width)
  table[parts.length * width + uri.length] = 1
  for (const [index, part] of [...parts.entries()].reverse()) {
    const here = index * width
    const next = here + width
    let queryEnd = uri.length
    for (let at = uri.length; at >= 0; at--) {
      if (uri[at] === '#') queryEnd = at
      if (part.kind === 'literal') {
        if (uri.startsWith(part.text, at)) table[here + at] = table[next + at + part.text.length] ?? 0
      } else if (part.kind === 'value') {
        // One character of the value, and then either the rest of the template or more of the value.
        if (at < uri.length && !part.excludes.includes(uri.charAt(at))) {
          table[here + at] = (table[next + at + 1] ?? 0) | (table[here + at + 1] ?? 0)
        }
      } else if (table[next + at] || (uri[at] === part.lead && table[next + queryEnd])) {
        table[here + at] = 1
      }
    }
  }
  return table
}

/** Adds the values of `uri` to `values`; false where it does not match. */
function collect(parts: readonly Part[], uri: string, values: [string, string][]): boolean {
  const width = uri.length + 1
  const table = fitTable(parts, uri)
  if (!table[0]) return false
  let at = 0
  for (const [index, part] of parts.entries()) {
    const next = (index + 1) * width
    if (part.kind === 'literal') {
      at += part.text.length
    } else if (part.kind === 'value') {
      const end = longestEnd(part, uri, at, table.subarray(next, next + width))
      const value = decode(uri.slice(at, end))
      if (value === undefined || (part.segment && isUnsafeSegment(value))) return false
      values.push([part.name, value])
      at = end
    } else if (uri[at] === part.lead) {
      const query = uri
        .slice(at + 1)
        .split('#', 1)
        .join()
      if (!collectQuery(part, query, values)) return false
      at += 1 + query.length
    }
  }
  return true
}

function longestEnd(part: ValuePart, uri: string, from: number, fits: Uint8Array): number {
  let longest = from
  for (let end = from + 1; end <= uri.length && !part.excludes.includes(uri.charAt(end - 1)); end++) {
    if (fits[end]) longest = end
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
