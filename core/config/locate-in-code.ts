// Finds the line of a config's key, or of a definition's, in TypeScript or JavaScript source, without a parser: objects
// and lists that are written out where they are exported or defined, nothing else. A guess is no answer: what is computed or spread has no line.
import { type Locate, positionAt } from './position.ts'
import { readTokens, type Token } from './tokens.ts'

interface Node {
  readonly start: number
  /** Keys or indexes that are written out, each with the offset of its key and its value. */
  readonly entries: Map<string | number, { readonly at: number; readonly value: Node }>
}

/** Where a value ends: the index of the token after it. */
interface Read {
  readonly node: Node
  readonly end: number
}

const OPENING = new Set(['{', '[', '('])
const CLOSING = new Set(['}', ']', ')'])
const MODIFIERS = new Set(['async', 'get', 'set', '*'])

/** Locates keys inside the object that is exported, or given to an exported `defineConfig(…)`. */
export function locateInCode(source: string): Locate {
  const tokens = readTokens(source)
  const open = findExported(tokens)
  if (open === undefined) return () => undefined
  return locateWithin(source, readObject(tokens, open).node)
}

const locateWithin =
  (source: string, root: Node): Locate =>
  path => {
    let node: Node | undefined = root
    let offset = root.start
    for (const key of path) {
      const entry: { at: number; value: Node } | undefined = node.entries.get(key)
      if (entry === undefined) return undefined
      offset = entry.at
      node = entry.value
    }
    return positionAt(source, offset)
  }

const DEFINE = /^define(?:Tool|Resource|Prompt)$/

/** Locates keys of the definition that a module writes out under this kind and name; of several, of the `nth`, if that is told. */
export function locateDefinition(source: string, kind: string, name: string, nth?: number): Locate {
  const tokens = readTokens(source)
  const call = `define${kind}`.toLowerCase()
  const found = tokens.flatMap((token, index) => {
    if (token.text.toLowerCase() !== call || !isSequence(tokens, index + 1, '(', '{')) return []
    const { node } = readObject(tokens, index + 2)
    const written = node.entries.get('name')?.value.start
    const value = tokens.find(({ start }) => start === written)
    return value?.kind === 'string' && value.text.slice(1, -1) === name ? [node] : []
  })
  const node = found[nth ?? 0]
  return node === undefined || (found.length > 1 && nth === undefined) ? () => undefined : locateWithin(source, node)
}

const textAt = (tokens: readonly Token[], index: number): string | undefined => tokens[index]?.text

const isSequence = (tokens: readonly Token[], index: number, ...texts: string[]): boolean =>
  texts.every((text, step) => textAt(tokens, index + step) === text)

function findExported(tokens: readonly Token[]): number | undefined {
  for (let index = 0; index < tokens.length; index += 1) {
    if (isSequence(tokens, index, 'export', 'default')) return findObject(tokens, index + 2)
    if (isSequence(tokens, index, 'module', '.', 'exports', '=')) return findObject(tokens, index + 4)
  }
  return undefined
}

/** The index of the brace that opens the object at `index`, behind `defineConfig(`, brackets or one name. */
function findObject(tokens: readonly Token[], index: number, mayBeName = true): number | undefined {
  if (textAt(tokens, index) === '{') return index
  if (textAt(tokens, index) === '(') return findObject(tokens, index + 1, mayBeName)
  if (isSequence(tokens, index, 'defineConfig', '(')) return findObject(tokens, index + 2, mayBeName)
  const name = tokens[index]
  if (!mayBeName || name?.kind !== 'word' || OPENING.has(textAt(tokens, index + 1) ?? '')) return undefined
  if (['.', '?.'].includes(textAt(tokens, index + 1) ?? '')) return undefined
  const value = findDeclared(tokens, name.text)
  return value === undefined ? undefined : findObject(tokens, value, false)
}

/** The index of the value that is assigned where `name` is declared, if that happens once. */
function findDeclared(tokens: readonly Token[], name: string): number | undefined {
  const places = tokens.flatMap((_, index) =>
    ['const', 'let', 'var'].some(word => isSequence(tokens, index, word, name)) ? [index + 2] : [],
  )
  const [place] = places
  if (place === undefined || places.length > 1) return undefined
  const assigned = tokens.findIndex((token, index) => index >= place && token.text === '=')
  return assigned === -1 ? undefined : assigned + 1
}

