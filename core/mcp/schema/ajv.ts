// Loads ajv on demand, because it takes 25 ms, and creates instances for author schemas.
import { createRequire } from 'node:module'
import type * as ForDraft07 from 'ajv'
import type { Ajv, Options, SchemaValidateFunction } from 'ajv'
import type * as For2020 from 'ajv/dist/2020.js'
import type * as Formats from 'ajv-formats'
import type { JsonSchema } from '../wire/protocol.ts'
import { COUNTED } from './subschemas.ts'

// Compilation is synchronous, and both packages are CommonJS.
const require = createRequire(import.meta.url)

const loadAjv = (): typeof ForDraft07 => require('ajv')
export const loadAjv2020 = (): typeof For2020 => require('ajv/dist/2020.js')
// Loads by file: Node caches a failed lookup of `main`, so a retry by name would fail.
export const loadFormats = (): typeof Formats.default => require('ajv-formats/dist/index.js')

export function loadCompiler(): void {
  loadAjv()
  loadAjv2020()
  loadFormats()
}

let isNeeded = false

export const needCompiler = (): void => {
  isNeeded = true
}

export const loadNeededCompiler = (): void => {
  if (isNeeded) loadCompiler()
}

export type Dialect = 'draft 2020-12' | 'draft-07'

export const DIALECTS: Readonly<Record<Dialect, { readonly id: string; create(options: Options): Ajv }>> = {
  'draft 2020-12': {
    id: 'https://json-schema.org/draft/2020-12/schema',
    create: options => new (loadAjv2020().Ajv2020)(options),
  },
  'draft-07': { id: 'http://json-schema.org/draft-07/schema', create: options => new (loadAjv().Ajv)(options) },
}

export const isDraft07 = ({ $schema }: JsonSchema): boolean =>
  typeof $schema === 'string' && $schema.includes('json-schema.org/draft-07/')

export const LENIENT: Options = { strict: false, strictNumbers: true, logger: false }

/** Validates in linear time, because requests can have megabytes. */
export function createLinearAjv(dialect: Dialect, options: Options): Ajv {
  const ajv = DIALECTS[dialect].create({ ...LENIENT, ...options, verbose: true, validateSchema: false })
  // `id` is not defined by the meta-schemas, and ajv refuses it.
  ajv.removeKeyword('id')
  loadFormats().default(ajv)
  const url = formatOf(ajv, 'url')
  ajv.addFormat('url', text => {
    const [, scheme, host] = URL_PARTS.exec(text) ?? []
    return host !== undefined && url(`${scheme}${host}`)
  })
  for (const [name, limit] of Object.entries(MAX_FORMATTED)) {
    const check = formatOf(ajv, name)
    ajv.addFormat(name, text => text.length <= limit && check(text))
  }
  ajv.removeKeyword('uniqueItems')
  ajv.addKeyword({ keyword: COUNTED, before: '$ref', schema: false, validate: countReference })
  ajv.addKeyword({ keyword: 'uniqueItems', type: 'array', schemaType: 'boolean', validate: checkUnique })
  return ajv
}

/** Thrown by a validator that follows more references than allowed. */
export class TooMuchWork extends Error {}

let referencesLeft = 0

/** For the next validation. The alternatives of a recursive schema can multiply its work with each level of the value. */
export const allowReferences = (most: number): void => {
  referencesLeft = most
}

function countReference(): boolean {
  if (--referencesLeft < 0) throw new TooMuchWork()
  return true
}

/** Maximum characters: these formats split or compile the text. */
const MAX_FORMATTED = { 'date-time': 128, 'iso-date-time': 128, time: 128, 'iso-time': 128, regex: 4_096 }

/** `url` of ajv-formats takes quadratic time, so it checks only host and port. */
const URL_PARTS = /^((?:https?|ftp):\/\/)(?:[^\s/]+@)?([^\s/@]{1,260})(?:\/\S*)?$/i

function formatOf(ajv: Ajv, name: string): (text: string) => boolean {
  const format = ajv.formats[name]
  const check = typeof format === 'object' && 'validate' in format ? format.validate : format
  if (check instanceof RegExp) return text => check.test(text)
  if (typeof check === 'function') return check as (text: string) => boolean
  throw new Error(`ajv-formats has no format ${name}`)
}

// `uniqueItems` of ajv takes quadratic time: 4 MB of nested lists block the process for minutes.

let numbers = new Map<string, number>()
let known = new Map<object, string>()

/** Must be called after each validation, because values can change. */
export function forgetKeys(): void {
  if (known.size === 0) return
  numbers = new Map()
  known = new Map()
}

/** Returns a key that is equal for equal JSON. Contains the numbers of children, not their texts. */
function keyOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return typeof value === 'string' ? JSON.stringify(value) : `${value}`
  const found = known.get(value)
  if (found !== undefined) return found
  const text = Array.isArray(value)
    ? `[${value.map(keyOf).join()}]`
    : `{${Object.keys(value)
        .sort()
        .map(key => `${JSON.stringify(key)}:${keyOf(Reflect.get(value, key))}`)
        .join()}}`
  const number = numbers.get(text) ?? numbers.size
  numbers.set(text, number)
  known.set(value, `#${number}`)
  return `#${number}`
}

const isComposite = (item: unknown) => typeof item === 'object' && item !== null

const checkUnique: SchemaValidateFunction = (isWanted: boolean, items: readonly unknown[], parentSchema) => {
  if (!isWanted) return true
  const scalars = new Map<unknown, number>()
  const composites = new Map<unknown, number>()
  const last = items.findLastIndex(isComposite)
  const comparesComposites = items.findIndex(isComposite) < last
  for (let i = 0; i < items.length; i += 1) {
    const item = items[i]
    const composite = isComposite(item)
    if (composite && !comparesComposites) continue
    const key = composite ? keyOf(item) : item
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
