// The browser of a user: its cookie, its session, form tokens, pending sign-ins, and pages sent to it.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type Provider from 'oidc-provider'
import type { Session } from 'oidc-provider'
import type { HostContext, Logger } from '../../../core/index.ts'
import { SIGN_IN_TTL } from '../endpoints.ts'
import type { BridgeFigures } from '../make.ts'
import type { Page, Pages } from '../pages/index.ts'
import type { Accounts } from '../people/accounts.ts'
import type { Consents } from '../people/consents.ts'
import type { Decide } from '../people/decide.ts'
import type { Login, Logins } from '../people/logins.ts'
import { digest, pendingAt, type Records } from '../records.ts'
import { longCookie, nameIssuer } from '../server/oidc-provider.ts'
import type { Lifetimes } from '../server/provider.ts'
import type { Resources } from '../server/resources.ts'
import type { LoginUnderWay, Upstream } from '../upstream/upstream.ts'

/** The one text of a parameter; empty where it is none. */
export const asText = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Its texts, of one that may be there several times. */
export const asTexts = (value: unknown): string[] =>
  [value].flat().flatMap(one => (typeof one === 'string' && one !== '' ? [one] : []))

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

function contextOf(provider: Provider, ctx: HostContext) {
  nameIssuer(provider, ctx)
  return provider.createContext(ctx.req, ctx.res)
}

/** A new one where the browser has none. */
export const openSession = (provider: Provider, ctx: HostContext): Promise<Session> =>
  provider.Session.get(contextOf(provider, ctx))

/** The login of a browser; undefined where nobody is signed in. */
export async function currentLogin(ctx: HostContext, { provider, accounts }: Bridge) {
  const session = await openSession(provider, ctx)
  if (session.accountId === undefined) return undefined
  const login = await accounts.loginOf(session.uid, session.accountId)
  return login && { session, login }
}

/** Signs this browser in, outside of a client's request; with an id of its own, as after every login. */
export async function signedInAs(ctx: HostContext, { provider, accounts, lifetimes }: Bridge, login: Login) {
  const context = contextOf(provider, ctx)
  const session = await provider.Session.get(context)
  if (session.accountId !== login.person.subject) session.authorizations = undefined
  session.resetIdentifier()
  session.loginAccount({ accountId: login.person.subject })
  await session.save(Math.floor(lifetimes.session / 1_000))
  await accounts.signedIn(session.uid, login.id)
  const cookie = longCookie(provider.issuer)
  context.cookies.secure = cookie.secure
  const expires = new Date(Date.now() + lifetimes.session)
  context.cookies.set(provider.cookieName('session'), session.jti, { ...cookie, expires })
}

/** What a login at the provider is for: an interaction of a client's, by its uid, or the account page. */
export type Purpose = { readonly uid: string } | 'account'

interface Attempt {
  readonly purpose: Purpose
  readonly underWay: LoginUnderWay
  /** The one that began it. */
  readonly browser: string
  readonly used?: true
}

const TTL = SIGN_IN_TTL * 1_000
const STATE_BYTES = 32

const attemptAt = (state: string) => pendingAt('attempt', state)

export const newState = (): string => randomBytes(STATE_BYTES).toString('base64url')

/** Keeps an attempt, for this browser. */
export async function keepAttempt(
  ctx: HostContext,
  { records, issuer }: Bridge,
  { state, ...attempt }: Omit<Attempt, 'browser' | 'used'> & { readonly state: string },
): Promise<void> {
  const kept: Attempt = { ...attempt, browser: knowBrowser(ctx, issuer) }
  await records.write(attemptAt(state), kept, TTL)
}

export type Taken =
  | (Pick<Attempt, 'purpose' | 'underWay'> & { readonly kind: 'taken' })
  /** This browser began it, and it was used: what it is for can be begun again. */
  | { readonly kind: 'again'; readonly purpose: Purpose }
  /** It is of another browser, too old, or of nobody. */
  | { readonly kind: 'foreign' }

/** Takes the attempt of a state, where it is of this browser; one of another is left to that. */
export async function takeAttempt(ctx: HostContext, { records, issuer }: Bridge, state: string): Promise<Taken> {
  const kept = await records.read<Attempt>(attemptAt(state))
  if (!kept || !isBrowser(ctx, issuer, kept.browser)) return { kind: 'foreign' }
  const { purpose, underWay } = kept
  const taken = await records.update<Attempt>(attemptAt(state), TTL, attempt =>
    attempt.used ? undefined : { ...attempt, used: true },
  )
  return taken ? { kind: 'taken', purpose, underWay } : { kind: 'again', purpose }
}

interface Done {
  readonly login: string
  /** The one that came back. */
  readonly browser: string
}

const doneAt = (uid: string) => pendingAt('signed in for', uid)

/**
 * The login that an interaction waited for, for the browser alone that came back with it: whoever began the interaction may
 * have planted its cookies in the browser of somebody else.
 */
export async function keepDone(ctx: HostContext, { records, issuer }: Bridge, uid: string, login: string) {
  const done: Done = { login, browser: knowBrowser(ctx, issuer) }
  await records.write(doneAt(uid), done, TTL)
}

/** The id of the login that this browser came back with; undefined where it did not. */
export async function readDone(ctx: HostContext, { records, issuer }: Bridge, uid: string): Promise<Done | undefined> {
  const done = await records.read<Done>(doneAt(uid))
  return done && isBrowser(ctx, issuer, done.browser) ? done : undefined
}
