// Reads JSON and YAML configs and locates their keys. Error texts never quote the file, which can contain secrets.
import { createRequire } from 'node:module'
import type { JSONPath, Node as JsonNode, ParseError } from 'jsonc-parser'
import type { Document, LineCounter, Pair, YAMLMap } from 'yaml'
import { errorText, type Path } from '../http/errors.ts'
import { type Locate, lineAt } from './locate-in-code.ts'

const require = createRequire(import.meta.url)
/** Lazy, because loading `yaml` takes a tenth of the startup time. */
const loadJsonc = (): typeof import('jsonc-parser') => require('jsonc-parser')
const loadYaml = (): typeof import('yaml') => require('yaml')

export class ReadError extends Error {
  readonly line: number | undefined

  constructor(message: string, line: number | undefined) {
    super(message)
    this.name = 'ReadError'
    this.line = line
  }
}

interface ReadDocument {
  readonly config: unknown
  readonly locate: Locate
}

export function readJson(source: string): ReadDocument {
  const { findNodeAtLocation, parseTree, printParseErrorCode } = loadJsonc()
  const text = source.replace(/^\uFEFF/, '')
  const lineOf = (offset: number) => lineAt(text, offset)
  let config: unknown
  try {
    config = JSON.parse(text)
  } catch (error) {
    const errors: ParseError[] = []
    parseTree(text, errors, { disallowComments: true })
    const [issue] = errors
    // Converts `CommaExpected` to `comma expected`. JSON.parse errors can quote secrets.
    const found = issue && printParseErrorCode(issue.error).replaceAll(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
    throw new ReadError(`not valid JSON:${found ?? ` ${errorText(error)}`}`, issue && lineOf(issue.offset))
  }
  const root = parseTree(text)
  const nodes = root ? [root] : []
  for (const node of nodes) {
    for (const child of node.children ?? []) nodes.push(child)
    if (node.type === 'object') checkDuplicates(node, lineOf)
  }
  return {
    config,
    locate(path) {
      const node = root && findNodeAtLocation(root, path as JSONPath)
      const { offset } = (node?.parent?.type === 'property' ? node.parent : node) ?? {}
      return offset === undefined ? undefined : lineOf(offset)
    },
  }
}

function checkDuplicates({ children = [] }: JsonNode, lineOf: (offset: number) => number): void {
  const properties = new Map<string, JsonNode>()
  for (const property of children) {
    const key = String(property.children?.[0]?.value)
    const first = properties.get(key)
    if (first) {
      const text = `duplicate key ${JSON.stringify(key)}, first on line ${lineOf(first.offset)}`
      throw new ReadError(text, lineOf(property.offset))
    }
    properties.set(key, property)
  }
}

const NO_COLON = 'a key has no colon after it; write `key: value`, or `key:` above its contents'

const OWN_WORDS: Readonly<Record<string, string>> = { MULTILINE_IMPLICIT_KEY: NO_COLON, MISSING_CHAR: NO_COLON }

export function readYaml(source: string): ReadDocument {
  const { document, locate, lines } = parse(source)
  const [issue] = [...document.errors, ...document.warnings]
  if (issue) {
    const message = `not valid YAML: ${OWN_WORDS[issue.code] ?? issue.message.replace(/: ".*"$/s, '')}`
    throw new ReadError(issue.code === 'DUPLICATE_KEY' ? issue.message : message, lines.linePos(issue.pos[0]).line)
  }
  try {
    return { config: document.toJS(), locate }
  } catch (error) {
    throw new ReadError(`not valid YAML: ${errorText(error)}`, undefined)
  }
}

function parse(source: string): { document: Document; locate: Locate; lines: LineCounter } {
  const { LineCounter, parseDocument } = loadYaml()
  const lines = new LineCounter()
  // The library's `uniqueKeys` takes quadratic time; `indexMaps` is linear.
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false, uniqueKeys: false })
  const maps = indexMaps(document, lines)
  const locate: Locate = path => {
    const offset = offsetOf(document, maps, path)
    return offset === undefined ? undefined : lines.linePos(offset).line
  }
  return { document, locate, lines }
}

type MapIndex = ReadonlyMap<YAMLMap, ReadonlyMap<string, Pair>>

function indexMaps(document: Document, lines: LineCounter): MapIndex {
  const { isScalar, visit, YAMLParseError } = loadYaml()
  const maps = new Map<YAMLMap, Map<string, Pair>>()
  visit(document, {
    Map(_, map) {
      const pairs = new Map<string, Pair>()
      for (const pair of map.items) {
        const { key, value } = pair
        if (!isScalar(key)) continue
        const name = String(key.value)
        const first = pairs.get(name)
        if (!first) {
          pairs.set(name, pair)
          continue
        }
        const [from = 0, to = from] = key.range ?? []
        // A key without a value can be a secret: `secrets: { s3cret }`.
        const shown = value === null ? '' : ` ${JSON.stringify(name)}`
        const message = `duplicate key${shown}, first on line ${lines.linePos(rangeStart(first.key) ?? 0).line}`
        document.errors.push(new YAMLParseError([from, to], 'DUPLICATE_KEY', message))
      }
      maps.set(map, pairs)
    },
  })
  return maps
}

function offsetOf(document: Document, maps: MapIndex, path: Path): number | undefined {
  const { isAlias, isMap, isSeq } = loadYaml()
  let node: unknown = document.contents
  let offset = document.contents?.range?.[0]
  for (const key of path) {
    const parent = isAlias(node) ? node.resolve(document) : node
    if (isSeq(parent) && typeof key === 'number') {
      node = parent.items[key]
      offset = rangeStart(node)
    } else if (isMap(parent)) {
      const pair = maps.get(parent)?.get(String(key))
      node = pair?.value
      offset = rangeStart(pair?.key)
    } else return undefined
    if (offset === undefined) return undefined
  }
  return offset
}

const rangeStart = (node: unknown): number | undefined =>
  typeof node === 'object' && node !== null && 'range' in node && Array.isArray(node.range)
    ? (node.range[0] as number)
    : undefined
