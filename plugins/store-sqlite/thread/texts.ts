// Texts of clients: early versions of `node:sqlite` end a text at its first NUL, so such a text is stored as bytes.

export const bound = (text: string): string | Uint8Array => (text.includes('\0') ? Buffer.from(text) : text)

export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return value instanceof Uint8Array ? Buffer.from(value).toString() : String(value)
}
