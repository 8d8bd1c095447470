// Everything that the bridge's pages and endpoints work with, made once the host has an address.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type Provider from 'oidc-provider'
import type { Logger } from '../../../core/index.ts'
import type { BridgeFigures } from '../figures.ts'
import type { Page, Pages } from '../pages/index.ts'
import type { Accounts } from '../people/accounts.ts'
import type { Consents } from '../people/consents.ts'
import type { Decide } from '../people/decide.ts'
import type { Logins } from '../people/logins.ts'
import type { Records } from '../records.ts'
import type { Lifetimes } from '../server/provider.ts'
import type { Resources } from '../server/resources.ts'
import type { Upstream } from '../upstream/upstream.ts'

export interface Bridge {
  readonly issuer: string
  readonly provider: Provider
  readonly lifetimes: Lifetimes
  readonly records: Records
  readonly logins: Logins
  readonly consents: Consents
  readonly accounts: Accounts
  readonly resources: Resources
  readonly decide: Decide
  readonly upstream: Upstream
  readonly pages: Pages
  readonly log: Logger
  /** Ids of the clients that the config names. */
  readonly known: ReadonlySet<string>
  /** What stands in forms: the first makes, all verify. */
  readonly formKeys: readonly Buffer[]
  readonly figures: BridgeFigures
}

/** Where a path of the bridge is for browsers. */
export const pathOf = ({ issuer }: Pick<Bridge, 'issuer'>, path: string): string => `${new URL(issuer).pathname}${path}`

/** What an answer is written to: a context of this host's, or of oidc-provider's. */
interface Answering {
  status: number
  type: string
  body: unknown
  set(name: string, value: string): void
}

/** Sends a page: no other page may frame it, nobody keeps it, and it loads nothing. */
export function sendPage(ctx: Answering, page: Page, status = 200): void {
  ctx.status = status
  ctx.type = 'html'
  ctx.set('Content-Security-Policy', page.policy)
  ctx.set('X-Frame-Options', 'DENY')
  ctx.set('X-Content-Type-Options', 'nosniff')
  ctx.set('Referrer-Policy', 'same-origin')
  ctx.set('Cache-Control', 'no-store')
  ctx.body = page.html
}

const formToken = (key: Buffer, form: string) => createHmac('sha256', key).update(form).digest('base64url')

/** What a form carries, so that only the page that it stands on can have sent it. `form`: what it is for, and whose. */
export const tokenFor = ({ formKeys: [first] }: Bridge, form: string): string => formToken(first as Buffer, form)

export function isTokenFor({ formKeys }: Bridge, form: string, given: unknown): boolean {
  if (typeof given !== 'string') return false
  const bytes = Buffer.from(given)
  return formKeys.some(key => {
    const expected = Buffer.from(formToken(key, form))
    return expected.length === bytes.length && timingSafeEqual(expected, bytes)
  })
}
