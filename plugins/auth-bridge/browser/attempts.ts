// Attempts to sign in at the provider: what must be known again when the browser comes back, under the state that the provider
// sends along, and for the browser alone that began. Each state works once.
import { randomBytes } from 'node:crypto'
import type { HostContext } from '../../../core/index.ts'
import { SIGN_IN_TTL } from '../places.ts'
import { pendingAt } from '../records.ts'
import type { LoginUnderWay } from '../upstream/upstream.ts'
import type { Bridge } from './bridge.ts'
import { isBrowser, knowBrowser } from './browser-cookie.ts'

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

const placeOf = (state: string) => pendingAt('attempt', state)

export const newState = (): string => randomBytes(STATE_BYTES).toString('base64url')

/** Keeps an attempt, for this browser. */
export async function keepAttempt(
  ctx: HostContext,
  { records, issuer }: Bridge,
  { state, ...attempt }: Omit<Attempt, 'browser' | 'used'> & { readonly state: string },
): Promise<void> {
  const kept: Attempt = { ...attempt, browser: knowBrowser(ctx, issuer) }
  await records.write(placeOf(state), kept, TTL)
}

export type Taken =
  | (Pick<Attempt, 'purpose' | 'underWay'> & { readonly kind: 'taken' })
  /** This browser began it, and it was used: what it is for can be begun again. */
  | { readonly kind: 'again'; readonly purpose: Purpose }
  /** It is of another browser, too old, or of nobody. */
  | { readonly kind: 'foreign' }

/** Takes the attempt of a state, where it is of this browser; one of another is left to that. */
export async function takeAttempt(ctx: HostContext, { records, issuer }: Bridge, state: string): Promise<Taken> {
  const kept = await records.read<Attempt>(placeOf(state))
  if (!kept || !isBrowser(ctx, issuer, kept.browser)) return { kind: 'foreign' }
  const { purpose, underWay } = kept
  const taken = await records.update<Attempt>(placeOf(state), TTL, attempt =>
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
