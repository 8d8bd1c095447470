// Texts that clients chose, to SQLite and back: the first versions of `node:sqlite` read a text up to its first NUL, and such a
// text goes as bytes therefore.

export const bound = (text: string): string | Uint8Array => (text.includes('\0') ? Buffer.from(text) : text)

export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return value instanceof Uint8Array ? Buffer.from(value).toString() : String(value)
}
