// Parses TypeScript or JavaScript source to find the line of an error. The parser is loaded at the first error.
import { createRequire } from 'node:module'
import type { File, Node } from '@babel/types'

const require = createRequire(import.meta.url)

export interface ParsedCode {
  /** Undefined where the source has a syntax error. */
  readonly file?: File
  readonly fault?: { readonly line: number | undefined }
}

export function parseCode(source: string): ParsedCode {
  const { parse } = require('@babel/parser') as typeof import('@babel/parser')
  try {
    return { file: parse(source, { sourceType: 'unambiguous', plugins: ['typescript', 'explicitResourceManagement'] }) }
  } catch (error) {
    return { fault: { line: (error as { loc?: { line: number } }).loc?.line } }
  }
}

/** Every node of the tree, in the order of the source. */
export function nodesIn(root: Node | undefined): Node[] {
  const nodes: Node[] = root ? [root] : []
  for (const node of nodes) {
    for (const child of Object.values(node).flat()) if (isNode(child)) nodes.push(child)
  }
  return nodes.sort((a, b) => (a.start ?? 0) - (b.start ?? 0))
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value && typeof value.type === 'string'
