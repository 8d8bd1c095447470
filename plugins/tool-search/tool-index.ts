// The index of a set of tools, and its queries: minisearch over names, titles, descriptions and parameters. Loaded with the
// first query.
import MiniSearch from 'minisearch'
import type { ToolItem } from '../../core/auth.ts'
import { isObject } from '../../core/index.ts'
import { queryWords, wordsOf } from './words.ts'

/** How much a word counts where it stands. */
const WEIGHTS = { name: 6, title: 4, description: 2, parameters: 1 }
/** Tools that are indexed before others have their turn. */
const AT_ONCE = 100
/** Of an input schema: how deep parameters are looked for, and how many of one tool. */
const MAX_DEPTH = 4
const MAX_PARAMETERS = 100

export interface ToolIndex {
  /** Places of tools, the best first; of those that fit as well as each other, by name. `mayFind`: others are left out. */
  search(query: string, limit: number, mayFind: (at: number) => boolean): number[]
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

const documentOf = ({ key, definition: { title, description }, input }: ToolItem, id: number) => ({
  id,
  name: key,
  title: title ?? '',
  description: description ?? '',
  parameters: parametersOf(input.json).join(' '),
})

/** Indexes tools, a few at a time. */
export async function createToolIndex(tools: readonly ToolItem[]): Promise<ToolIndex> {
  const index = new MiniSearch<ReturnType<typeof documentOf>>({
    fields: Object.keys(WEIGHTS),
    tokenize: wordsOf,
    processTerm: word => word,
  })
  for (let from = 0; from < tools.length; from += AT_ONCE) {
    index.addAll(tools.slice(from, from + AT_ONCE).map((tool, at) => documentOf(tool, from + at)))
    await new Promise(resolve => setImmediate(resolve))
  }
  const byName = new Map(tools.map(({ key }, at) => [key, at] as const))
  const nameOf = (at: number) => tools[at]?.key ?? ''

  return {
    search(query, limit, mayFind) {
      const named = byName.get(query.trim())
      const found = index.search(query, {
        tokenize: queryWords,
        boost: WEIGHTS,
        prefix: word => word.length > 2,
        fuzzy: word => (word.length > 4 ? 0.2 : false),
        maxFuzzy: 2,
        filter: ({ id }) => id !== named && mayFind(id),
      })
      const places = found
        .sort((one, other) => other.score - one.score || (nameOf(one.id) < nameOf(other.id) ? -1 : 1))
        .map(({ id }): number => id)
      return [...(named !== undefined && mayFind(named) ? [named] : []), ...places].slice(0, limit)
    },
  }
}
