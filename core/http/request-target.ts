// What a request's first line names: one canonical path, made once for each request, by which everything is looked up.
// Before the match of the pipeline (core/kernel/pipeline.ts); what is no path that anything could have is told apart here.

import type { IncomingHttpHeaders } from 'node:http'

/** The parts of a request target (RFC 9112 section 3.2) that name something here. */
export interface RequestTarget {
  /** Canonical: each place has one spelling, without a slash at its end. */
  readonly path: string
  /** With its question mark, as it came; empty where there is none. */
  readonly search: string
  /** The host of an absolute target, which then names it beside the Host header. */
  readonly authority: string | undefined
}

/** What a path's segment may hold as it stands (RFC 3986 section 3.3). */
const SEGMENT = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})+$/
/** A path that is canonical as it stands, which nearly all are: no escapes, no dot segments, no slash at its end. */
const CANONICAL = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9\-._~!$&'()*+,;=:@]+)+$/
/** Decoded, these would name another path, for whoever decodes once more too, or begin lines of their own in a log. */
const ODD = /[/\\\p{Cc}\p{Zl}\p{Zp}]|%[0-9A-Fa-f]{2}/u
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i

/** Splits a Host header into its name and port; undefined for what is none. */
export function parseHost(header: string): { name: string; full: string } | undefined {
  const match = HOST.exec(header)
  return match?.[1] === undefined ? undefined : { name: match[1].toLowerCase(), full: header.toLowerCase() }
}

/** A segment as it is spelled in a canonical path: what need not be escaped is not. */
export const encodeSegment = (text: string): string =>
  encodeURIComponent(text).replace(/%(?:24|26|2B|2C|3B|3D|3A|40)/g, decodeURIComponent)

/** The one spelling of a segment; undefined for what is odd: a bad escape, a dot segment, an encoded slash. */
function canonicalSegment(text: string): string | undefined {
  if (!SEGMENT.test(text)) return undefined
  try {
    const decoded = decodeURIComponent(text)
    return decoded === '.' || decoded === '..' || ODD.test(decoded) ? undefined : encodeSegment(decoded)
  } catch {
    return undefined
  }
}

/**
 * The one spelling of a path: nothing escaped that need not be, escapes in upper case, without one slash at its end.
 * Undefined for any other oddness: empty and dot segments, encoded slashes and backslashes, bad and double escapes,
 * controls.
 */
export function canonicalPath(path: string): string | undefined {
  if (path === '/' || CANONICAL.test(path)) return path
  if (!path.startsWith('/')) return undefined
  const segments: string[] = []
  for (const part of path.slice(1, path.endsWith('/') ? -1 : undefined).split('/')) {
    const segment = canonicalSegment(part)
    if (segment === undefined) return undefined
    segments.push(segment)
  }
  return `/${segments.join('/')}`
}

/** Reads a request target. Undefined for what names no path: it is answered as a path where nothing is. */
export function readTarget(url: string): RequestTarget | undefined {
  const [, authority, rest] = url.startsWith('/') ? [] : (ABSOLUTE.exec(url) ?? [])
  if (authority !== undefined && !parseHost(authority)) return undefined
  const target = rest ?? url
  const mark = target.indexOf('?')
  const given = mark === -1 ? target : target.slice(0, mark)
  const path = given === '' && authority !== undefined ? '/' : canonicalPath(given)
  return path === undefined ? undefined : { path, search: mark === -1 ? '' : target.slice(mark), authority }
}

const REQUEST_ID = /^[\w.:/+=@-]{1,128}$/

/** The id that a request came with: 1 to 128 letters, digits and `_ . : / + = @ -`; undefined for anything else. */
export function requestIdIn(headers: Readonly<IncomingHttpHeaders>): string | undefined {
  const id = headers['x-request-id']
  return typeof id === 'string' && REQUEST_ID.test(id) ? id : undefined
}

const BEFORE_QUERY = /^[^?#]*/
const SCHEME = /^[A-Za-z][\w+.-]*:\/\//

/**
 * Without what may be secret in a URL: query, fragment, and everything behind the scheme where there may be a user or a
 * password. Where those end is certain only in a URL without mistakes, so an `@` anywhere hides all.
 */
export function shownUrl(text: string): string {
  const [scheme = ''] = SCHEME.exec(text) ?? []
  if (text.lastIndexOf('@') > 0) return `${scheme}…@…`
  if (scheme === '') return text
  const [shown = ''] = BEFORE_QUERY.exec(text) ?? []
  return shown === text ? text : `${shown}…`
}
