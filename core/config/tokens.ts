// Splits JavaScript or TypeScript into tokens, just well enough to know strings, comments, templates and regular
// expressions from brackets. For locate-in-code.ts, which looks for keys; nothing is compiled from this.

export interface Token {
  readonly kind: 'word' | 'string' | 'number' | 'template' | 'regex' | 'mark'
  readonly text: string
  readonly start: number
  readonly end: number
}

const SPACE = /(?:\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y
const WORD = /[\p{ID_Start}$_#@][\p{ID_Continue}$]*/uy
const NUMBER = /(?:0[xob][\da-f_]+|\d[\d_]*(?:\.[\d_]*)?(?:e[+-]?\d+)?|\.\d[\d_]*)n?/iy
const STRING = /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y
const REGEX = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y
const MARK = /\.\.\.|=>|\?\.|[\s\S]/y

const BEFORE_A_REGEX = new Set(
  'return typeof case in of do else void delete instanceof new throw await yield default'.split(' '),
)

/** Every token of the source, comments and space left out. Broken code gives tokens too, of no particular meaning. */
export const readTokens = (source: string): Token[] =>
  read(source, source.startsWith('#!') ? lineEnd(source) : 0).tokens

/** The value of JSON with comments and trailing commas. Throws a SyntaxError. */
export function parseCommented(tokens: readonly Token[]): unknown {
  const isTrailing = (index: number) => tokens[index]?.text === ',' && /^[}\]]$/.test(tokens[index + 1]?.text ?? '')
  // A negative number is two tokens.
  const texts = tokens.map(({ text }, index) => (isTrailing(index) ? '' : text === '-' ? text : `${text} `))
  return JSON.parse(texts.join(''))
}

const lineEnd = (source: string): number => (source.includes('\n') ? source.indexOf('\n') : source.length)

/** Reads to the end or, inside a template, past the brace that ends its `${`. */
function read(source: string, from: number, inTemplate = false): { tokens: Token[]; end: number } {
  const tokens: Token[] = []
  let depth = 0
  let at = from
  for (;;) {
    at = endOf(SPACE, source, at) ?? at
    if (at >= source.length) return { tokens, end: at }
    const token = next(source, at, tokens.at(-1))
    at = token.end
    if (inTemplate && token.text === '{') depth += 1
    if (inTemplate && token.text === '}') depth -= 1
    if (depth < 0) return { tokens, end: at }
    tokens.push(token)
  }
}

function next(source: string, start: number, previous: Token | undefined): Token {
  const token = (kind: Token['kind'], end: number): Token => ({ kind, text: source.slice(start, end), start, end })
  if (source[start] === '`') return token('template', endOfTemplate(source, start))
  if (source[start] === '/' && mayBeRegex(previous)) {
    const end = endOf(REGEX, source, start)
    if (end !== undefined) return token('regex', end)
  }
  const patterns = [['word', WORD] as const, ['number', NUMBER] as const, ['string', STRING] as const]
  for (const [kind, pattern] of patterns) {
    const end = endOf(pattern, source, start)
    if (end !== undefined) return token(kind, end)
  }
  return token('mark', endOf(MARK, source, start) ?? start + 1)
}

function endOfTemplate(source: string, start: number): number {
  let at = start + 1
  while (at < source.length && source[at] !== '`') {
    if (source[at] === '\\') at += 2
    else if (source.startsWith('${', at)) at = read(source, at + 2, true).end
    else at += 1
  }
  return at + 1
}

// A slash after a value divides; anywhere else it begins a regular expression.
function mayBeRegex(previous: Token | undefined): boolean {
  if (previous === undefined) return true
  if (previous.kind === 'word') return BEFORE_A_REGEX.has(previous.text)
  return previous.kind === 'mark' && previous.text !== ')' && previous.text !== ']'
}

function endOf(pattern: RegExp, source: string, at: number): number | undefined {
  pattern.lastIndex = at
  return pattern.test(source) ? pattern.lastIndex : undefined
}
