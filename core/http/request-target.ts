// Parses request targets into canonical paths, which all lookups use.

import type { IncomingHttpHeaders } from 'node:http'
import { attempt } from './describe-thrown.ts'

/** Matches the characters of a segment (RFC 3986 section 3.3). */
const SEGMENT = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})+$/
const CANONICAL = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9\-._~!$&'()*+,;=:@]+)+$/
/** Matches characters that would change the path if decoded again, or break a log line. */
const UNSAFE = /[/\\\p{Cc}\p{Zl}\p{Zp}]|%[0-9A-Fa-f]{2}/u
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i

export function parseHost(header: string): { name: string; full: string } | undefined {
  const match = HOST.exec(header)
  return match?.[1] === undefined ? undefined : { name: match[1].toLowerCase(), full: header.toLowerCase() }
}

export const encodeSegment = (text: string): string =>
  encodeURIComponent(text).replace(/%(?:24|26|2B|2C|3B|3D|3A|40)/g, decodeURIComponent)

function canonicalSegment(text: string): string | undefined {
  if (!SEGMENT.test(text)) return undefined
  const decoded = attempt(() => decodeURIComponent(text))
  const isUsable = decoded !== undefined && decoded !== '.' && decoded !== '..' && !UNSAFE.test(decoded)
  return isUsable ? encodeSegment(decoded) : undefined
}

/**
 * Returns the canonical path. Undefined for empty and dot segments, encoded slashes and backslashes, bad and double
 * escapes, and control characters.
 */
export function canonicalPath(path: string): string | undefined {
  if (!path.startsWith('/')) return undefined
  if (path === '/' || CANONICAL.test(path)) return path
  const segments: string[] = []
  for (const part of path.slice(1, path.endsWith('/') ? -1 : undefined).split('/')) {
    const segment = canonicalSegment(part)
    if (segment === undefined) return undefined
    segments.push(segment)
  }
  return `/${segments.join('/')}`
}

/** Returns the parts of a request target (RFC 9112 section 3.2). */
export function readTarget(url: string) {
  if (url === '/' || CANONICAL.test(url)) return { path: url, search: '', authority: undefined }
  const [, authority, rest] = url.startsWith('/') ? [] : (ABSOLUTE.exec(url) ?? [])
  if (authority !== undefined && !parseHost(authority)) return undefined
  const target = rest ?? url
  const queryStart = target.indexOf('?')
  const rawPath = queryStart === -1 ? target : target.slice(0, queryStart)
  const path = rawPath === '' && authority !== undefined ? '/' : canonicalPath(rawPath)
  return path === undefined ? undefined : { path, search: queryStart === -1 ? '' : target.slice(queryStart), authority }
}

const REQUEST_ID = /^[\w.:/+=@-]{1,128}$/

/** Returns the valid X-Request-Id of a request: 1 to 128 letters, digits and `_ . : / + = @ -`. */
export function requestIdIn(headers: Readonly<IncomingHttpHeaders>): string | undefined {
  const id = headers['x-request-id']
  return typeof id === 'string' && REQUEST_ID.test(id) ? id : undefined
}

const BEFORE_QUERY = /^[^?#]*/
const SCHEME = /^[A-Za-z][\w+.-]*:\/\//

/**
 * Removes query, fragment and credentials from a URL. Any `@` hides the URL, because credentials in an invalid URL have
 * no certain end.
 */
export function redactUrl(text: string): string {
  const [scheme = ''] = SCHEME.exec(text) ?? []
  if (text.lastIndexOf('@') > 0) return `${scheme}…@…`
  if (scheme === '') return text
  const [shown = ''] = BEFORE_QUERY.exec(text) ?? []
  return shown === text ? text : `${shown}…`
}
