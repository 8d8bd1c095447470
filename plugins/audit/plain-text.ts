// Words of others as a line of an audit has them.
import { plainText as printableText } from '../../core/transport.ts'

/** Cut, which is shown, and without what steers a terminal or ends a line. */
export const plainText = (text: string, most: number): string =>
  printableText(text, most) + (text.length > most ? '…' : '')
