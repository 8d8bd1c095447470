// Keywords of JSON Schema whose usual implementation takes time that grows with the square of what a client sends, in
// linear time. For core/mcp/schema/schema.ts: arguments come from anybody, and a request has megabytes.
import type { Ajv, SchemaValidateFunction } from 'ajv'
import { JsonKeys } from './json-keys.ts'
import { loadFormats } from './load-ajv.ts'

/** Gives a validator all formats, and its keywords that would be slow anew. */
export function addLinearKeywords(ajv: Ajv): void {
  loadFormats().default(ajv)
  replaceUrl(ajv)
  for (const name of TIMES) boundFormat(ajv, name, MAX_TIME)
  boundFormat(ajv, 'regex', MAX_REGEX)
  ajv.removeKeyword('uniqueItems')
  ajv.addKeyword({ keyword: 'uniqueItems', type: 'array', schemaType: 'boolean', validate: checkUnique })
}

type FormatCheck = (text: string) => boolean

function formatOf(ajv: Ajv, name: string): FormatCheck {
  const format = ajv.formats[name]
  const check = typeof format === 'object' && 'validate' in format ? format.validate : format
  if (check instanceof RegExp) return text => check.test(text)
  if (typeof check === 'function') return text => (check as FormatCheck)(text)
  throw new Error(`ajv-formats has no format ${name}`)
}

/** Formats that take their text apart before they look how long it is. */
const TIMES = ['date-time', 'iso-date-time', 'time', 'iso-time'] as const
/** Characters: a date, a time and an offset, with fractions of a second to spare. */
const MAX_TIME = 128
/** Characters: each regular expression is compiled. */
const MAX_REGEX = 4_096

function boundFormat(ajv: Ajv, name: string, most: number): void {
  const check = formatOf(ajv, name)
  ajv.addFormat(name, text => text.length <= most && check(text))
}

// The longest host name, and a port.
const URL_PARTS = /^((?:https?|ftp):\/\/)(?:[^\s/]+@)?([^\s/@]{1,260})(?:\/\S*)?$/i

/** `url` of ajv-formats tries its host at each place where a user's name may end; only the host is left to it. */
function replaceUrl(ajv: Ajv): void {
  const check = formatOf(ajv, 'url')
  ajv.addFormat('url', text => {
    const [, scheme, host] = URL_PARTS.exec(text) ?? []
    return host !== undefined && check(`${scheme}${host}`)
  })
}

/** Of the validation that runs: lists in lists look at the same values, once for each level. */
let keys: JsonKeys | undefined

/** At the end of each validation: what it was of may be changed. */
export function forgetKeys(): void {
  keys = undefined
}

const isComposite = (item: unknown) => typeof item === 'object' && item !== null

function hasTwoComposites(items: readonly unknown[]): boolean {
  const first = items.findIndex(isComposite)
  return first >= 0 && items.findIndex((item, index) => index > first && isComposite(item)) >= 0
}

const checkUnique: SchemaValidateFunction = (isWanted: boolean, items: readonly unknown[], parentSchema) => {
  if (!isWanted) return true
  // Texts, numbers and their kin are their own keys; no key of an object is looked up among those.
  const [scalars, composites] = [new Map<unknown, number>(), new Map<unknown, number>()]
  const comparesComposites = hasTwoComposites(items)
  keys ??= new JsonKeys()
  const known = keys
  for (let i = 0; i < items.length; i += 1) {
    const item = items[i]
    const composite = isComposite(item)
    if (composite && !comparesComposites) continue
    const key = composite ? known.keyOf(item) : item
    const seen = composite ? composites : scalars
    const j = seen.get(key)
    if (j !== undefined) {
      const message = `must NOT have duplicate items (items ## ${j} and ${i} are identical)`
      checkUnique.errors = [
        { keyword: 'uniqueItems', message, params: { i, j }, ...(parentSchema && { parentSchema }) },
      ]
      return false
    }
    seen.set(key, i)
  }
  return true
}
