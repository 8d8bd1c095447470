// Matches redirect URIs literally against `clients.redirects`; ambiguous spellings match no pattern.
import { isLoopback } from '../../../core/auth.ts'

export interface RedirectPattern {
  readonly scheme: string
  /** Undefined if the pattern has no `//`. `*` (any) is allowed only for the scheme of an app. */
  readonly host: string | undefined
  /** `*` for any port; empty for none or the default port of the scheme. */
  readonly port: string
  /** Segments; `*` matches one segment, `**` at the end matches all that follow. */
  readonly path: readonly string[]
  /** Includes the `?`. `?*` matches any query; empty matches no query. */
  readonly query: string
}

/** Schemes that browsers and other programs handle themselves, so they cannot reach a client. */
const NO_APPS =
  /^(?:javascript|data|vbscript|file|blob|about|wss?|ftp|mailto|view-source|filesystem|jar|chrome|resource|intent):$/

export const isAppScheme = (scheme: string): boolean => !NO_APPS.test(scheme)

const PATTERN = /^([a-z][a-z0-9+.-]*):(?:\/\/([^/?#]*))?([^?#]*)(\?[^#]*)?$/i

const ANY_QUERY = '?*'

export function parseRedirectPattern(text: string): RedirectPattern {
  const [, name = '', authority, path = '', query = ''] = PATTERN.exec(text) ?? []
  const scheme = `${name.toLowerCase()}:`
  const bad = (why: string) => new Error(`"${text}" ${why}`)
  if (name === '')
    throw bad('is not a redirect URI, such as https://claude.ai/api/mcp/auth_callback or http://127.0.0.1:*/**')
  if (!isAppScheme(scheme)) throw bad(`has the scheme ${scheme}, which clients cannot use`)
  const isWeb = scheme === 'https:' || scheme === 'http:'
  const [, host = '', port = ''] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(authority ?? '') ?? []
  if (isWeb && (host === '' || host.includes('*'))) throw bad('needs a whole host: a * there would let others in')
  if (!isWeb && host.includes('*') && host !== '*') throw bad('needs a complete host name, or only *')
  if ((authority ?? '').includes('@')) throw bad('has a user before its host')
  if (scheme === 'http:' && !isLoopback(host))
    throw bad('is plain http on another machine: codes can be intercepted; use https')
  if (port !== '' && port !== '*' && !/^\d{1,5}$/.test(port)) throw bad('has a port that is neither a number nor *')
  const segments = path.split('/').slice(path.startsWith('/') ? 1 : 0)
  if (segments.some((segment, index) => segment === '**' && index < segments.length - 1))
    throw bad('has ** before its end; write it last')
  if (segments.some(segment => segment.includes('*') && segment !== '*' && segment !== '**'))
    throw bad('has a * within a part of its path; a part is * or plain text')
  if (query.includes('*') && query !== ANY_QUERY) throw bad('has a * within its query; a query is ?* or plain text')
  return { scheme, host: authority === undefined ? undefined : host.toLowerCase(), port, path: segments, query }
}

/** Matches an escaped slash, backslash or control character: servers that decode first see another path. */
const ESCAPED = /%(?:2f|5c|[01][\da-f]|7f)/i
/** Matches dot segments; some servers also recognize them before a `;`. */
const DOTS = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|;|%3b|$)/i
/** Response parameters that the bridge adds to the query. */
const ANSWERS = ['code', 'state', 'iss', 'error', 'response'] as const

/** Parses a redirect URI. Undefined for URLs that parsers interpret differently. */
function readRedirect(uri: string): URL | undefined {
  // Browsers treat a backslash as a slash, and remove tabs and line breaks.
  if (uri.length > 2_048 || /[\s\\\p{Cc}\p{Cf}]/u.test(uri) || !URL.canParse(uri)) return undefined
  const url = new URL(uri)
  if (url.username !== '' || url.password !== '' || url.hash !== '' || uri.includes('#')) return undefined
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:'
  // Only browsers read `https:/host` and `https:host` as hosts, and `..` can leave the path of the pattern.
  if (isWeb && !/^https?:\/\/[^/]/i.test(uri)) return undefined
  const [path = ''] = uri.slice(url.protocol.length).split('?')
  if (DOTS.test(path) || ESCAPED.test(path)) return undefined
  return ANSWERS.some(name => url.searchParams.has(name)) ? undefined : url
}

function fitsPath(path: readonly string[], pathname: string): boolean {
  const parts = pathname.split('/').slice(pathname.startsWith('/') ? 1 : 0)
  const isOpen = path.at(-1) === '**'
  const fixed = isOpen ? path.slice(0, -1) : path
  if (isOpen ? parts.length < fixed.length : parts.length !== fixed.length) return false
  return fixed.every((segment, index) => segment === '*' || segment === parts[index])
}

function fits({ scheme, host, port, path, query }: RedirectPattern, url: URL): boolean {
  if (url.protocol !== scheme || !isAppScheme(url.protocol)) return false
  if (query !== ANY_QUERY && url.search !== query) return false
  const isWeb = scheme === 'https:' || scheme === 'http:'
  if (host !== '*' && url.hostname.toLowerCase() !== (host ?? '')) return false
  if (port !== '*' && url.port !== normalPort(port, scheme)) return false
  // With `cursor://*`, the app owns its whole scheme.
  if (!isWeb && host === '*' && path.join('') === '') return true
  return fitsPath(path, url.pathname)
}

const normalPort = (port: string, scheme: string) =>
  (scheme === 'https:' && port === '443') || (scheme === 'http:' && port === '80') ? '' : port

export function mayRedirect(patterns: readonly RedirectPattern[], uri: unknown): uri is string {
  const url = typeof uri === 'string' ? readRedirect(uri) : undefined
  return url !== undefined && patterns.some(pattern => fits(pattern, url))
}

export function sameRedirect(one: string, other: string): boolean {
  if (one === other) return true
  if (!URL.canParse(one) || !URL.canParse(other)) return false
  const [a, b] = [new URL(one), new URL(other)]
  if (a.protocol !== 'http:' || !isLoopback(a.hostname)) return false
  a.port = b.port = ''
  return a.href === b.href
}
