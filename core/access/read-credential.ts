// Reads the token that a request shows in its Authorization header: as a bearer token (RFC 6750) or by the scheme DPoP
// (RFC 9449 section 7.1). Verifies nothing.

import { hash } from 'node:crypto'
import type { Socket } from 'node:net'
import type { HostContext } from '../kernel/endpoint.ts'

/** Characters. Node's own limit for all headers of a request is 16 kB. */
const MAX_TOKEN_LENGTH = 12 * 1_024

const SCHEME = /^(?:bearer|(dpop))(?: +|$)/i
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/

/** A token as a request shows it. */
export interface PresentedToken {
  readonly token: string
  /** By the scheme DPoP (RFC 9449 section 7.1), not as a bearer token. */
  readonly isDPoP: boolean
  /** SHA-256 of the token, base64url; computed once. */
  readonly digest: () => string
}

interface Unread {
  readonly refused: string
  readonly isDPoP: boolean
  readonly malformed?: true
}

export type Presented = PresentedToken | Unread

/** What the last request of a connection showed; the next one mostly shows the same. */
const LAST = Symbol('the credential of the last request')

interface Connection extends Socket {
  [LAST]?: { readonly header: string; readonly shown: PresentedToken }
}

/** The token of a request, of either scheme; undefined where it shows none. */
export function readCredential(ctx: HostContext): Presented | undefined {
  if (ctx.querystring !== '' && 'access_token' in ctx.query) {
    return {
      refused: 'a token in the query is not accepted; it belongs into the Authorization header',
      isDPoP: false,
      malformed: true,
    }
  }
  const header = ctx.req.headers.authorization
  if (header === undefined) return undefined
  const connection: Connection = ctx.req.socket
  const last = connection[LAST]
  if (last?.header === header) return last.shown
  const shown = readHeader(header)
  if (shown && 'token' in shown) connection[LAST] = { header, shown }
  return shown
}

function presentToken(token: string, isDPoP: boolean): PresentedToken {
  let known: string | undefined
  const digest = () => {
    known ??= hash('sha256', token, 'base64url')
    return known
  }
  return { token, isDPoP, digest }
}

function readHeader(header: string): Presented | undefined {
  const scheme = SCHEME.exec(header)
  if (!scheme) {
    // A second header, which Node joined to one of another scheme: whose credential counts is not ours to guess.
    return /,\s*(?:bearer|dpop)(?:\s|$)/i.test(header) ? TWO_HEADERS : undefined
  }
  const token = header.slice(scheme[0].length)
  if (token.includes(',')) return TWO_HEADERS
  const isDPoP = scheme[1] !== undefined
  if (token.length > MAX_TOKEN_LENGTH) {
    return { refused: `the token is longer than ${MAX_TOKEN_LENGTH} characters`, isDPoP }
  }
  if (TOKEN.test(token)) return presentToken(token, isDPoP)
  return { refused: `the Authorization header holds no ${isDPoP ? 'DPoP' : 'bearer'} token`, isDPoP }
}

const TWO_HEADERS: Presented = { refused: 'more than one Authorization header', isDPoP: false, malformed: true }
