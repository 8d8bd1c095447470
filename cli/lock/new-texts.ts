// Every text of an item that models, people and clients may read, and those of them that came in: so that nothing comes in
// which a reviewer is not shown, whatever the comparison says of the rest.
import { isObject } from '../../core/mcp/is-object.ts'
import type { JsonObject } from '../../core/mcp/protocol.ts'
import { MAPS, step, WORDS } from './compare-schemas.ts'

/** A text, and where it stands. Without `text`: a name that has none. */
export interface PlacedText {
  readonly at: string
  readonly text?: string
}

/** What a program reads, where it is one of its own words. */
const TECHNICAL = new Set(['type', '$ref', '$schema', '$id', 'format', 'required', 'mimeType', 'contentEncoding'])
const TOKEN = /^[\w$#/.:+-]{1,64}$/
const LISTS = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems'])

interface Place {
  readonly at: string
  /** The key that it has. */
  readonly key: string
  /** What it is: part of a schema, or schemas by names. */
  readonly is: 'schema' | 'map' | 'plain'
}

const SCHEMAS: Readonly<Record<string, string>> = { inputSchema: 'input', outputSchema: 'output' }

function placeIn({ at, is }: Place, key: string): Place {
  const root = SCHEMAS[key]
  if (is === 'plain' && at === '' && root !== undefined) return { at: root, key, is: 'schema' }
  if (is === 'map') return { at: `${at}${step(key)}`, key: '', is: 'schema' }
  if (is === 'plain') return { at: at === '' ? key : `${at}${step(key)}`, key, is }
  if (MAPS.includes(key)) return { at: key === 'properties' ? at : `${at}/${key}`, key, is: 'map' }
  if (key === 'items') return { at: `${at}[]`, key, is }
  if (key === 'additionalProperties') return { at: `${at}.*`, key, is }
  return { at: `${at}/${key}`, key, is }
}

function entriesIn(value: readonly unknown[], place: Place): ReadonlyArray<readonly [unknown, Place]> {
  const { at, key, is } = place
  const name = (index: number) =>
    LISTS.has(key) ? `${at.slice(0, -key.length - 1)}|${index + 1}` : `${at}[${index + 1}]`
  return value.map((entry, index) => [entry, { at: name(index), key, is }])
}

/** All of them, in the order in which they stand. */
function* textsIn(value: unknown, place: Place): Generator<PlacedText & { readonly key: string }> {
  const { at, key } = place
  if (typeof value === 'string') {
    if (!(TECHNICAL.has(key) && TOKEN.test(value))) yield { at, key, text: value }
  } else if (Array.isArray(value)) {
    for (const [entry, there] of entriesIn(value, place)) yield* textsIn(entry, there)
  } else if (isObject(value)) {
    for (const [name, entry] of Object.entries(value)) {
      const there = placeIn(place, name)
      if (place.is === 'map' && TOKEN.test(name)) yield { at: there.at, key: 'name' }
      else if (place.is === 'schema' ? !/^\$?\w{1,40}$/.test(name) : !TOKEN.test(name)) {
        yield { at: there.at, key: 'name', text: name }
      }
      yield* textsIn(entry, there)
    }
  }
}

/** The texts of something new; `name` is said already. */
export function textsOf(shown: JsonObject): PlacedText[] {
  const { name: _, ...rest } = shown
  const found = [...textsIn(rest, { at: '', key: '', is: 'plain' })]
  // A name whose texts follow is seen with them.
  return found
    .filter(({ at, text }, index) => text !== undefined || !(found[index + 1]?.at ?? '').startsWith(at))
    .map(({ at, text }) => ({ at, ...(text !== undefined && { text }) }))
}

/** What differences tell already: their places, the texts in quotes, and the values beside them. */
interface Told {
  readonly what: string
  readonly before?: unknown
  readonly after?: unknown
}

const QUOTED = /"(?:[^"\\]|\\.)*"/g

function toldIn(told: readonly Told[]) {
  const quoted = new Set(told.flatMap(({ what }) => what.match(QUOTED) ?? []))
  const whole = new Set<string | undefined>()
  for (const { after } of told) {
    if (typeof after === 'string') whole.add(after)
    else if (Array.isArray(after)) for (const value of after) quoted.add(String(value))
  }
  const places = told.map(({ what }) => what.split(': ', 1)[0] ?? '')
  return { quoted, whole, places: new Set(places) }
}

/** Texts of the newer that the older had nowhere, and that no difference tells. */
export function newTexts(before: JsonObject, after: JsonObject, told: readonly Told[]): PlacedText[] {
  const start: Place = { at: '', key: '', is: 'plain' }
  const known = new Set<string>()
  for (const { at, text } of textsIn(before, start)) known.add(text === undefined ? `at ${at}` : `text ${text}`)
  const { quoted, whole, places } = toldIn(told)
  const isTold = (text: string, key: string) =>
    whole.has(text) || (!WORDS.includes(key) && TOKEN.test(text) && quoted.has(JSON.stringify(text)))
  return [...textsIn(after, start)].flatMap(({ at, key, text }) => {
    if (text === undefined) return known.has(`at ${at}`) || places.has(at) ? [] : [{ at }]
    return known.has(`text ${text}`) || isTold(text, key) ? [] : [{ at, text }]
  })
}
