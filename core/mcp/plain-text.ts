// Sanitizes untrusted text for records, logs and spans.

const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu

/** Limits the length and replaces control characters and line breaks by `?`. */
export const plainText = (text: string, most: number): string => text.slice(0, most).replace(UNPRINTABLE, '?')
