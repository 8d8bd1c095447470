// Parses JSON responses and detects numbers and keys that JavaScript values cannot hold.
import { trimEndOf } from './trim-end.ts'

/** The result of `parseResponse`. */
export interface ParsedJson {
  /** The value. Numbers that JavaScript would change are texts with all digits. */
  readonly value: unknown
  /** Compact JSON if it is equal to the response, otherwise the response. */
  readonly text: string
  /** Numbers that are texts in `value`. */
  readonly inexact: number
  /** A key that an object has more than once: `value` has its last member only. */
  readonly duplicate?: string
}

/** Maximum nesting of a response. */
const MAX_DEPTH = 512

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[{}[\],:]/g

/** Longer numbers are not compared: a double has no more than 17 significant digits and an exponent of three. */
const LONGEST_NUMBER = 400
const LARGE_EXPONENT = /[eE][+-]?\d{6}/

/** Returns significant digits and magnitude, to compare two spellings of a number. */
function digitsOf(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const digits = (whole + fraction).replace(/^0+/, '')
  const significant = trimEndOf(digits, '0')
  if (significant === '') return '0'
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`
}

/** True if a double preserves the number: digits after the 17th and numbers beyond its range are lost. */
function isExact(token: string): boolean {
  if (token.length < 16 && !/[eE]/.test(token)) return true
  if (token.length > LONGEST_NUMBER || LARGE_EXPONENT.test(token)) return false
  return digitsOf(String(Number(token))) === digitsOf(token)
}

interface Open {
  readonly keys: Set<string> | undefined
  isKey: boolean
}

interface Scan {
  readonly text: string
  readonly inexact: number
  readonly duplicate: string | undefined
}

/** Scans valid JSON. `text` has inexact numbers as JSON strings. */
function scan(json: string): Scan {
  const open: Open[] = []
  const pieces: string[] = []
  let from = 0
  let inexact = 0
  let duplicate: string | undefined
  for (const match of json.matchAll(TOKEN)) {
    const [token] = match
    const top = open.at(-1)
    const first = token.charCodeAt(0)
    if (token === '{' || token === '[') open.push({ keys: token === '{' ? new Set() : undefined, isKey: token === '{' })
    else if (token === '}' || token === ']') open.pop()
    else if (token === ',') {
      if (top) top.isKey = top.keys !== undefined
    } else if (token === ':') {
      if (top) top.isKey = false
    } else if (first === 0x22) {
      if (!top?.isKey || !top.keys) continue
      const key: string = token.includes('\\') ? JSON.parse(token) : token.slice(1, -1)
      if (top.keys.has(key)) duplicate ??= key
      top.keys.add(key)
    } else if (!isExact(token)) {
      inexact++
      pieces.push(json.slice(from, match.index), `"${token}"`)
      from = match.index + token.length
    }
  }
  return { text: inexact === 0 ? json : pieces.join('') + json.slice(from), inexact, duplicate }
}

function isDeeper(json: string, most: number): boolean {
  let depth = 0
  for (const [token] of json.matchAll(TOKEN)) {
    if (token === '{' || token === '[') depth++
    else if (token === '}' || token === ']') depth--
    if (depth > most) return true
  }
  return false
}

/** True if JSON is nested too deeply. Text with fewer brackets than the limit cannot be. */
function isTooDeep(json: string): boolean {
  let brackets = 0
  for (let index = 0; index < json.length; index++) {
    const code = json.charCodeAt(index)
    if ((code === 0x5b || code === 0x7b) && ++brackets > MAX_DEPTH) return isDeeper(json, MAX_DEPTH)
  }
  return false
}

/** Parses a response. Undefined for text that is not JSON or is nested too deeply. */
export function parseResponse(body: string): ParsedJson | undefined {
  const json = body.charCodeAt(0) === 0xfeff ? body.slice(1) : body
  let value: unknown
  try {
    if (isTooDeep(json)) return undefined
    value = JSON.parse(json)
  } catch {
    return undefined
  }
  const text = JSON.stringify(value)
  // Equal text proves that all values are preserved. This is the common case, because most servers send compact JSON.
  if (text === json) return { value, text, inexact: 0 }
  const { text: exact, inexact, duplicate } = scan(json)
  if (duplicate !== undefined) return { value, text: json, inexact, duplicate }
  if (inexact > 0) return { value: JSON.parse(exact), text: json, inexact }
  return { value, text, inexact: 0 }
}
