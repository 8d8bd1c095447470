// The front matter of a SKILL.md: YAML between two lines of `---`, as the JSON that clients are sent and hold against the
// file. So what JSON cannot say the same way is a mistake here, with its line.
import {
  type Document,
  isCollection,
  isMap,
  isScalar,
  LineCounter,
  type Pair,
  parseDocument,
  visit,
  type YAMLParseError,
  type YAMLWarning,
} from 'yaml'
import { MAX_FRONT_MATTER } from './limits.ts'

/** What an author says of a skill; `name` and `description` are always there. */
export interface FrontMatter {
  readonly name: string
  readonly description: string
  readonly [key: string]: unknown
}

/** What is wrong, and in which line of the file. */
export class FrontMatterFault extends Error {
  readonly line: number

  constructor(what: string, line: number) {
    super(what)
    this.name = 'FrontMatterFault'
    this.line = line
  }
}

const MAX_NAME = 64
const MAX_DESCRIPTION = 1024
/** Values in one another. */
const MAX_NESTED = 32
const NAME = /^[a-z\d]+(?:-[a-z\d]+)*$/
const FENCED = /^\uFEFF?---\r?\n(?:([\s\S]*?)\r?\n)??---[ \t]*(?:\r?\n|$)/

/** The YAML of a SKILL.md. */
function cutOut(text: string): string {
  if (!/^\uFEFF?---\r?(?:\n|$)/.test(text)) {
    throw new FrontMatterFault('a SKILL.md begins with a line of `---`, its name and description, and another', 1)
  }
  const found = FENCED.exec(text)
  if (!found) throw new FrontMatterFault('no line of `---` ends the front matter', 1)
  const [, yaml = ''] = found
  if (Buffer.byteLength(yaml) <= MAX_FRONT_MATTER) return yaml
  throw new FrontMatterFault(`the front matter has more than ${MAX_FRONT_MATTER} bytes; move text below it`, 1)
}

interface Parsed {
  readonly document: Document
  readonly lineOf: (offset: number | undefined) => number
}

const startOf = (node: unknown): number | undefined => {
  const { range } = (node ?? {}) as { range?: readonly number[] | null }
  return range?.[0]
}

const MAX_SHOWN = 160
const cut = (text: string) => text.slice(0, MAX_SHOWN)

/** What the library says of it, but for what it says of itself. */
function wordsOf({ code, message }: YAMLParseError | YAMLWarning): string {
  if (code === 'DUPLICATE_KEY') return 'the same key stands twice'
  if (/call stack/i.test(message)) return 'values are nested too deep'
  return `not valid YAML: ${cut(message)}`
}

function parse(yaml: string): Parsed {
  const lineCounter = new LineCounter()
  // The line of `---` is the first of the file.
  const lineOf: Parsed['lineOf'] = offset => (offset === undefined ? 2 : lineCounter.linePos(offset).line + 1)
  const document = parseDocument(yaml, { lineCounter, prettyErrors: false })
  const [fault] = [...document.errors, ...document.warnings]
  if (fault) throw new FrontMatterFault(wordsOf(fault), lineOf(fault.pos[0]))
  return { document, lineOf }
}

/** Throws for what would be something else as JSON, or at another reader of YAML. */
function checkNodes({ document, lineOf }: Parsed) {
  const fail = (what: string, node: unknown) => new FrontMatterFault(what, lineOf(startOf(node)))
  visit(document, {
    Node(_key, node, path) {
      if (path.filter(isCollection).length > MAX_NESTED)
        throw fail(`values are nested more than ${MAX_NESTED} deep`, node)
      if (!isScalar(node)) return
      const { value } = node
      if (typeof value === 'bigint' || (typeof value === 'number' && !isExact(value))) {
        throw fail('a number that JSON does not hold exactly: put it in quotes', node)
      }
    },
    Alias(_key, alias, path) {
      const named = alias.resolve(document)
      if (named === undefined) throw fail(`*${cut(alias.source)} names nothing that stands before it`, alias)
      if (path.includes(named)) throw fail(`*${cut(alias.source)} stands in what it names`, alias)
    },
    Pair(_key, { key }) {
      if (!isScalar(key) || typeof key.value !== 'string') throw fail('a key that is no text: put it in quotes', key)
      if (key.value === '__proto__') throw fail('a key may not be called __proto__', key)
    },
  })
}

const isExact = (value: number) =>
  Number.isFinite(value) && !Object.is(value, -0) && (!Number.isInteger(value) || Number.isSafeInteger(value))

/** What the document is as JSON. */
function jsonOf({ document }: Parsed): Readonly<Record<string, unknown>> {
  const tooMuch = () => new FrontMatterFault('its aliases (`*name`) say too much: write it out', 2)
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount: 50 })
  } catch {
    throw tooMuch()
  }
  if (JSON.stringify(value).length > 2 * MAX_FRONT_MATTER) throw tooMuch()
  return value as Readonly<Record<string, unknown>>
}

function checkName(name: unknown, folder: string): string | undefined {
  if (name === undefined) return `it has no \`name\`: add \`name: ${folder}\``
  if (typeof name !== 'string') return '`name` must be text: put it in quotes'
  if (name.length > MAX_NAME || !NAME.test(name)) {
    const rule = `1 to ${MAX_NAME} of a-z, 0-9 and -, no - at an end and no two in a row`
    return `\`name\` must be ${rule}; the folder is called the same`
  }
  if (name !== folder) return `\`name\` is "${name}", and the folder is called "${folder}": they must be the same`
  return undefined
}

function checkDescription(description: unknown): string | undefined {
  if (description === undefined) return 'it has no `description`: say what the skill does, and when to use it'
  if (typeof description !== 'string') return '`description` must be text: put it in quotes'
  const length = [...description].length
  if (description.trim() === '') return '`description` is empty: say what the skill does, and when to use it'
  if (length > MAX_DESCRIPTION) return `\`description\` has ${length} characters; at most ${MAX_DESCRIPTION}`
  return undefined
}

/** The front matter of a SKILL.md in a folder of this name. Throws a FrontMatterFault. */
export function readFrontMatter(text: string, folder: string): FrontMatter {
  const parsed = parse(cutOut(text))
  const { document, lineOf } = parsed
  const { contents } = document
  if (contents !== null && !isMap(contents)) {
    throw new FrontMatterFault('the front matter must be keys and values, such as `name: x`', lineOf(startOf(contents)))
  }
  checkNodes(parsed)
  const value = contents === null ? {} : jsonOf(parsed)
  const pairs: Pair[] = contents === null ? [] : contents.items
  const lineOfKey = (name: string) => lineOf(startOf(pairs.find(({ key }) => isScalar(key) && key.value === name)?.key))
  for (const [key, fault] of [
    ['name', checkName(value['name'], folder)],
    ['description', checkDescription(value['description'])],
  ] as const) {
    if (fault !== undefined) throw new FrontMatterFault(fault, lineOfKey(key))
  }
  return value as FrontMatter
}
