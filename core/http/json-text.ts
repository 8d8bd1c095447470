// Reads JSON that strangers wrote, messages and other bodies. Its text is looked at before anything parses it: how deep it
// is nested, how many objects and lists it makes, and whether a key in it could reach a prototype once somebody copies it.
// One pass over the characters, whatever they are; no recursion meets a hostile depth.
import { HostError } from './errors.ts'

/** Deepest nesting of arrays and objects in a body. */
export const MAX_DEPTH = 128
/** Objects and lists of any body. A longer body may have one per `CHARACTERS_PER_OBJECT`. */
export const OBJECTS_IN_ANY_BODY = 100_000
export const CHARACTERS_PER_OBJECT = 8
/** Members of one object, and characters of a key. */
export const MAX_MEMBERS = 100_000
export const MAX_KEY = 8_192

/** A character of a key may be written as six. */
const LONGEST_KEY = 'constructor'.length * 6

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c

/** An odd number of backslashes before it; they end with the quote that begins its string. */
function isEscaped(text: string, quote: number): boolean {
  let index = quote - 1
  while (text.charCodeAt(index) === BACKSLASH) index--
  return (quote - index) % 2 === 0
}

/**
 * The position of the quote that ends the string that begins at `start`; the text's length where none does. Character by
 * character it was 1.6 of the 2.4 µs of a usual message.
 */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end === -1 ? text.length : end
}

const isSpace = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

function isKey(text: string, end: number): boolean {
  let index = end + 1
  while (isSpace(text.charCodeAt(index))) index++
  return text.charCodeAt(index) === COLON
}

/** A key that makes the text no JSON. */
const MALFORMED = Symbol('no JSON')

/** What a string says, if it may be one of the keys that matter; `escapes`: the text has a backslash somewhere. */
function readKey(text: string, start: number, end: number, escapes: boolean): string | typeof MALFORMED | undefined {
  const length = end - start - 1
  if (length < '__proto__'.length || length > (escapes ? LONGEST_KEY : 'constructor'.length)) return undefined
  const raw = text.slice(start + 1, end)
  if (!raw.includes('\\')) return raw
  try {
    return JSON.parse(`"${raw}"`)
  } catch {
    return MALFORMED
  }
}

/** Why no body may have this text, in words for the client; undefined: it may, if it is JSON. */
export function findForbidden(text: string): string | undefined {
  /** For each object or array that is open: whether it is the value of a key `constructor`. */
  const open: boolean[] = []
  /** How many members each of them has, by its depth. */
  const members: number[] = []
  let key: string | typeof MALFORMED | undefined
  let objects = 0
  const escapes = text.includes('\\')
  const most = Math.max(OBJECTS_IN_ANY_BODY, Math.floor(text.length / CHARACTERS_PER_OBJECT))
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === QUOTE) {
      const end = endOfString(text, index)
      if (isKey(text, end)) {
        if (end - index > MAX_KEY) return `it has a key of more than ${MAX_KEY} characters`
        const count = (members[open.length] ?? 0) + 1
        if (count > MAX_MEMBERS) return `it has an object of more than ${MAX_MEMBERS} members`
        members[open.length] = count
        key = readKey(text, index, end, escapes)
        // The parser comes no further than here either, and says so once.
        if (key === MALFORMED) return undefined
        if (key === '__proto__' || (key === 'prototype' && open.at(-1))) return 'it has a key that no message may have'
      }
      index = end
    } else if (code === 0x7b || code === 0x5b) {
      if (++objects > most) return `it has more than ${most} objects and lists`
      if (open.push(key === 'constructor') > MAX_DEPTH) return `nested deeper than ${MAX_DEPTH} levels`
      members[open.length] = 0
      key = undefined
    } else if (code === 0x7d || code === 0x5d) {
      open.pop()
      key = undefined
    } else if (code === COMMA) key = undefined
  }
  return undefined
}

const BYTE_ORDER_MARK = 0xfeff

/** Throws `invalidRequest` for text that is empty or past the bounds, and `parseError` for what is no JSON. */
export function parseJson(text: string): unknown {
  if (text.trim() === '') throw new HostError('invalidRequest', { detail: 'the body is empty' })
  const forbidden = findForbidden(text)
  if (forbidden !== undefined) throw new HostError('invalidRequest', { detail: forbidden })
  try {
    return JSON.parse(text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text)
  } catch (cause) {
    throw new HostError('parseError', { detail: 'the body is not JSON', cause })
  }
}
