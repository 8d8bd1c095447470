// Matches URIs against RFC 6570 templates in linear time per part. Regular expressions can take exponential time.
import { attempt } from '../../http/describe-thrown.ts'
import { MAX_URI } from '../client-limits.ts'

export interface CompiledUriTemplate {
  readonly template: string
  readonly variables: readonly string[]
  /**
   * Returns the variables of a URI. Query variables can be absent. `{var}` never contains a slash and is never `.` or
   * `..`; check `{+var}`, `{#var}` and `{/var*}` before use as file paths. URIs over 8,192 characters never match.
   */
  match(uri: string): Record<string, string> | undefined
}

interface LiteralPart {
  readonly kind: 'literal'
  readonly text: string
}
interface ValuePart {
  readonly kind: 'value'
  readonly name: string
  readonly excludes: string
  readonly segment: boolean
}
interface QueryPart {
  readonly kind: 'query'
  readonly lead: '?' | '&'
  readonly names: readonly string[]
  readonly exploded: ReadonlySet<string>
}
type Part = LiteralPart | ValuePart | QueryPart

/** Throws for prefixes (`{var:3}`), exploded `{;list*}`, duplicate variables, and text after a query. */
export function compileUriTemplate(template: string): CompiledUriTemplate {
  const parts = parseTemplate(template)
  const variables = parts.flatMap(part =>
    part.kind === 'value' ? [part.name] : part.kind === 'query' ? part.names : [],
  )
  const literalOf = (part: Part | undefined) => (part?.kind === 'literal' ? part.text : '')
  const prefix = literalOf(parts[0])
  const suffix = literalOf(parts.at(-1))
  return {
    template,
    variables,
    match(uri) {
      if (uri.length > MAX_URI || !uri.startsWith(prefix) || !uri.endsWith(suffix)) return undefined
      const values: [string, string][] = []
      const rows = fillRows(parts, uri)
      return rows && collect(parts, uri, rows, values) ? Object.fromEntries(values) : undefined
    },
  }
}

/** Computes one row per part and one for the end, with 1 at positions from which this and all later parts match. */
function fillRows(parts: readonly Part[], uri: string): Uint8Array[] | undefined {
  const rows: Uint8Array[] = []
  let next = new Uint8Array(uri.length + 1)
  next[uri.length] = 1
  rows[parts.length] = next
  for (let index = parts.length - 1; index >= 0; index--) {
    const part = parts[index] as Part
    const row = new Uint8Array(uri.length + 1)
    if (part.kind === 'literal') fillLiteral(part, uri, row, next)
    else if (part.kind === 'value') fillValue(part, uri, row, next)
    else fillQuery(part, uri, row, next)
    if (!row.includes(1)) return undefined
    rows[index] = row
    next = row
  }
  return next[0] === 1 ? rows : undefined
}

function fillLiteral({ text }: LiteralPart, uri: string, row: Uint8Array, next: Uint8Array): void {
  for (let at = uri.indexOf(text); at !== -1; at = uri.indexOf(text, at + 1)) row[at] = next[at + text.length] ?? 0
}

function fillValue({ excludes }: ValuePart, uri: string, row: Uint8Array, next: Uint8Array): void {
  for (let at = uri.length - 1; at >= 0; at--) {
    if ((next[at + 1] || row[at + 1]) && !excludes.includes(uri.charAt(at))) row[at] = 1
  }
}

function fillQuery({ lead }: QueryPart, uri: string, row: Uint8Array, next: Uint8Array): void {
  for (let at = uri.length, end = at; at >= 0; at--) {
    if (uri[at] === '#') end = at
    row[at] = next[at] || (uri[at] === lead && next[end]) ? 1 : 0
  }
}

function collect(parts: readonly Part[], uri: string, rows: readonly Uint8Array[], values: [string, string][]) {
  let at = 0
  for (const [index, part] of parts.entries()) {
    if (part.kind === 'literal') {
      at += part.text.length
    } else if (part.kind === 'value') {
      let end = at
      for (let to = at + 1; to <= uri.length && !part.excludes.includes(uri.charAt(to - 1)); to++) {
        if (rows[index + 1]?.[to]) end = to
      }
      const value = decode(uri.slice(at, end))
      // A decoded segment must not become a path.
      if (value === undefined || (part.segment && /^\.{1,2}$|[/\\]/.test(value))) return false
      values.push([part.name, value])
      at = end
    } else if (uri[at] === part.lead) {
      const end = uri.indexOf('#', at) === -1 ? uri.length : uri.indexOf('#', at)
      if (!collectQuery(part, uri.slice(at + 1, end), values)) return false
      at = end
    }
  }
  return true
}

function collectQuery({ names, exploded }: QueryPart, query: string, values: [string, string][]): boolean {
  const found = new Map<string, string>()
  for (const pair of query.split('&')) {
    const [, key = '', text = ''] = /^([^=]*)=?(.*)$/s.exec(pair) ?? []
    const name = decode(key)
    const value = decode(text)
    if (name === undefined || value === undefined || !names.includes(name)) return false
    const before = found.get(name)
    if (before !== undefined && !exploded.has(name)) return false
    found.set(name, before === undefined ? value : `${before},${value}`)
  }
  values.push(...found)
  return true
}

