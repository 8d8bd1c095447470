// Sanitizes texts, icons and `_meta` of a server.

/** Bytes of a description. */
const MAX_DESCRIPTION = 8_192

/** Joins and styles emoji. */
const OF_EMOJI =
  /(?<=\p{Extended_Pictographic})\ufe0f|(?<=\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]?)\u200d(?=\p{Extended_Pictographic})/u
const UNSEEN = /[\p{Default_Ignorable_Code_Point}\p{Cf}\u2028\u2029]/u
const INVISIBLE = new RegExp(`(?!${OF_EMOJI.source})(?:${UNSEEN.source}|(?![\\n\\r\\t])\\p{Cc})`, 'gu')
const INVISIBLE_IN_LINE = new RegExp(`(?!${OF_EMOJI.source})(?:${UNSEEN.source}|\\p{Cc})`, 'gu')

const escapeCharacter = (character: string) => `\\u{${character.codePointAt(0)?.toString(16)}}`
const cut = (text: string) => (text.length <= MAX_DESCRIPTION ? text : `${text.slice(0, MAX_DESCRIPTION)}… (cut)`)

/** Escapes invisible characters, except line breaks and tabs, and cuts the text at 8 KiB. */
export const visibleText = (text: string): string => cut(text.replaceAll(INVISIBLE, escapeCharacter))

/** Escapes invisible characters, line breaks and tabs. */
export const visibleLine = (text: string): string => cut(text.replaceAll(INVISIBLE_IN_LINE, escapeCharacter))

/** A name cannot be escaped, because the server would not know it. */
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

/** Returns the `_meta` fields to pass on: fields that belong to a connection are removed. */
export function passedMeta(meta: unknown, setting: 'pass' | 'drop'): Record<string, unknown> | undefined {
  if (setting === 'drop' || typeof meta !== 'object' || meta === null || Array.isArray(meta)) return undefined
  const entries = Object.entries(meta).filter(
    ([key]) => !key.startsWith('io.modelcontextprotocol/') && key !== 'progressToken',
  )
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/** Returns the icons that do not make clients load files from other origins; none above `most` characters. */
export function safeIcons(icons: unknown, origin: string | undefined, most: number): unknown[] | undefined {
  if (!Array.isArray(icons)) return undefined
  const safe = (icons as unknown[]).filter(icon => {
    const src = typeof icon === 'object' && icon !== null ? (icon as { src?: unknown }).src : undefined
    if (typeof src !== 'string') return false
    return src.startsWith('data:image/') || (src.startsWith('https://') && new URL(src).origin === origin)
  })
  return safe.length === 0 || JSON.stringify(safe).length > most ? undefined : safe
}
