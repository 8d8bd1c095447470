// Serves pages of MCP Apps: each page once, to a sandboxed frame with an opaque origin, with a policy from the page's `csp`.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { InternalHost } from '../../core/internal.ts'
import { type AppPage, PATHS } from './api.ts'
import type { OperatorSession } from './login.ts'
import { ApiFailure } from './server.ts'

/** Maximum number of pages that wait for the request of their frame. */
const MAX_PAGES = 4
/** Milliseconds in which the frame must request its page. */
const TTL = 30_000
const MAX_ORIGINS = 32
/** Characters. */
const MAX_ORIGIN_LENGTH = 255
/** Public host names only: a page must not reach the operator's machine or network. */
const ORIGIN =
  /^(?:https|wss):\/\/(?:\*\.(?=[^.]+\.))?(?:[a-z\d](?:[a-z\d-]*[a-z\d])?\.)+(?!local(?:host)?(?::|$)|internal(?::|$))[a-z][a-z\d-]*(?::\d{1,5})?$/i

/** Reads the origins in `csp`. Invalid ones are refused: characters such as `;` would add directives to the policy. */
function readOrigins(csp: Readonly<Record<string, unknown>>) {
  const allowed = new Set<string>()
  const refused = new Set<string>()
  const originsIn = (key: string): string => {
    const value: unknown = csp[key]
    const list = Array.isArray(value) ? value.slice(0, MAX_ORIGINS).filter(one => typeof one === 'string') : []
    const isValid = (origin: string) => origin.length <= MAX_ORIGIN_LENGTH && ORIGIN.test(origin)
    for (const origin of list) (isValid(origin) ? allowed : refused).add(origin.slice(0, MAX_ORIGIN_LENGTH))
    return list.filter(isValid).join(' ')
  }
  return {
    resources: originsIn('resourceDomains'),
    connect: originsIn('connectDomains'),
    frames: originsIn('frameDomains'),
    base: originsIn('baseUriDomains'),
    allowed: [...allowed],
    refused: [...refused],
  }
}

type Origins = ReturnType<typeof readOrigins>

/** Never contains `'self'`, the origin of the console. */
const createPolicy = ({ resources, connect, frames, base }: Origins): string =>
  [
    'sandbox allow-scripts',
    "default-src 'none'",
    `script-src 'unsafe-inline' ${resources}`,
    `style-src 'unsafe-inline' ${resources}`,
    `img-src data: ${resources}`,
    `font-src data: ${resources}`,
    `media-src data: ${resources}`,
    `connect-src ${connect || "'none'"}`,
    `frame-src ${frames || "'none'"}`,
    `base-uri ${base || "'none'"}`,
    "form-action 'none'",
    "frame-ancestors 'self'",
  ].join('; ')

/** The value of `Connection-Allowlist` (Chromium 152 and later), which also blocks WebRTC and connections of blocked navigations. */
const createAllowlist = ({ allowed }: Origins): string =>
  // Chromium compares the URL of a WebSocket as https.
  `(${allowed.map(origin => `"${origin.replace(/^wss/i, 'https')}"`).join(' ')})`

interface StoredPage {
  readonly html: Buffer
  readonly policy: string
  readonly allowlist: string
}

export function createAppPages({ clock }: Pick<InternalHost, 'clock'>) {
  const pages = new Map<string, StoredPage>()
  return {
    /** Keeps the page for one request, within its time limit and the session. */
    keep(html: Buffer, csp: Readonly<Record<string, unknown>>, session: OperatorSession): AppPage {
      const path = `${PATHS.app}/${randomBytes(32).toString('base64url')}`
      const origins = readOrigins(csp)
      const remove = () => void pages.delete(path)
      const [oldest] = pages.keys()
      if (pages.size >= MAX_PAGES && oldest !== undefined) pages.delete(oldest)
      pages.set(path, { html, policy: createPolicy(origins), allowlist: createAllowlist(origins) })
      const forget = session.onEnd(remove)
      clock.setTimeout(() => [remove(), forget()], TTL).unref()
      return { path, allowed: origins.allowed, refused: origins.refused }
    },
    /** The path is the secret, because a frame cannot send the secret of the login in a header. */
    serve(path: string, { headers, method }: IncomingMessage, res: ServerResponse): void {
      const destination = headers['sec-fetch-dest'] ?? 'iframe'
      const page = method === 'GET' && destination === 'iframe' ? pages.get(path) : undefined
      if (!page) throw new ApiFailure(404, 'not_found', 'There is no such page.')
      pages.delete(path)
      res.removeHeader('X-Frame-Options')
      res.writeHead(200, {
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Length': page.html.length,
        'Content-Security-Policy': page.policy,
        'Connection-Allowlist': page.allowlist,
        'Cache-Control': 'no-store',
        'X-DNS-Prefetch-Control': 'off',
      })
      res.end(page.html)
    },
  }
}
