// Normalises URIs (RFC 3986 section 6.2.2) and percent-encodes invalid characters, as URL parsers of clients do.

/** A lone surrogate becomes U+FFFD. */
const encode = (text: string) => Buffer.from(text).toString('hex').toUpperCase().replace(/../g, '%$&')

const DISALLOWED = /[^\w\-.~:/?#[\]@!$&'()*+,;=%]/gu
const TRIPLET = /%[0-9a-f]{2}/gi
const UNRESERVED = /[\w\-.~]/

const normalTriplet = (triplet: string) => {
  const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16))
  return UNRESERVED.test(character) ? character : triplet.toUpperCase()
}

const normalText = (text: string) => text.replace(DISALLOWED, encode).replace(TRIPLET, normalTriplet)

/** RFC 3986 section 5.2.4. */
function withoutDots(path: string): string {
  if (!path.startsWith('/') || !/\/\.{1,2}(?:\/|$)/.test(path)) return path
  const kept: string[] = []
  const segments = path.slice(1).split('/')
  for (const [index, segment] of segments.entries()) {
    const isDots = segment === '.' || segment === '..'
    if (segment === '..') kept.pop()
    if (!isDots) kept.push(segment)
    else if (index === segments.length - 1) kept.push('')
  }
  return `/${kept.join('/')}`
}

const PARTS = /^([a-z][a-z0-9+.-]*:)(\/\/(?:[^/?#]*@)?)?([^/?#]*)([^?#]*)(.*)$/is

export function normalUri(uri: string): string {
  const parts = PARTS.exec(uri)
  if (!parts) return normalText(uri)
  const [, scheme = '', userinfo = '', host = '', path = '', rest = ''] = parts
  const authority = userinfo === '' ? normalText(host) : normalText(userinfo) + normalText(host.toLowerCase())
  return scheme.toLowerCase() + authority + withoutDots(normalText(path)) + normalText(rest)
}

export function normalTemplate(template: string): string {
  const literals = template.replace(/\{[^{}]*\}|[^{]+/g, part => (part.startsWith('{') ? part : normalText(part)))
  return literals.replace(/^[a-z][a-z0-9+.-]*:(?:\/\/[^/?#{]*)?/i, start => start.toLowerCase())
}

/** RFC 3986 section 2. */
export const hasUriCharacters = (text: string): boolean =>
  text.search(DISALLOWED) === -1 && !/%(?![0-9a-f]{2})/i.test(text)
