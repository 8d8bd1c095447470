// Parses JSON responses and detects numbers and keys that JavaScript values cannot hold.
import { endOfString } from '../../core/internal.ts'
import { trimEndOf } from '../families/texts/index.ts'

export interface ParsedJson {
  /** The value. Numbers that JavaScript would change are texts with all digits. */
  readonly value: unknown
  /** Compact JSON if it is equal to the response, otherwise the response. */
  readonly text: string
  /** Numbers that are texts in `value`. */
  readonly inexact: number
  /** A key that an object has more than once. `value` has only the last member. */
  readonly duplicate?: string
}

/** Maximum nesting of responses and documents. */
export const MAX_DEPTH = 512

const [QUOTE, COMMA, MINUS, COLON] = [0x22, 0x2c, 0x2d, 0x3a]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39

function numberEnd(json: string, start: number): number {
  let index = start + 1
  while (index < json.length && (isDigit(json.charCodeAt(index)) || '+-.eE'.includes(json.charAt(index)))) index++
  return index
}

/** Longer numbers are not compared. A double has at most 17 significant digits and an exponent of three. */
const LONGEST_NUMBER = 400
const LARGE_EXPONENT = /[eE][+-]?\d{6}/

/** Returns significant digits and magnitude, to compare two spellings of a number. */
function normalizeDigits(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const digits = (whole + fraction).replace(/^0+/, '')
  const significant = trimEndOf(digits, '0')
  if (significant === '') return '0'
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`
}

/** True if a double preserves the number. A double loses digits after the 17th, and numbers out of its range. */
function isExact(token: string): boolean {
  if (token.length < 16 && !/[eE]/.test(token)) return true
  if (token.length > LONGEST_NUMBER || LARGE_EXPONENT.test(token)) return false
  return normalizeDigits(String(Number(token))) === normalizeDigits(token)
}

interface Open {
  readonly keys: Set<string> | undefined
  isKey: boolean
}

/** Scans valid JSON. `text` has inexact numbers as JSON strings. */
function scan(json: string) {
  const open: Open[] = []
  const pieces: string[] = []
  let from = 0
  let inexact = 0
  let duplicate: string | undefined
  for (let index = 0; index < json.length; ) {
    const start = index++
    const code = json.charCodeAt(start)
    const top = open.at(-1)
    if (code === OPEN_OBJECT) open.push({ keys: new Set(), isKey: true })
    else if (code === OPEN_LIST) open.push({ keys: undefined, isKey: false })
    else if (code === CLOSE_OBJECT || code === CLOSE_LIST) open.pop()
    else if (code === COMMA) {
      if (top) top.isKey = top.keys !== undefined
    } else if (code === COLON) {
      if (top) top.isKey = false
    } else if (code === QUOTE) {
      index = endOfString(json, start) + 1
      if (!top?.isKey || !top.keys) continue
      const token = json.slice(start, index)
      const key: string = token.includes('\\') ? JSON.parse(token) : token.slice(1, -1)
      if (top.keys.has(key)) duplicate ??= key
      top.keys.add(key)
    } else if (code === MINUS || isDigit(code)) {
      index = numberEnd(json, start)
      const token = json.slice(start, index)
      if (isExact(token)) continue
      inexact++
      pieces.push(json.slice(from, start), `"${token}"`)
      from = index
    }
  }
  return { text: inexact === 0 ? json : pieces.join('') + json.slice(from), inexact, duplicate }
}

/** True if JSON is nested too deeply. Also accepts invalid JSON. */
export function isTooDeep(json: string): boolean {
  let depth = 0
  for (let index = 0; index < json.length; ) {
    const code = json.charCodeAt(index)
    if (code === QUOTE) {
      index = endOfString(json, index) + 1
      continue
    }
    if ((code === OPEN_LIST || code === OPEN_OBJECT) && ++depth > MAX_DEPTH) return true
    if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth--
    index++
  }
  return false
}

export const stripByteOrderMark = (text: string): string => (text.charCodeAt(0) === 0xfeff ? text.slice(1) : text)

/** Parses a response. Undefined for text that is not JSON or is nested too deeply. */
export function parseResponse(body: string): ParsedJson | undefined {
  const json = stripByteOrderMark(body)
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
