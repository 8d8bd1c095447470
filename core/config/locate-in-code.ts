// Finds lines of keys in TypeScript and JavaScript. Only literals have lines; computed or possibly overwritten keys have none.
import { createRequire } from 'node:module'
import type { CallExpression, Expression, File, Node } from '@babel/types'
import type { Path } from '../http/errors.ts'

export interface Locate {
  /** Returns the line of the key or list entry at a path; undefined if uncertain. */
  (path: Path): number | undefined
  /** Returns the source text of the value at a path; undefined if uncertain. */
  readonly textAt?: (path: Path) => string | undefined
}

export const lineAt = (source: string, offset: number): number => source.slice(0, offset).split('\n').length

const require = createRequire(import.meta.url)

interface ParsedCode {
  readonly file?: File
  readonly syntaxError?: { readonly line: number | undefined }
}

export function parseCode(source: string): ParsedCode {
  const { parse } = require('@babel/parser') as typeof import('@babel/parser')
  try {
    return { file: parse(source, { sourceType: 'unambiguous', plugins: ['typescript', 'explicitResourceManagement'] }) }
  } catch (error) {
    return { syntaxError: { line: (error as { loc?: { line: number } }).loc?.line } }
  }
}

export function nodesIn(root: Node | undefined): Node[] {
  const nodes: Node[] = root ? [root] : []
  for (const node of nodes) for (const child of Object.values(node).flat()) if (isNode(child)) nodes.push(child)
  return nodes.sort((a, b) => (a.start ?? 0) - (b.start ?? 0))
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value && typeof value.type === 'string'

export function locateInCode(source: string): Locate {
  let found: { readonly root: Node | undefined } | undefined
  const entryAt = (path: Path) => {
    found ??= { root: exportedObject(parseCode(source).file) }
    return entryWithin(found.root, path)
  }
  const textAt = (path: Path) => {
    const { value } = entryAt(path) ?? {}
    return value && source.slice(value.start ?? 0, value.end ?? 0)
  }
  return Object.assign((path: Path) => entryAt(path)?.key.loc?.start.line, { textAt })
}

/** Finds the insertion point for a first entry of the object at a path. Undefined if there is no object literal. */
export function objectInCode(
  source: string,
  path: Path,
): { readonly start: number; readonly isEmpty: boolean } | undefined {
  const { value } = entryWithin(exportedObject(parseCode(source).file), path) ?? {}
  const literal = value && literalOf(value)
  if (literal?.type !== 'ObjectExpression' || typeof literal.start !== 'number') return undefined
  return { start: literal.start + 1, isEmpty: literal.properties.length === 0 }
}

/** Locates keys of the definition with this kind and name; `nth` selects one of several. */
export function locateDefinition(source: string, kind: string, name: string, nth?: number): Locate {
  const found = definitionsIn(parseCode(source).file, `define${kind}`.toLowerCase(), name)
  const root = found.length > 1 ? found[nth ?? -1] : found[nth ?? 0]
  return path => entryWithin(root, path)?.key.loc?.start.line
}

type Entry = Readonly<Record<'key' | 'value', Node>>

const entryWithin = (root: Node | undefined, path: Path): Entry | undefined =>
  path.reduce<Entry | undefined>((found, key) => found && entryOf(found.value, key), root && { key: root, value: root })

function literalOf(node: Node): Node {
  switch (node.type) {
    case 'TSAsExpression':
    case 'TSSatisfiesExpression':
    case 'TSTypeAssertion':
    case 'TSNonNullExpression':
    case 'ParenthesizedExpression':
      return literalOf(node.expression)
    case 'CallExpression':
      return /^define(?:Config|Tool|Resource|Prompt)$/.test(calleeOf(node)) && node.arguments[0]
        ? literalOf(node.arguments[0])
        : node
    default:
      return node
  }
}

const calleeOf = ({ callee }: CallExpression): string => (callee.type === 'Identifier' ? callee.name : '')

function entryOf(node: Node, key: string | number): Entry | undefined {
  const literal = literalOf(node)
  if (literal.type === 'ArrayExpression' && typeof key === 'number') {
    const before = literal.elements.slice(0, key + 1)
    const value = before.every(element => element?.type !== 'SpreadElement') ? before[key] : undefined
    return value ? { key: value, value } : undefined
  }
  if (literal.type !== 'ObjectExpression') return undefined
  // A later spread or computed key can overwrite the key.
  for (const property of literal.properties.toReversed()) {
    if (property.type === 'SpreadElement') return undefined
    const name = nameOf(property.key, property.computed)
    if (name === undefined) return undefined
    const value = property.type === 'ObjectProperty' && !property.shorthand ? property.value : property.key
    if (name === String(key)) return { key: property.key, value }
  }
  return undefined
}

function nameOf(key: Node, isComputed: boolean | undefined): string | undefined {
  if (key.type === 'StringLiteral' || key.type === 'NumericLiteral') return String(key.value)
  return key.type === 'Identifier' && !isComputed ? key.name : undefined
}

function exportedObject(file: File | undefined): Node | undefined {
  const statements = file?.program.body ?? []
  for (const statement of statements) {
    if (statement.type === 'ExportDefaultDeclaration') return objectOf(statement.declaration, statements)
    if (statement.type !== 'ExpressionStatement' || statement.expression.type !== 'AssignmentExpression') continue
    const { left, right } = statement.expression
    if (left.type === 'MemberExpression' && left.property.type === 'Identifier' && left.property.name === 'exports') {
      return objectOf(right, statements)
    }
  }
  return undefined
}

function objectOf(node: Node, statements: readonly Node[]): Node | undefined {
  const literal = literalOf(node)
  if (literal.type === 'ObjectExpression') return literal
  if (literal.type !== 'Identifier') return undefined
  const declared = statements.flatMap(statement =>
    statement.type === 'VariableDeclaration' ? statement.declarations : [],
  )
  const init: Expression | null | undefined = declared.find(
    ({ id }) => id.type === 'Identifier' && id.name === literal.name,
  )?.init
  return init && init.type !== 'Identifier' ? objectOf(init, statements) : undefined
}

const definitionsIn = (file: File | undefined, call: string, name: string): Node[] =>
  nodesIn(file).flatMap(node => {
    if (node.type !== 'CallExpression' || calleeOf(node).toLowerCase() !== call) return []
    const [argument] = node.arguments
    const written = argument && entryOf(argument, 'name')?.value
    return argument && written?.type === 'StringLiteral' && written.value === name ? [literalOf(argument)] : []
  })
