// Sanitizes untrusted text for records, logs and spans.

const PRINTABLE_ASCII = /^[ -~]*$/
const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu

/** Limits the length and replaces control characters and line breaks with `?`. */
export function plainText(text: string, most: number): string {
  const start = text.slice(0, most)
  return PRINTABLE_ASCII.test(start) ? start : start.replace(UNPRINTABLE, '?')
}