const decode = (text: string) => attempt(() => decodeURIComponent(text))

interface Variable {
  readonly name: string
  readonly exploded: boolean
}

const VARIABLE = /^(\w+(?:\.\w+)*)(\*|:\d+)?$/
// RFC 6570 section 2.1, except the apostrophe, which URIs can contain.
const NOT_LITERAL = /[\p{Cc} "<>\\^`|}]|%(?![\dA-Fa-f]{2})/u

/** The start of an expression, the separator of its values, and the excluded characters. */
const OPERATORS: Readonly<Record<string, readonly [lead: string, separator: string, excludes: string]>> = {
  '+': ['', ',', ''],
  '#': ['#', ',', ''],
  '.': ['.', '.', '/?#'],
  '/': ['/', '/', '?#'],
  ';': [';', ';', '/?#;'],
  '?': ['?', '&', ''],
  '&': ['&', '&', ''],
}
const SIMPLE = ['', ',', '/?#'] as const

function parseTemplate(template: string): Part[] {
  const fail = (reason: string): never => {
    throw new Error(`uriTemplate "${template}": ${reason}`)
  }
  if (typeof template !== 'string' || template === '') fail('must be a text that is not empty')
  const parts: Part[] = []
  const names = new Set<string>()
  for (const [piece] of template.matchAll(/\{[^{}]*\}?|[^{]+/g)) {
    if (!piece.startsWith('{')) {
      const stray = NOT_LITERAL.exec(piece)
      if (stray) fail(`"${stray[0]}" is not allowed outside an expression; percent-encode it`)
      parts.push({ kind: 'literal', text: piece.replace(/[^\0-\x7f]+/gu, encodeURIComponent) })
      continue
    }
    if (!piece.endsWith('}')) fail(`the expression "${piece}" is not closed`)
    const operator = piece.charAt(1) in OPERATORS ? piece.charAt(1) : ''
    const variables = parseVariables(piece, operator, fail)
    for (const { name } of variables) {
      if (names.has(name)) fail(`it names the variable "${name}" twice`)
      names.add(name)
    }
    parts.push(...expressionParts(operator, variables))
  }
  return settle(parts, fail)
}

type Fail = (reason: string) => never

function parseVariables(piece: string, operator: string, fail: Fail): Variable[] {
  const body = piece.slice(1, -1)
  if (/^[=,!@|]/.test(body)) fail(`"${body[0]}" is reserved by RFC 6570 and has no meaning in "${piece}"`)
  return body
    .slice(operator.length)
    .split(',')
    .map(spec => {
      const [, name, modifier] = VARIABLE.exec(spec) ?? []
      if (name === undefined)
        return fail(`"${spec}" in "${piece}" is not a variable name (letters, digits, _ and dots between)`)
      if (modifier?.startsWith(':')) return fail(`the prefix "${spec}" cannot be matched; use the whole variable`)
      if (modifier && operator === ';') return fail(`"${piece}" cannot be matched; remove the "*"`)
      return { name, exploded: modifier === '*' }
    })
}

function expressionParts(operator: string, variables: readonly Variable[]): Part[] {
  if (operator === '?' || operator === '&') {
    const exploded = new Set(variables.filter(variable => variable.exploded).map(({ name }) => name))
    return [{ kind: 'query', lead: operator, names: variables.map(({ name }) => name), exploded }]
  }
  const [lead, separator, excludes] = OPERATORS[operator] ?? SIMPLE
  return variables.flatMap(({ name, exploded }, index): Part[] => {
    const before = (index === 0 ? lead : separator) + (operator === ';' ? `${name}=` : '')
    const separated = (variables.length > 1 || operator === '/') && !exploded
    const segment = excludes.includes('/') || (operator === '/' && !exploded)
    const value: Part = { kind: 'value', name, excludes: excludes + (separated ? separator : ''), segment }
    return before === '' ? [value] : [{ kind: 'literal', text: before }, value]
  })
}

function settle(parts: readonly Part[], fail: Fail): Part[] {
  const settled: Part[] = []
  let ahead = ''
  for (const part of parts.toReversed()) {
    const next = settled[0]
    if (part.kind === 'value') {
      settled.unshift({ ...part, excludes: part.excludes + ahead })
    } else if (part.kind === 'literal') {
      ahead += part.text.replace(/[^?#]/g, '')
      settled.unshift(part)
    } else {
      ahead += part.lead === '?' ? '?' : ''
      if (next?.kind === 'query' && next.lead === '&') {
        const exploded = new Set([...part.exploded, ...next.exploded])
        settled[0] = { ...part, names: [...part.names, ...next.names], exploded }
      } else if (next && !(next.kind === 'literal' && next.text.startsWith('#'))) {
        fail(`after {${part.lead}${part.names.join(',')}} only {&...} or a fragment can be matched`)
      } else settled.unshift(part)
    }
  }
  return settled
}
