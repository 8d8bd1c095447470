// Words of others as records, logs and spans have them.

const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu

/** At most so many characters of it, and `?` in the place of what steers a terminal or ends a line. */
export const plainText = (text: string, most: number): string => text.slice(0, most).replace(UNPRINTABLE, '?')
