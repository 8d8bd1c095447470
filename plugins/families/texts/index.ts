// Texts about servers and documents: escapes invisible characters, shortens names and formats counts.
import { createHash } from 'node:crypto'

/** Maximum length of a tool or argument name: the limit of the Anthropic and OpenAI APIs. */
export const MAX_NAME = 64
export const HASH_LENGTH = 6

/** Returns a short SHA-256 in lower-case base32, for unique names. */
export function hashOf(text: string): string {
  const bytes = createHash('sha256').update(text).digest()
  return Array.from(bytes.subarray(0, HASH_LENGTH), byte => 'abcdefghijklmnopqrstuvwxyz234567'[byte % 32]).join('')
}

/** Bytes of a description. */
const MAX_DESCRIPTION = 8_192

/** Characters that join and style emoji. */
const OF_EMOJI =
  /(?<=\p{Extended_Pictographic})\ufe0f|(?<=\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]?)\u200d(?=\p{Extended_Pictographic})/u
const UNSEEN = /[\p{Default_Ignorable_Code_Point}\p{Cf}\u2028\u2029]/u
const INVISIBLE = new RegExp(`(?!${OF_EMOJI.source})(?:${UNSEEN.source}|(?![\\n\\r\\t])\\p{Cc})`, 'gu')
const INVISIBLE_IN_LINE = new RegExp(`(?!${OF_EMOJI.source})(?:${UNSEEN.source}|\\p{Cc})`, 'gu')

const escapeCharacter = (character: string) => `\\u{${character.codePointAt(0)?.toString(16)}}`
const truncate = (text: string) => (text.length <= MAX_DESCRIPTION ? text : `${text.slice(0, MAX_DESCRIPTION)}… (cut)`)

/** Escapes invisible characters, except line breaks and tabs, and cuts the text at 8 KiB. */
export const visibleText = (text: string): string => truncate(text.replaceAll(INVISIBLE, escapeCharacter))

/** Escapes invisible characters, line breaks and tabs. */
export const visibleLine = (text: string): string => truncate(text.replaceAll(INVISIBLE_IN_LINE, escapeCharacter))

/** Refuses a name with invisible characters. It cannot be escaped, because the server would not recognise it. */
export function checkVisible(name: string, what: string): string {
  const shown = visibleLine(name)
  if (shown !== name) throw new Error(`${what} "${shown}" has invisible characters or is too long`)
  return name
}

/** Escapes invisible characters in all strings of a value. Throws if the name of a property has such characters. */
export function visibleTexts<Value>(value: Value): Value {
  const change = (part: unknown): unknown => {
    if (typeof part === 'string') return visibleText(part)
    if (typeof part !== 'object' || part === null) return part
    if (Array.isArray(part)) return part.map(change)
    return Object.fromEntries(
      Object.entries(part).map(([key, one]) => [checkVisible(key, 'the property'), change(one)]),
    )
  }
  return change(value) as Value
}

/** Removes repeated characters at the end, in linear time. `/0+$/` takes quadratic time for long runs. */
export function trimEndOf(text: string, character: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === character) end--
  return text.slice(0, end)
}

/** Formats counts by plural noun, such as `1 tool, 2 prompts`. */
export const countsText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([nouns, count]) => `${count} ${count === 1 ? nouns.slice(0, -1) : nouns}`)
    .join(', ')
