// Text files of users, read as UTF-8. Windows programs also write UTF-16, and UTF-8 with a byte order mark.

/** In UTF-16, a byte of the first character is 0, or a byte order mark precedes it. */
const UTF16 = /^(?:\uFFFD\uFFFD|.?\0)/s

export const UTF16_FAULT = 'the file is UTF-16; save it as UTF-8'

/** Whether the file of a text that was read as UTF-8 is UTF-16. */
export const isUtf16 = (text: string): boolean => UTF16.test(text)

/** Removes a byte order mark. Throws if the text was read from UTF-16. */
export function utf8Text(text: string): string {
  if (isUtf16(text)) throw new Error(UTF16_FAULT)
  return text.replace(/^\uFEFF/, '')
}
