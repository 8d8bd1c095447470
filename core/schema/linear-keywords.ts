// Keywords of JSON Schema whose usual implementation takes time that grows with the square of what a client sends, in
// linear time. For core/schema/schema.ts: arguments come from anybody, and a request has megabytes.
import type { Ajv, SchemaValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'

/** Gives a validator all formats, and its keywords that would be slow anew. */
export function addLinearKeywords(ajv: Ajv): void {
  addFormats.default(ajv)
  replaceUrl(ajv)
  for (const name of TIMES) boundFormat(ajv, name)
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

function boundFormat(ajv: Ajv, name: string): void {
  const check = formatOf(ajv, name)
  ajv.addFormat(name, text => text.length <= MAX_TIME && check(text))
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

/** The same text for values that are equal as JSON, whatever the order of their keys. */
function keyOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return typeof value === 'string' ? JSON.stringify(value) : `${value}`
  if (Array.isArray(value)) return `[${value.map(keyOf).join()}]`
  if ('toJSON' in value && typeof value.toJSON === 'function') return keyOf(value.toJSON())
  const keys = Object.keys(value).sort()
  return `{${keys.map(key => `${JSON.stringify(key)}:${keyOf(Reflect.get(value, key))}`).join()}}`
}

const checkUnique: SchemaValidateFunction = (isWanted: boolean, items: readonly unknown[], parentSchema) => {
  if (!isWanted) return true
  // Texts, numbers and their kin are their own keys; no key of an object is looked up among those.
  const [scalars, composites] = [new Map<unknown, number>(), new Map<unknown, number>()]
  for (let i = 0; i < items.length; i += 1) {
    const item = items[i]
    const isComposite = typeof item === 'object' && item !== null
    const key = isComposite ? keyOf(item) : item
    const seen = isComposite ? composites : scalars
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
