// A browser: its cookie and request parameters.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { type HostContext, isObject } from '../../../core/plugin.ts'
import { digest } from '../../families/credentials/index.ts'

export const fieldsOf = ({ request }: HostContext): Readonly<Record<string, unknown>> =>
  isObject(request.body) ? request.body : {}

export const asTexts = (value: unknown): string[] =>
  [value].flat().flatMap(one => (typeof one === 'string' && one !== '' ? [one] : []))

const SECRET_BYTES = 32
const VALUE = /^[\w-]{43}$/
/** Seconds. Longer than any login, so that sign-out finds all logins. */
const MAX_AGE = 400 * 24 * 3_600

const nameFor = (issuer: string) => (issuer.startsWith('https:') ? '__Host-mcp_browser' : 'mcp_browser')

export function browserOf({ cookies }: Pick<HostContext, 'cookies'>, issuer: string): string | undefined {
  const value = cookies.get(nameFor(issuer), { signed: false })
  return value !== undefined && VALUE.test(value) ? digest(value) : undefined
}

export function knowBrowser(ctx: HostContext, issuer: string): string {
  const known = browserOf(ctx, issuer)
  if (known !== undefined) return known
  const value = randomBytes(SECRET_BYTES).toString('base64url')
  const parts = [`${nameFor(issuer)}=${value}`, 'Path=/', `Max-Age=${MAX_AGE}`, 'HttpOnly', 'SameSite=Lax']
  // Set without Koa, which refuses a secure cookie behind a proxy that terminates TLS.
  ctx.append('Set-Cookie', [...parts, ...(issuer.startsWith('https:') ? ['Secure'] : [])].join('; '))
  return digest(value)
}

export function isBrowser(ctx: Pick<HostContext, 'cookies'>, issuer: string, expected: unknown): boolean {
  const known = browserOf(ctx, issuer)
  if (known === undefined || typeof expected !== 'string' || known.length !== expected.length) return false
  return timingSafeEqual(Buffer.from(known), Buffer.from(expected))
}

export const pathOf = ({ issuer }: { readonly issuer: string }, path: string): string =>
  `${new URL(issuer).pathname}${path}`