function readObject(tokens: readonly Token[], open: number): Read {
  const node: Node = { start: tokens[open]?.start ?? 0, entries: new Map() }
  let index = open + 1
  while (!isEnd(tokens, index)) {
    if (textAt(tokens, index) === ',') {
      index += 1
      continue
    }
    const key = readKey(tokens, index)
    const after = key === undefined ? undefined : textAt(tokens, key.end)
    if (key === undefined) {
      // What is spread or computed may replace any key before it.
      node.entries.clear()
      index = skipValue(tokens, index)
    } else if (after === ':') {
      const value = readValue(tokens, key.end + 1)
      node.entries.set(key.name, { at: key.at, value: value.node })
      index = value.end
    } else if (after !== undefined && [',', '}', '('].includes(after)) {
      node.entries.set(key.name, { at: key.at, value: leaf(key.at) })
      index = skipValue(tokens, key.end)
    } else {
      // No object that we understand: none of its keys can be trusted.
      node.entries.clear()
      return { node, end: skipToClosing(tokens, index) + 1 }
    }
  }
  return { node, end: index + 1 }
}

/** The key at `index`, past `async`, `get`, `set` and `*`; undefined for a spread or a computed one. */
function readKey(tokens: readonly Token[], index: number): { name: string; at: number; end: number } | undefined {
  let at = index
  while (MODIFIERS.has(textAt(tokens, at) ?? '') && !':,}('.includes(textAt(tokens, at + 1) ?? ':')) at += 1
  const computed = textAt(tokens, at) === '[' && textAt(tokens, at + 2) === ']'
  const token = tokens[computed ? at + 1 : at]
  if (token === undefined || (computed && token.kind !== 'string')) return undefined
  if (token.kind !== 'word' && token.kind !== 'string' && token.kind !== 'number') return undefined
  const name = token.kind === 'string' ? token.text.slice(1, -1).replace(/\\(['"\\/])/g, '$1') : token.text
  return { name, at: token.start, end: computed ? at + 3 : at + 1 }
}

function readList(tokens: readonly Token[], open: number): Read {
  const node: Node = { start: tokens[open]?.start ?? 0, entries: new Map() }
  let index = open + 1
  for (let place = 0; !isEnd(tokens, index); place += 1) {
    // Behind a spread nobody knows which entry is which.
    if (textAt(tokens, index) === '...') return { node, end: skipToClosing(tokens, index) + 1 }
    if (textAt(tokens, index) !== ',') {
      const value = readValue(tokens, index)
      node.entries.set(place, { at: tokens[index]?.start ?? 0, value: value.node })
      index = value.end
    }
    if (textAt(tokens, index) === ',') index += 1
  }
  return { node, end: index + 1 }
}

/** Any bracket ends: in broken code it may be the wrong one. */
const isEnd = (tokens: readonly Token[], index: number): boolean => CLOSING.has(textAt(tokens, index) ?? ')')

const leaf = (start: number): Node => ({ start, entries: new Map() })

/** The value at `index`; its entries too where it is an object or list and nothing is done to it. */
function readValue(tokens: readonly Token[], index: number): Read {
  const text = textAt(tokens, index)
  if (DEFINE.test(text ?? '') && isSequence(tokens, index + 1, '(', '{')) {
    const { node, end } = readObject(tokens, index + 2)
    const isWhole = [',', ')', 'as', 'satisfies'].includes(textAt(tokens, end) ?? '')
    return { node: isWhole ? node : leaf(node.start), end: skipValue(tokens, index) }
  }
  const read = text === '{' ? readObject(tokens, index) : text === '[' ? readList(tokens, index) : undefined
  const after = read && textAt(tokens, read.end)
  const isWhole = after !== undefined && [',', '}', ']', 'as', 'satisfies'].includes(after)
  if (read && isWhole) return { node: read.node, end: skipValue(tokens, read.end) }
  return { node: leaf(tokens[index]?.start ?? 0), end: skipValue(tokens, index) }
}

/** The index of the comma or closing bracket that ends the value at `index`. */
const skipValue = (tokens: readonly Token[], index: number): number => skip(tokens, index, true)

const skipToClosing = (tokens: readonly Token[], index: number): number => skip(tokens, index, false)

function skip(tokens: readonly Token[], from: number, stopAtComma: boolean): number {
  let depth = 0
  for (let index = from; index < tokens.length; index += 1) {
    const token = tokens[index]
    if (token?.kind !== 'mark') continue
    if (depth === 0 && (CLOSING.has(token.text) || (stopAtComma && token.text === ','))) return index
    if (OPENING.has(token.text)) depth += 1
    if (CLOSING.has(token.text)) depth -= 1
  }
  return tokens.length
}
