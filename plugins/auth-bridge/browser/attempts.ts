// Attempts to sign in at the provider: what must be known again when the browser comes back, under the state that the provider
// sends along, and for the browser alone that began. Each state works once.
import { randomBytes } from 'node:crypto'
import type { HostContext } from '../../../core/index.ts'
import { SIGN_IN_TTL } from '../places.ts'
import { digest, pendingAt } from '../records.ts'
import type { LoginUnderWay } from '../upstream/upstream.ts'
import { type Bridge, pathOf } from './bridge.ts'
import { isProven, isSame, type Proof } from './proof.ts'

/** What a login at the provider is for: an interaction of a client's, by its uid, or the account page. */
export type Purpose = { readonly uid: string } | 'account'

interface Attempt {
  readonly purpose: Purpose
  readonly underWay: LoginUnderWay
  /** Digest of what the browser was given. */
  readonly browser: string
}

const TTL = SIGN_IN_TTL * 1_000
const SECRET_BYTES = 32

const placeOf = (state: string) => pendingAt('attempt', state)

const prefixOf = ({ issuer }: Bridge) => (issuer.startsWith('https:') ? '__Secure-' : '')

/** Two tabs have two cookies. */
const cookieName = (bridge: Bridge, state: string) => `${prefixOf(bridge)}mcp_try_${digest(state).slice(0, 12)}`

interface Cookie {
  readonly name: string
  /** Under the bridge's own. */
  readonly path: string
  readonly value: string
  readonly seconds: number
}

/** Written by hand: behind a proxy that ends TLS, Koa would refuse to set a secure cookie. */
function setCookie(ctx: HostContext, bridge: Bridge, { name, path, value, seconds }: Cookie): void {
  const parts = [`${name}=${value}`, `Path=${pathOf(bridge, path)}`, `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Lax']
  ctx.append('Set-Cookie', [...parts, ...(bridge.issuer.startsWith('https:') ? ['Secure'] : [])].join('; '))
}

const uidOf = (purpose: Purpose) => (purpose === 'account' ? 'account' : purpose.uid)
const purposeOf = (uid: string): Purpose => (uid === 'account' ? uid : { uid })

export const newState = (): string => randomBytes(SECRET_BYTES).toString('base64url')

/** Keeps an attempt, and gives the browser what it shows when it comes back. */
export async function keepAttempt(
  ctx: HostContext,
  bridge: Bridge,
  { state, ...attempt }: Omit<Attempt, 'browser'> & { readonly state: string },
): Promise<void> {
  const secret = randomBytes(SECRET_BYTES).toString('base64url')
  const kept: Attempt = { ...attempt, browser: digest(secret) }
  await bridge.records.write(placeOf(state), kept, TTL)
  const value = `${secret}.${uidOf(attempt.purpose)}`
  setCookie(ctx, bridge, { name: cookieName(bridge, state), path: '/callback', value, seconds: SIGN_IN_TTL })
}

export type Taken =
  | (Pick<Attempt, 'purpose' | 'underWay'> & { readonly kind: 'taken' })
  /** This browser began it, and it was used or is too old: what it is for can be begun again. */
  | { readonly kind: 'again'; readonly purpose: Purpose }
  /** It is of another browser, or of none. */
  | { readonly kind: 'foreign' }

/** Takes the attempt of a state, where it is of this browser; one of another is left to that. */
export async function takeAttempt(ctx: HostContext, bridge: Bridge, state: string): Promise<Taken> {
  const [secret = '', uid = ''] = (ctx.cookies.get(cookieName(bridge, state)) ?? '').split('.')
  if (secret === '' || uid === '') return { kind: 'foreign' }
  const kept = await bridge.records.read<Attempt>(placeOf(state))
  if (kept && !isSame(kept.browser, digest(secret))) return { kind: 'foreign' }
  const attempt = kept && (await bridge.records.take<Attempt>(placeOf(state)))
  setCookie(ctx, bridge, { name: cookieName(bridge, state), path: '/callback', value: '', seconds: 0 })
  // Whoever asked for it at the same time has it.
  if (!attempt) return { kind: 'again', purpose: purposeOf(uid) }
  return { kind: 'taken', purpose: attempt.purpose, underWay: attempt.underWay }
}

interface Done {
  readonly login: string
  /** Digest of what the browser was given when it came back. */
  readonly browser: string
}

const doneAt = (uid: string) => pendingAt('signed in for', uid)

/**
 * The login that an interaction waited for, for the browser alone that came back with it: whoever began the interaction may
 * have planted its cookies in the browser of somebody else.
 */
export async function keepDone(ctx: HostContext, bridge: Bridge, uid: string, login: string): Promise<void> {
  const value = randomBytes(SECRET_BYTES).toString('base64url')
  const done: Done = { login, browser: digest(value) }
  await bridge.records.write(doneAt(uid), done, TTL)
  setCookie(ctx, bridge, { name: doneName(bridge, uid), path: '', value, seconds: SIGN_IN_TTL })
}

const doneName = (bridge: Bridge, uid: string) => `${prefixOf(bridge)}mcp_done_${digest(uid).slice(0, 12)}`

/** The id of the login that this browser came back with; undefined where it did not. */
export async function readDone(ctx: HostContext, bridge: Bridge, uid: string) {
  const done = await bridge.records.read<Done>(doneAt(uid))
  if (!done) return undefined
  const proof: Proof = { cookie: doneName(bridge, uid), digest: done.browser }
  return isProven(ctx, proof) ? { login: done.login, proof } : undefined
}
