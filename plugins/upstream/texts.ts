// Sanitizes texts, icons and `_meta` of a server.

/** Bytes of a description. */
const MAX_DESCRIPTION = 8_192

/** Tag characters, bidirectional controls, zero-width characters and controls, except line breaks and tabs. */
const INVISIBLE = /[\u{e0000}-\u{e007f}\u202a-\u202e\u2066-\u2069\u200b-\u200f\u2060-\u2064\ufeff]|(?![\n\r\t])\p{Cc}/gu

const escapeCharacter = (character: string) => `\\u{${character.codePointAt(0)?.toString(16)}}`

/** Escapes invisible characters, and cuts the text at 8 KiB. */
export function visibleText(text: string): string {
  const shown = text.replaceAll(INVISIBLE, escapeCharacter)
  return shown.length <= MAX_DESCRIPTION ? shown : `${shown.slice(0, MAX_DESCRIPTION)}… (cut)`
}

/** Escapes invisible characters in all strings of a value. Returns the same value if there are none. */
export function visibleTexts<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value
  if (!new RegExp(INVISIBLE.source, 'u').test(JSON.stringify(value).replaceAll('\\n', ''))) return value
  return JSON.parse(
    JSON.stringify(value, (_, part: unknown) => (typeof part === 'string' ? visibleText(part) : part)),
  ) as Value
}

/** Returns the `_meta` fields to pass on: fields that belong to a connection are removed. */
export function passedMeta(meta: unknown, setting: 'pass' | 'drop'): Record<string, unknown> | undefined {
  if (setting === 'drop' || typeof meta !== 'object' || meta === null || Array.isArray(meta)) return undefined
  const entries = Object.entries(meta).filter(
    ([key]) => !key.startsWith('io.modelcontextprotocol/') && key !== 'progressToken',
  )
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/** Returns the icons that do not make clients load files from other origins. */
export function safeIcons(icons: unknown, origin: string | undefined): unknown[] | undefined {
  if (!Array.isArray(icons)) return undefined
  const safe = (icons as unknown[]).filter(icon => {
    const src = typeof icon === 'object' && icon !== null ? (icon as { src?: unknown }).src : undefined
    if (typeof src !== 'string') return false
    return src.startsWith('data:image/') || (src.startsWith('https://') && new URL(src).origin === origin)
  })
  return safe.length === 0 ? undefined : safe
}
