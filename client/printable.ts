// Text of a server, made fit to be shown: nothing in it can move a cursor, start a line or reverse the reading order.

/** C0 and C1 controls, line and paragraph separators, and the characters that change the direction of text. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu

const escapeOne = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** The text with such characters written as `\uXXXX`, cut to `maxLength` characters (default: whole). */
export function printable(text: string, maxLength = Number.POSITIVE_INFINITY): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
  return cut.replace(UNPRINTABLE, escapeOne)
}

/** The same for text of several lines: line ends and tabs stay. */
export const printableLines = (text: string): string =>
  text.replace(UNPRINTABLE, found => (found === '\n' || found === '\t' ? found : escapeOne(found)))

/** A URL for a message: without its user, query and fragment, which may carry what nobody should read. */
export function printableUrl(url: string | URL): string {
  const [text = ''] = String(url).split(/[?#]/, 1)
  return printable(text.replace(/^([^/]*\/\/)[^/]*@/, '$1'), 300)
}
