// Parses a URI template (RFC 6570) into the parts that core/mcp/schema/uri-template.ts matches one after the other.
// Refuses what is malformed, and what RFC 6570 can expand but nobody can read back without guessing.

interface LiteralPart {
  readonly kind: 'literal'
  readonly text: string
}
export interface ValuePart {
  readonly kind: 'value'
  readonly name: string
  /** Characters that end the value. */
  readonly excludes: string
  /** True for a value that fills one path segment at most. */
  readonly segment: boolean
}
interface QueryPart {
  readonly kind: 'query'
  readonly lead: '?' | '&'
  readonly names: readonly string[]
  readonly exploded: ReadonlySet<string>
}
export type Part = LiteralPart | ValuePart | QueryPart

interface Variable {
  readonly name: string
  readonly exploded: boolean
}

const VARIABLE = /^(\w+(?:\.\w+)*)(\*|:\d+)?$/
// RFC 6570, 2.1, plus the apostrophe, which URIs do contain.
const NOT_LITERAL = /[\p{Cc} "<>\\^`|}]|%(?![\dA-Fa-f]{2})/u
const OPERATORS = ['+', '#', '.', '/', ';', '?', '&'] as const
type Operator = (typeof OPERATORS)[number] | ''

/** The parts of a template, in order. Throws what is wrong with it. */
export function parseUriTemplate(template: string): Part[] {
  const fail = (reason: string): never => {
    throw new Error(`uriTemplate "${template}": ${reason}`)
  }
  if (typeof template !== 'string' || template === '') fail('must be a text that is not empty')
  const parts: Part[] = []
  const names = new Set<string>()
  for (const [piece] of template.matchAll(/\{[^{}]*\}?|[^{]+/g)) {
    if (!piece.startsWith('{')) {
      const stray = NOT_LITERAL.exec(piece)
      if (stray) fail(`"${stray[0]}" cannot stand outside an expression; percent-encode it`)
      parts.push({ kind: 'literal', text: encodeLiteral(piece) })
      continue
    }
    if (!piece.endsWith('}')) fail(`the expression "${piece}" is not closed`)
    const { operator, variables } = parseExpression(piece, fail)
    for (const { name } of variables) {
      if (names.has(name)) fail(`it names the variable "${name}" twice`)
      names.add(name)
    }
    parts.push(...expressionParts(operator, variables))
  }
  return settle(parts, fail)
}

// Expansion encodes what is not ASCII; percent signs that are there stay.
const encodeLiteral = (text: string) => text.replace(/[^\0-\x7f]+/gu, encodeURIComponent)

type Fail = (reason: string) => never

function parseExpression(piece: string, fail: Fail): { operator: Operator; variables: Variable[] } {
  const body = piece.slice(1, -1)
  const operator = OPERATORS.find(known => body.startsWith(known)) ?? ''
  const reserved = /^[=,!@|]/.exec(body)
  if (reserved) return fail(`"${reserved[0]}" is reserved by RFC 6570 and has no meaning in "${piece}"`)
  const variables = body
    .slice(operator.length)
    .split(',')
    .map(spec => {
      const found = VARIABLE.exec(spec)
      const name = found?.[1]
      if (name === undefined)
        return fail(`"${spec}" in "${piece}" is no variable name (letters, digits, _ and dots between)`)
      const modifier = found?.[2]
      if (modifier?.startsWith(':')) return fail(`the prefix "${spec}" cannot be matched; take the whole variable`)
      if (modifier && operator === ';') return fail(`"${piece}" cannot be matched; leave out the "*"`)
      return { name, exploded: modifier === '*' }
    })
  return { operator, variables }
}

/** What begins an expression, what separates its values, and what no value of it contains. */
const SHAPES: Readonly<Record<Exclude<Operator, '?' | '&'>, { lead: string; separator: string; excludes: string }>> = {
  '': { lead: '', separator: ',', excludes: '/?#' },
  '+': { lead: '', separator: ',', excludes: '' },
  '#': { lead: '#', separator: ',', excludes: '' },
  '.': { lead: '.', separator: '.', excludes: '/?#' },
  '/': { lead: '/', separator: '/', excludes: '?#' },
  ';': { lead: ';', separator: ';', excludes: '/?#;' },
}

function expressionParts(operator: Operator, variables: readonly Variable[]): Part[] {
  if (operator === '?' || operator === '&') {
    const exploded = new Set(variables.filter(variable => variable.exploded).map(({ name }) => name))
    return [{ kind: 'query', lead: operator, names: variables.map(({ name }) => name), exploded }]
  }
  const { lead, separator, excludes } = SHAPES[operator]
  return variables.flatMap(({ name, exploded }, index): Part[] => {
    const before = (index === 0 ? lead : separator) + (operator === ';' ? `${name}=` : '')
    // A list's values end at its separator; a value that stands alone, or is exploded, may contain it.
    const separated = (variables.length > 1 || operator === '/') && !exploded
    const segment = excludes.includes('/') || (operator === '/' && !exploded)
    const value: Part = { kind: 'value', name, excludes: excludes + (separated ? separator : ''), segment }
    return before === '' ? [value] : [{ kind: 'literal', text: before }, value]
  })
}

/** Joins a query's continuations, and ends every `{+var}` where a query or fragment may begin. */
function settle(parts: readonly Part[], fail: Fail): Part[] {
  const settled: Part[] = []
  let ahead = ''
  for (const part of [...parts].reverse()) {
    const next = settled[0]
    if (part.kind === 'value') {
      settled.unshift({ ...part, excludes: part.excludes + ahead })
      continue
    }
    if (part.kind === 'literal') {
      ahead += ['?', '#'].filter(mark => part.text.includes(mark)).join('')
      settled.unshift(part)
      continue
    }
    ahead += part.lead === '?' ? '?' : ''
    if (next?.kind === 'query' && next.lead === '&') {
      const exploded = new Set([...part.exploded, ...next.exploded])
      settled[0] = { ...part, names: [...part.names, ...next.names], exploded }
    } else if (next && !(next.kind === 'literal' && next.text.startsWith('#'))) {
      fail(`after {${part.lead}${part.names.join(',')}} only {&...} or a fragment can be matched`)
    } else settled.unshift(part)
  }
  return settled
}
