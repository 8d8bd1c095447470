// What tells one browser from another: a random cookie of its own, the only one of ours, which no page of another host of the
// domain can set (`__Host-`). What a browser began goes on in that browser alone.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { HostContext } from '../../../core/index.ts'
import { digest } from '../records.ts'

const SECRET_BYTES = 32
const VALUE = /^[\w-]{43}$/
/** Seconds: longer than any login, so that signing out finds all of them. */
const MAX_AGE = 400 * 24 * 3_600

interface WithCookies {
  readonly cookies: { get(name: string, options: { signed: boolean }): string | undefined }
}

const nameFor = (issuer: string) => (issuer.startsWith('https:') ? '__Host-mcp_browser' : 'mcp_browser')

/** The digest of what a browser has; undefined where it has nothing. */
export function browserOf({ cookies }: WithCookies, issuer: string): string | undefined {
  const value = cookies.get(nameFor(issuer), { signed: false })
  return value !== undefined && VALUE.test(value) ? digest(value) : undefined
}

/** The same; a browser that has nothing is given it. */
export function knowBrowser(ctx: HostContext, issuer: string): string {
  const known = browserOf(ctx, issuer)
  if (known !== undefined) return known
  const value = randomBytes(SECRET_BYTES).toString('base64url')
  const parts = [`${nameFor(issuer)}=${value}`, 'Path=/', `Max-Age=${MAX_AGE}`, 'HttpOnly', 'SameSite=Lax']
  // Written by hand: behind a proxy that ends TLS, Koa would refuse to set a secure cookie.
  ctx.append('Set-Cookie', [...parts, ...(issuer.startsWith('https:') ? ['Secure'] : [])].join('; '))
  return digest(value)
}

/** Whether a request comes from the browser of this digest; of none where there is no digest. */
export function isBrowser(ctx: WithCookies, issuer: string, expected: unknown): boolean {
  const known = browserOf(ctx, issuer)
  if (known === undefined || typeof expected !== 'string' || known.length !== expected.length) return false
  return timingSafeEqual(Buffer.from(known), Buffer.from(expected))
}
