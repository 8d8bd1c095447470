// Text of a server, made fit to be shown: nothing in it can move a cursor, start a line, reverse the
// reading order or stay unseen.

/**
 * Controls, line and paragraph separators, what changes the direction of text, and all that is not seen: zero-width characters,
 * tags, variation selectors, fillers, an empty braille cell. Halves of a character, too.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu

/** As JSON writes it: two of them for a character beyond the first 65,536. */
const escapeOne = (character: string): string =>
  character
    .split('')
    .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')

/** The text with such characters written as `\uXXXX`, cut to `maxLength` characters (default: whole). */
export function printable(text: string, maxLength = Number.POSITIVE_INFINITY): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
  return cut.replace(UNPRINTABLE, escapeOne)
}

/** The same for text of several lines: tabs stay, and each line ends with a line feed. */
export const printableLines = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .replace(UNPRINTABLE, found => (found === '\n' || found === '\t' ? found : escapeOne(found)))

/** A URL for a message: without its user, query and fragment, which may carry what nobody should read. */
export function printableUrl(url: string | URL): string {
  const [text = ''] = String(url).split(/[?#]/, 1)
  return printable(text.replace(/^([^/]*\/\/)[^/]*@/, '$1'), 300)
}
