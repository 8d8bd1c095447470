// Checks each request before authentication: Host, Origin, fetch metadata, header of the page and tokens in URLs.
import type { IncomingMessage } from 'node:http'
import { isLoopback, parseHost } from '../../core/auth.ts'
import { SECRET_HEADER } from './api.ts'

export interface Refusal {
  readonly status: number
  readonly error: string
  readonly message: string
}

export const refusal = (status: number, error: string, message: string): Refusal => ({ status, error, message })

/** Names of parameters that would put a token into logs and the browser history. */
const TOKEN_PARAMETERS = ['t', 'token', 'access_token']

/**
 * For every response. The page uses no inline scripts or styles, and no other origins. `frame-src` allows frames for apps, and blocks
 * their navigation to other origins.
 */
export const SECURITY_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
} as const

interface GuardSettings {
  /** The address that the console listens on. */
  readonly host: string
  readonly isTls: boolean
  /** Host names of the console on other interfaces, and of proxies, which can terminate TLS. */
  readonly allowedHosts: readonly string[]
}

/** Undefined: the request can be authenticated. */
export function createGuard({ host, isTls, allowedHosts }: GuardSettings) {
  const otherHosts = new Set(allowedHosts.map(name => name.toLowerCase()))
  const names = new Set([host.includes(':') ? `[${host}]` : host, ...otherHosts])
  const isLocal = isLoopback(host)
  const isAllowed = (name: string) => names.has(name) || (isLocal && (isLoopback(name) || name === '[::1]'))

  return function check({ method = '', url = '', headers }: IncomingMessage): Refusal | undefined {
    const requestedHost = headers.host === undefined ? undefined : parseHost(headers.host)
    // Prevents DNS rebinding.
    if (!requestedHost || !isAllowed(requestedHost.name)) {
      return refusal(403, 'forbidden', 'This host name is not allowed. Add it to plugins.console.allowedHosts.')
    }
    const { origin, 'sec-fetch-site': site } = headers
    const schemes = isTls ? ['https'] : otherHosts.has(requestedHost.name) ? ['http', 'https'] : ['http']
    const isOwn = schemes.some(scheme => origin === `${scheme}://${headers.host?.toLowerCase()}`)
    if (origin !== undefined && !isOwn) return refusal(403, 'forbidden', 'Requests of other origins are refused.')
    // A navigation from another site can only open the page itself: a session cookie is not sent with it.
    if (site !== undefined && site !== 'same-origin' && site !== 'none' && url.startsWith('/api/')) {
      return refusal(403, 'forbidden', 'Requests of other sites are refused.')
    }
    const query = new URLSearchParams(url.split('?')[1] ?? '')
    if (TOKEN_PARAMETERS.some(parameter => query.has(parameter))) {
      return refusal(400, 'bad_request', 'A token must not be part of the query. Use the fragment: /#t=<token>.')
    }
    if (method === 'GET' || method === 'HEAD') return undefined
    if (method !== 'POST') return refusal(405, 'bad_request', 'Only GET, HEAD and POST are served.')
    if (!headers[SECRET_HEADER]) return refusal(403, 'forbidden', `The header ${SECRET_HEADER} is missing.`)
    if (!/^application\/json(?:;|$)/i.test(headers['content-type'] ?? '')) {
      return refusal(415, 'bad_request', 'The Content-Type must be application/json.')
    }
    return undefined
  }
}
