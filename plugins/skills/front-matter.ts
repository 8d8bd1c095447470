// Reads the front matter of a SKILL.md: YAML between two lines of `---`, which clients receive as JSON.
import {
  isCollection,
  isMap,
  isScalar,
  Lexer,
  LineCounter,
  type Pair,
  parseDocument,
  visit,
  type YAMLParseError,
  type YAMLWarning,
} from 'yaml'

export interface FrontMatter {
  readonly name: string
  readonly description: string
  readonly [key: string]: unknown
}

export class FrontMatterError extends Error {
  readonly line: number

  constructor(what: string, line: number) {
    super(what)
    this.name = 'FrontMatterFault'
    this.line = line
  }
}

/** Maximum bytes and YAML tokens of the front matter, which determine the parsing time. */
const MAX_FRONT_MATTER = 64 * 1024
const MAX_TOKENS = 5_000
const MAX_NAME = 64
const MAX_DESCRIPTION = 1024
/** Maximum depth of values. */
const MAX_NESTED = 32
const NAME = /^[a-z\d]+(?:-[a-z\d]+)*$/
const FENCED = /^\uFEFF?---\r?\n(?:([\s\S]*?)\r?\n)??---[ \t]*(?:\r?\n|$)/

export function cutOut(text: string): string {
  if (!/^\uFEFF?---\r?(?:\n|$)/.test(text)) {
    throw new FrontMatterError('a SKILL.md starts with its name and description between lines of `---`', 1)
  }
  const found = FENCED.exec(text)
  if (!found) throw new FrontMatterError('the front matter has no final line `---`', 1)
  const [, yaml = ''] = found
  if (Buffer.byteLength(yaml) <= MAX_FRONT_MATTER) return yaml
  throw new FrontMatterError(`the front matter has more than ${MAX_FRONT_MATTER} bytes; move text below it`, 1)
}

const startOf = (node: unknown): number | undefined => {
  const { range } = (node ?? {}) as { range?: readonly number[] | null }
  return range?.[0]
}

const MAX_SHOWN = 160
const truncate = (text: string) => text.slice(0, MAX_SHOWN)

function messageOf({ message }: YAMLParseError | YAMLWarning): string {
  if (/call stack/i.test(message)) return 'values are nested too deep'
  return `not valid YAML: ${truncate(message)}`
}

/** Tokens of the lexer without text: start of a document, a scalar follows, open list. */
const MARKS = new Set(['\u0002', '\u0018', '\u001F'])
const SCALAR_FOLLOWS = '\u001F'

/** Throws for YAML that takes long to parse: many tokens, and anchors and aliases, which take quadratic time. */
function checkTokens(yaml: string) {
  let count = 0
  let line = 2
  let isScalarText = false
  for (const token of new Lexer().lex(yaml)) {
    if (++count > MAX_TOKENS) {
      throw new FrontMatterError(
        `the front matter has more than ${MAX_TOKENS} tokens of YAML; move text below it`,
        line,
      )
    }
    if (!isScalarText && /^[&*]/.test(token)) {
      throw new FrontMatterError(`${truncate(token)}: anchors and aliases are not supported`, line)
    }
    isScalarText = token === SCALAR_FOLLOWS
    if (!MARKS.has(token)) line += token.split('\n').length - 1
  }
}

function parse(yaml: string) {
  checkTokens(yaml)
  const lineCounter = new LineCounter()
  const lineOf = (offset: number | undefined) => (offset === undefined ? 2 : lineCounter.linePos(offset).line + 1)
  // The library compares each key with all others (quadratic); checkNodes uses a map.
  const document = parseDocument(yaml, { lineCounter, prettyErrors: false, uniqueKeys: false })
  const [fault] = [...document.errors, ...document.warnings]
  if (fault) throw new FrontMatterError(messageOf(fault), lineOf(fault.pos[0]))
  return { document, lineOf }
}

/** Throws for values that JSON or other YAML parsers represent differently. */
function checkNodes({ document, lineOf }: ReturnType<typeof parse>) {
  const fail = (what: string, node: unknown) => new FrontMatterError(what, lineOf(startOf(node)))
  visit(document, {
    Node(_key, node, path) {
      if (path.filter(isCollection).length > MAX_NESTED)
        throw fail(`values are nested more than ${MAX_NESTED} deep`, node)
      if (!isScalar(node)) return
      const { value } = node
      if (typeof value === 'bigint' || (typeof value === 'number' && !isExact(value))) {
        throw fail('a number that JSON cannot represent exactly: put it in quotes', node)
      }
    },
    Map(_key, { items }) {
      const keys = new Map<string, unknown>()
      for (const { key } of items) {
        if (!isScalar(key) || typeof key.value !== 'string') throw fail('a key that is not text: put it in quotes', key)
        if (key.value === '__proto__') throw fail('the key __proto__ is not allowed', key)
        if (keys.has(key.value)) {
          const first = lineOf(startOf(keys.get(key.value)))
          throw fail(`duplicate key ${JSON.stringify(key.value)}, first on line ${first}`, key)
        }
        keys.set(key.value, key)
      }
    },
  })
}

const isExact = (value: number) =>
  Number.isFinite(value) && !Object.is(value, -0) && (!Number.isInteger(value) || Number.isSafeInteger(value))

function checkName(name: unknown, folder: string): string | undefined {
  if (name === undefined) return `it has no \`name\`: add \`name: ${folder}\``
  if (typeof name !== 'string') return '`name` must be text: put it in quotes'
  if (name.length > MAX_NAME || !NAME.test(name)) {
    const rule = `1 to ${MAX_NAME} of a-z, 0-9 and -, no - at an end and no two in a row`
    return `\`name\` must be ${rule}, and equal to the folder name`
  }
  if (name !== folder) return `\`name\` is "${name}", and the folder is called "${folder}": they must be the same`
  return undefined
}

function checkDescription(description: unknown): string | undefined {
  if (description === undefined) return 'it has no `description`: describe the skill, and when to use it'
  if (typeof description !== 'string') return '`description` must be text: put it in quotes'
  const length = [...description].length
  if (description.trim() === '') return '`description` is empty: describe the skill, and when to use it'
  if (length > MAX_DESCRIPTION) return `\`description\` has ${length} characters; at most ${MAX_DESCRIPTION}`
  return undefined
}

export function readFrontMatter(yaml: string, folder: string): FrontMatter {
  const parsed = parse(yaml)
  const { document, lineOf } = parsed
  const { contents } = document
  if (contents !== null && !isMap(contents)) {
    throw new FrontMatterError('the front matter must be keys and values, such as `name: x`', lineOf(startOf(contents)))
  }
  checkNodes(parsed)
  const value: Readonly<Record<string, unknown>> = contents === null ? {} : document.toJS()
  const pairs: Pair[] = contents === null ? [] : contents.items
  const lineOfKey = (name: string) => lineOf(startOf(pairs.find(({ key }) => isScalar(key) && key.value === name)?.key))
  for (const [key, fault] of [
    ['name', checkName(value['name'], folder)],
    ['description', checkDescription(value['description'])],
  ] as const) {
    if (fault !== undefined) throw new FrontMatterError(fault, lineOfKey(key))
  }
  return value as FrontMatter
}
