// The search index over a set of tools: names, titles, descriptions and parameters. Loaded with the first query.
import MiniSearch from 'minisearch'
import type { ToolItem } from '../../core/auth.ts'
import { isObject } from '../../core/plugin.ts'

/** Number of tools that are indexed before other requests are served. */
const CHUNK_SIZE = 25
/** Limits for an input schema: depth, and parameters per tool. */
const MAX_DEPTH = 4
const MAX_PARAMETERS = 100
const MAX_TEXT = 4_000
/** Maximum characters per compound name, and per word. */
const MAX_CHUNK = 160
const MAX_WORD = 40
/** Maximum words per query. With thousands of tools, each word costs milliseconds. */
const MAX_WORDS = 8
/** Minimum lengths of words that match as a prefix, and with a misspelling. */
const MIN_PREFIX = 3
const MIN_FUZZY = 5
/** Maximum misspelled words per query: each is compared with the whole vocabulary. */
const MAX_FUZZY_WORDS = 3

const BOOST = { name: 6, title: 4, description: 2, parameters: 1 }

const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    'a an and are at be by can could do does for from how i in into is it me my of on or please that the this to want ' +
    'what which with would you your'
  ).split(' '),
)

const CAMEL = /(?<=[\p{Ll}\p{N}])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u

/** Returns the words of a text, in lower case and without accents. Compound names are split and also kept whole. */
function tokenize(text: string): string[] {
  const chunks = text
    .slice(0, MAX_TEXT)
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .split(/[^\p{L}\p{N}]+/u)
  return chunks.flatMap(chunk => {
    const parts = chunk.length > MAX_CHUNK ? [] : chunk.split(CAMEL)
    const all = parts.length > 1 ? [...parts, chunk] : parts
    return all.filter(({ length }) => length > 0 && length <= MAX_WORD).map(word => word.toLowerCase())
  })
}

function queryWords(query: string): string[] {
  const words = [...new Set(tokenize(query))]
  const significant = words.filter(word => !STOP_WORDS.has(word))
  return (significant.length > 0 ? significant : words).slice(0, MAX_WORDS)
}

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

const documentOf = ({ key, definition, input }: ToolItem, id: number) => ({
  id,
  name: key,
  title: definition.title ?? '',
  description: definition.description ?? '',
  parameters: parametersOf(input.json).join(' '),
})

export interface ToolIndex {
  search(query: string, limit: number): ToolItem[]
}

export async function createToolIndex(tools: readonly ToolItem[]): Promise<ToolIndex> {
  const index = new MiniSearch<ReturnType<typeof documentOf>>({
    fields: Object.keys(BOOST),
    tokenize: tokenize,
    processTerm: term => term,
  })
  await index.addAllAsync(tools.map(documentOf), { chunkSize: CHUNK_SIZE })
  const placeByName = new Map(tools.map(({ key }, at) => [key, at] as const))
  return {
    search(query, limit) {
      const named = placeByName.get(query.trim())
      let fuzzyWords = 0
      const found = index.search(query, {
        boost: BOOST,
        tokenize: queryWords,
        prefix: ({ length }) => length >= MIN_PREFIX,
        fuzzy: ({ length }) => length >= MIN_FUZZY && ++fuzzyWords <= MAX_FUZZY_WORDS && 0.2,
        maxFuzzy: 2,
      })
      const places = found.sort((a, b) => b.score - a.score || a.id - b.id).map(({ id }) => id as number)
      const ordered = named === undefined ? places : [named, ...places.filter(at => at !== named)]
      return ordered.slice(0, limit).flatMap(at => tools[at] ?? [])
    },
  }
}
