// The index of a set of tools, of their names, titles, descriptions and parameters; what a caller finds is asked of the index
// of those alone that this caller may find. Loaded with the first query.
import type { ToolItem } from '../../core/auth.ts'
import { isObject } from '../../core/index.ts'
import { bytesOf, type Postings, PostingsWriter, restrict } from './postings.ts'
import { rank } from './rank.ts'
import { createReader, queryWords } from './words.ts'

/** Tools that are indexed before others have their turn. */
const AT_ONCE = 25
/** Of an input schema: how deep parameters are looked for, and how many of one tool. */
const MAX_DEPTH = 4
const MAX_PARAMETERS = 100

export interface ToolIndex {
  /** In the order of their names. */
  readonly tools: readonly ToolItem[]
  /** About what it takes in memory. */
  readonly bytes: number
  /** At most `limit` of its tools, the best first; of those that fit as well as each other, by name. */
  search(query: string, limit: number): ToolItem[]
  /** The index of some of its tools, those with a 1: it answers as if there were no others. */
  restrict(kept: Uint8Array): ToolIndex
}

/** Names and descriptions of properties, at any depth within bounds. */
function parametersOf(schema: unknown, depth = 0, found: string[] = []): string[] {
  if (!isObject(schema) || depth > MAX_DEPTH) return found
  const { properties, items } = schema
  for (const [name, property] of isObject(properties) ? Object.entries(properties) : []) {
    if (found.length >= MAX_PARAMETERS) return found
    const description = isObject(property) ? property['description'] : undefined
    found.push(typeof description === 'string' ? `${name} ${description}` : name)
    parametersOf(property, depth + 1, found)
  }
  return parametersOf(items, depth + 1, found)
}

/** The words of a tool's fields, in the order of their weights. */
function fieldsOf(tool: ToolItem, wordsOf: (text: string) => string[]): string[][] {
  const { key, definition, input } = tool
  const { title = '', description = '' } = definition
  const texts = [key, title, description, parametersOf(input.json).join(' ')]
  return texts.map(text => wordsOf(text).filter(word => word !== ''))
}

function indexOf(tools: readonly ToolItem[], postings: Postings): ToolIndex {
  const places = new Map(tools.map(({ key }, at) => [key, at] as const))
  return {
    tools,
    bytes: bytesOf(postings) + tools.length * BYTES_PER_TOOL,
    search(query, limit) {
      const named = places.get(query.trim())
      const found = rank(postings, queryWords(query)).filter(at => at !== named)
      return [...(named === undefined ? [] : [named]), ...found].slice(0, limit).flatMap(at => tools[at] ?? [])
    },
    restrict(kept) {
      return indexOf(
        tools.filter((_, at) => kept[at] === 1),
        restrict(postings, kept),
      )
    },
  }
}

/** Of the list of tools, and of their places by name. */
const BYTES_PER_TOOL = 60

/** Indexes tools, which are in the order of their names, a few at a time. */
export async function createToolIndex(tools: readonly ToolItem[]): Promise<ToolIndex> {
  const wordsOf = createReader()
  const writer = new PostingsWriter()
  for (let from = 0; from < tools.length; from += AT_ONCE) {
    for (const tool of tools.slice(from, from + AT_ONCE)) writer.add(fieldsOf(tool, wordsOf))
    await new Promise(resolve => setImmediate(resolve))
  }
  return indexOf(tools, writer.close())
}
