// Words of others as a line of an audit has them.

const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu

/** Cut, and without what steers a terminal or ends a line. */
export const plainText = (text: string, most: number): string =>
  (text.length > most ? `${text.slice(0, most)}…` : text).replace(UNPRINTABLE, '?')
