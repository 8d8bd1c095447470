// The index of a set of tools, and its queries: minisearch over names, titles, descriptions and parameters. Loaded with the
// first query.
import MiniSearch from 'minisearch'
import type { ToolItem } from '../../core/auth.ts'
import { isObject } from '../../core/index.ts'
import { Vocabulary } from './vocabulary.ts'
import { createReader, queryWords } from './words.ts'

/** How much a word counts where it stands. */
const WEIGHTS = { name: 6, title: 4, description: 2, parameters: 1 }
/** Tools that are indexed before others have their turn. */
const AT_ONCE = 25
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

type Fields = { readonly id: number } & Readonly<Record<keyof typeof WEIGHTS, string>>

/** A tool with its texts as words, a space between two. */
function documentOf(
  { key, definition: { title = '', description = '' }, input }: ToolItem,
  id: number,
  wordsOf: (text: string) => string[],
): Fields {
  const words = (text: string) => wordsOf(text).join(' ')
  const parameters = parametersOf(input.json).join(' ')
  return { id, name: words(key), title: words(title), description: words(description), parameters: words(parameters) }
}

const split = (words: string): string[] => words.split(' ')

/** Puts tools into an index and their words into a vocabulary, a few at a time. */
async function addTools(tools: readonly ToolItem[], index: MiniSearch<Fields>, vocabulary: Vocabulary): Promise<void> {
  const wordsOf = createReader()
  for (let from = 0; from < tools.length; from += AT_ONCE) {
    for (const [at, tool] of tools.slice(from, from + AT_ONCE).entries()) {
      const { id, ...texts } = documentOf(tool, from + at, wordsOf)
      vocabulary.count(Object.values(texts).flatMap(split))
      index.add({ id, ...texts })
    }
    await new Promise(resolve => setImmediate(resolve))
  }
  vocabulary.close()
}

/** Indexes tools. */
export async function createToolIndex(tools: readonly ToolItem[]): Promise<ToolIndex> {
  const fields = Object.keys(WEIGHTS)
  const index = new MiniSearch<Fields>({ fields, tokenize: split, processTerm: word => word })
  const vocabulary = new Vocabulary()
  await addTools(tools, index, vocabulary)
  const byName = new Map(tools.map(({ key }, at) => [key, at] as const))
  const nameOf = (at: number) => tools[at]?.key ?? ''

  return {
    search(query, limit, mayFind) {
      const named = byName.get(query.trim())
      const { words, prefixes, misspelt } = vocabulary.plan(queryWords(query))
      const found = index.search(words.join(' '), {
        boost: WEIGHTS,
        prefix: word => prefixes.has(word),
        fuzzy: word => (misspelt.has(word) ? 0.2 : false),
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
