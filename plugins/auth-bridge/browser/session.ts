// Browser sessions at oidc-provider, and pending sign-ins.
import { randomBytes } from 'node:crypto'
import type Provider from 'oidc-provider'
import type { Session } from 'oidc-provider'
import type { HostContext } from '../../../core/plugin.ts'
import type { Bridge } from '../make.ts'
import type { Login } from '../people/logins.ts'
import { pendingAt } from '../records.ts'
import { longCookie, nameIssuer, SIGN_IN_TTL } from '../server/oidc-provider.ts'
import type { LoginUnderWay } from '../upstream/upstream.ts'
import { isBrowser, knowBrowser } from './browser.ts'

function contextOf(provider: Provider, ctx: HostContext) {
  nameIssuer(provider, ctx)
  return provider.createContext(ctx.req, ctx.res)
}

export const openSession = (provider: Provider, ctx: HostContext): Promise<Session> =>
  provider.Session.get(contextOf(provider, ctx))

export async function currentLogin(ctx: HostContext, { provider, accounts }: Bridge) {
  const session = await openSession(provider, ctx)
  if (session.accountId === undefined) return undefined
  const login = await accounts.loginOf(session.uid, session.accountId)
  return login && { session, login }
}

/** Signs in outside of a client's request, with a new session id. */
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

export type Purpose = { readonly uid: string } | 'account'

interface Attempt {
  readonly purpose: Purpose
  readonly underWay: LoginUnderWay
  readonly browser: string
  readonly used?: true
}

const TTL = SIGN_IN_TTL * 1_000
const STATE_BYTES = 32

const attemptAt = (state: string) => pendingAt('attempt', state)

export const newState = (): string => randomBytes(STATE_BYTES).toString('base64url')

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
  | { readonly kind: 'again'; readonly purpose: Purpose }
  | { readonly kind: 'foreign' }

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
  readonly browser: string
}

const doneAt = (uid: string) => pendingAt('signed in for', uid)

/** Binds the login to this browser: an attacker can plant the cookies of an interaction. */
export async function keepDone(ctx: HostContext, { records, issuer }: Bridge, uid: string, login: string) {
  const done: Done = { login, browser: knowBrowser(ctx, issuer) }
  await records.write(doneAt(uid), done, TTL)
}

/** Undefined in another browser. */
export async function readDone(ctx: HostContext, { records, issuer }: Bridge, uid: string): Promise<Done | undefined> {
  const done = await records.read<Done>(doneAt(uid))
  return done && isBrowser(ctx, issuer, done.browser) ? done : undefined
}
