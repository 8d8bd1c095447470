// HTML from templates: whatever is put into one is escaped, and texts of others are made fit to be shown.

/** HTML that this folder wrote. Only `html` makes it. */
export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** What may stand in a template: a text, which is escaped, HTML, or a list of both; undefined is nothing. */
export type Part = string | Markup | readonly Part[] | undefined

const escapeHtml = (text: string) => text.replace(/[&<>"'`]/g, character => `&#${character.charCodeAt(0)};`)

function write(part: Part): string {
  if (part === undefined) return ''
  if (typeof part === 'string') return escapeHtml(part)
  return part instanceof Markup ? part.text : part.map(write).join('')
}

/** Attribute values stand in double quotes. */
export const html = (strings: TemplateStringsArray, ...parts: readonly Part[]): Markup =>
  new Markup(strings.map((string, index) => string + write(parts[index])).join(''))

/** Read of a text at all, in UTF-16 units. */
const MAX_READ = 8_000
/** The last is the empty sign of braille. */
const SPACES = /[\s\p{Zs}\p{Zl}\p{Zp}\u2800]+/gu
/**
 * What is not seen, or changes how its neighbours are: control and format characters (those that turn the direction among
 * them), private use, halves of pairs, fillers and variation selectors. Joiners go too, which some scripts are a little
 * harder to read without.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu
/** Four marks on one letter, and more, stand over other lines. */
const PILED = /(\p{M}{3})\p{M}+/gu

const clean = (text: string) =>
  text.slice(0, MAX_READ).replace(SPACES, ' ').replace(UNSEEN, '').replace(PILED, '$1').replace(/ +/g, ' ').trim()

/** A text of somebody else on one line, at most `most` characters. Empty where nothing of it can be seen. */
export function shown(text: string, most = 80): string {
  const characters = [...clean(text)]
  return characters.length <= most
    ? characters.join('')
    : `${characters
        .slice(0, most - 1)
        .join('')
        .trimEnd()}…`
}

/** A host name: cut at its front, for its end says whose it is. */
export function shownHost(host: string, most = 253): string {
  const characters = [...clean(host)]
  return characters.length <= most ? characters.join('') : `…${characters.slice(1 - most).join('')}`
}

/** In our quotation marks, which it cannot end. */
export const quoted = (text: string): string => `“${text.replace(/["“”„‟«»″＂]/g, "'")}”`

/** A link's address where it is one that is safe to click on, otherwise undefined: http, https, mailto, or a path of ours. */
export function safeHref(href: string): string | undefined {
  if (/^\/(?![/\\])[\x21-\x7e]*$/.test(href)) return href
  if (!URL.canParse(href)) return undefined
  const url = new URL(href)
  return ['https:', 'http:', 'mailto:'].includes(url.protocol) ? url.href : undefined
}
