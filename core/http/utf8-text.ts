// Reads text files of users as UTF-8, and detects the UTF-16 and byte order marks of Windows programs.

/** In UTF-16 the first character has a zero byte or is a byte order mark. */
const UTF16 = /^(?:\uFFFD\uFFFD|.?\0)/s

export const UTF16_ERROR = 'the file is UTF-16; save it as UTF-8'

export const isUtf16 = (text: string): boolean => UTF16.test(text)

/** Removes a byte order mark. Throws for UTF-16. */
export function utf8Text(text: string): string {
  if (isUtf16(text)) throw new Error(UTF16_ERROR)
  return text.replace(/^\uFEFF/, '')
}
