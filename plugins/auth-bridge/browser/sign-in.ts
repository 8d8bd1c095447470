// Sign-in at the identity provider, bound to one browser by a single-use state.

import { randomBytes } from 'node:crypto'
import type Provider from 'oidc-provider'
import type { Interaction, Session } from 'oidc-provider'
import type { UserPage } from '../../../core/auth.ts'
import { HostError } from '../../../core/index.ts'
import type { Clock, HostContext } from '../../../core/plugin.ts'
import { asText, pendingKey, redirectTo } from '../../families/credentials/index.ts'
import { sendPage } from '../../families/pages/index.ts'
import { createAddressLimit, createLimit } from '../limits.ts'
import type { Bridge } from '../make.ts'
import { type Login, rolesIn } from '../people/logins.ts'
import { longCookie, nameIssuer, SIGN_IN_TTL } from '../server/oidc-provider.ts'
import {
  isUpstreamError,
  type LoginRequest,
  type LoginUnderWay,
  type SignedIn,
  type UpstreamError,
} from '../upstream/upstream.ts'
import { isBrowser, knowBrowser, pathOf } from './browser.ts'

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
async function signedInAs(ctx: HostContext, { provider, accounts, lifetimes }: Bridge, login: Login) {
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

type Purpose = { readonly uid: string } | { readonly path: string } | 'account'

interface Attempt {
  readonly purpose: Purpose
  readonly underWay: LoginUnderWay
  readonly browser: string
  readonly used?: true
}

const TTL = SIGN_IN_TTL * 1_000
const STATE_BYTES = 32

const attemptAt = (state: string) => pendingKey('attempt', state)

/** Takes the sign-in attempt. Undefined in another browser. `again`: the state was used before. */
async function takeAttempt(ctx: HostContext, { records, issuer }: Bridge, state: string) {
  const kept = await records.read<Attempt>(attemptAt(state))
  if (!kept || !isBrowser(ctx, issuer, kept.browser)) return undefined
  const taken = await records.update<Attempt>(attemptAt(state), TTL, attempt =>
    attempt.used ? undefined : { ...attempt, used: true },
  )
  return { ...kept, again: taken === undefined }
}

/** A login bound to its browser, because an attacker can plant the cookies of an interaction. */
interface Done {
  readonly login: string
  readonly browser: string
}

const doneAt = (uid: string) => pendingKey('signed in for', uid)

/** Reads the login. Undefined in another browser. */
async function readDone(ctx: HostContext, { records, issuer }: Bridge, uid: string): Promise<Done | undefined> {
  const done = await records.read<Done>(doneAt(uid))
  return done && isBrowser(ctx, issuer, done.browser) ? done : undefined
}

const redirectUri = ({ issuer }: Bridge) => `${issuer}/callback`

async function leave(
  ctx: HostContext,
  bridge: Bridge,
  purpose: Purpose,
  hints: Pick<LoginRequest, 'loginHint' | 'prompt'> = {},
) {
  const state = randomBytes(STATE_BYTES).toString('base64url')
  try {
    const { url, underWay } = await bridge.upstream.startLogin({ ...hints, redirectUri: redirectUri(bridge), state })
    const attempt: Attempt = { purpose, underWay, browser: knowBrowser(ctx, bridge.issuer) }
    await bridge.records.write(attemptAt(state), attempt, TTL)
    redirectTo(ctx, url)
  } catch (error) {
    refuseLogin(ctx, bridge, purpose, error)
  }
}

function startOf(bridge: Bridge, purpose: Purpose): string {
  if (purpose === 'account') return pathOf(bridge, '/account/sign-in')
  return 'path' in purpose ? purpose.path : pathOf(bridge, `/interaction/${encodeURIComponent(purpose.uid)}`)
}

const wayBack = (bridge: Bridge, purpose: Purpose) =>
  purpose === 'account' || 'path' in purpose
    ? {}
    : { other: { label: 'Back to the client', href: `${startOf(bridge, purpose)}?cancel` } }

const TEXTS: Readonly<Record<UpstreamError['fault'], readonly [status: number, text: string]>> = {
  refused: [403, 'refused the sign-in, or you cancelled it.'],
  misconfigured: [502, 'rejected the configuration of this service. The log of this service has the reason.'],
  unavailable: [503, 'is not available. Try again in a moment.'],
  untrusted: [502, 'sent an invalid response. The log of this service has the reason.'],
}

function refuseLogin(ctx: HostContext, bridge: Bridge, purpose: Purpose, error: unknown): void {
  if (!isUpstreamError(error)) throw error
  const { label } = bridge.upstream
  const { fault, code, fix } = error
  const level = fault === 'refused' ? 'info' : fault === 'unavailable' ? 'warn' : 'error'
  bridge.signedIn(fault)
  bridge.log[level](
    { code: 'MH2148', err: error, fault, providerCode: code, fix },
    'signing in at the identity provider failed',
  )
  const [status, text] = TEXTS[fault]
  const action = { label: 'Try again', href: startOf(bridge, purpose) }
  const detail = code === undefined ? {} : { detail: `${label}: ${code}`.slice(0, 120) }
  const shown = { text: `${label} ${text}`, action, isError: true, ...detail, ...wayBack(bridge, purpose) }
  sendPage(ctx, bridge.pages.message({ title: 'Sign-in failed', ...shown }), status)
}

function refusePerson(ctx: HostContext, bridge: Bridge, purpose: Purpose, { person }: SignedIn, reason: string): void {
  bridge.signedIn('not_allowed')
  bridge.log.info(
    { code: 'MH2124', denied: 'sign-in', subject: person.subject, reason },
    'Refused a user who signed in',
  )
  bridge.log.debug(
    { subject: person.subject, groups: person.groups },
    'the groups of a user, as returned by the provider',
  )
  const who = person.email ?? person.name ?? person.subject
  const text = `You are signed in with ${bridge.upstream.label} as ${who}. This account cannot use the service: ${reason}.`
  const again = purpose !== 'account' && 'path' in purpose ? 'account' : purpose
  const action = { label: 'Use another account', href: `${startOf(bridge, again)}?prompt=select_account` }
  const page = { title: 'Access denied', text, action, isError: true, ...wayBack(bridge, purpose) }
  sendPage(ctx, bridge.pages.message(page), 403)
}

export async function signInFor(ctx: HostContext, bridge: Bridge, interaction: Interaction): Promise<void> {
  const { uid, params } = interaction
  if ('cancel' in ctx.query)
    return redirectTo(ctx, await bridge.provider.interactionResult(ctx.req, ctx.res, CANCELLED))
  const done = await readDone(ctx, bridge, uid)
  const login = done && (await bridge.logins.find(done.login))
  if (!done || !login) {
    const again = ctx.query['prompt'] === 'select_account' ? 'select_account' : undefined
    const prompt = again ?? (isToProve(params) ? 'login' : undefined)
    return leave(ctx, bridge, { uid }, { loginHint: asText(params['login_hint']), ...(prompt && { prompt }) })
  }
  await finish(ctx, bridge, login, done.browser)
}

const CANCELLED = { error: 'access_denied', error_description: 'the user cancelled the sign-in' }

const isToProve = ({ prompt, max_age }: Interaction['params']) =>
  asText(prompt).split(' ').includes('login') || max_age !== undefined

async function finish(ctx: HostContext, { provider }: Bridge, { id, person }: Login, browser: string): Promise<void> {
  const result = { login: { accountId: person.subject }, loginId: id, browser }
  const returnTo = await provider.interactionResult(ctx.req, ctx.res, result)
  const session = await openSession(provider, ctx)
  if (session.accountId !== undefined && session.accountId !== person.subject) {
    // Another user was signed in, whose consents must not apply.
    session.accountId = undefined
    session.authorizations = undefined
    await session.persist()
  }
  redirectTo(ctx, returnTo)
}

export const signInForAccount = (ctx: HostContext, bridge: Bridge): Promise<void> =>
  leave(ctx, bridge, 'account', ctx.query['prompt'] === 'select_account' ? { prompt: 'select_account' } : {})

/** Maximum pages per minute and address, because each started sign-in is stored. */
export const MAX_SIGN_INS = 300

export function refusePeople(ctx: HostContext, { pages }: Bridge): void {
  ctx.set('Retry-After', '60')
  const text = 'Wait one minute, then reload this page.'
  sendPage(ctx, pages.message({ title: 'Too many requests', text, isError: true }), 429)
}

export function pagesOf(getBridge: () => Promise<{ readonly bridge: Bridge }>, clock: Clock) {
  const mayStart = createAddressLimit(MAX_SIGN_INS, clock)
  const mayUse = createLimit(MAX_SIGN_INS, clock)
  return {
    async identify(ctx: HostContext, path: string) {
      const { bridge } = await getBridge()
      const subject = (await currentLogin(ctx, bridge))?.login.person.subject
      const may = subject === undefined ? mayStart(ctx.ip) : mayUse(subject)
      if (may && subject !== undefined) return subject
      if (may) await leave(ctx, bridge, { path })
      else refusePeople(ctx, bridge)
      return undefined
    },
    async rolesOf(ctx: HostContext) {
      const { bridge } = await getBridge()
      const current = await currentLogin(ctx, bridge)
      const renewed = current && (await bridge.logins.renew(current.login.id))
      if (renewed && 'unsure' in renewed) throw new HostError('unavailable', { detail: renewed.unsure })
      return renewed && 'login' in renewed ? rolesIn(renewed) : undefined
    },
    async show(ctx: HostContext, page: UserPage, status?: number) {
      sendPage(ctx, (await getBridge()).bridge.pages.message(page), status)
    },
  }
}

export function sayExpired(ctx: HostContext, { pages }: Bridge): void {
  const text = 'The sign-in took too long, or it started in another browser. Return to the client and start again.'
  sendPage(ctx, pages.message({ title: 'This sign-in has expired', text, isError: true }), 400)
}

function refuseBrowser(ctx: HostContext, bridge: Bridge): void {
  bridge.log.warn(
    { code: 'MH2125', denied: 'sign-in', ip: ctx.ip },
    'a login returned in a different browser from the one that started it',
  )
  sayExpired(ctx, bridge)
}

export async function chooseUser(ctx: HostContext, bridge: Bridge): Promise<void> {
  const state = asText(ctx.query['state'])
  if (state === '') return refuseBrowser(ctx, bridge)
  sendPage(ctx, bridge.pages.chooseUser({ state, action: pathOf(bridge, '/callback') }))
}

export async function comeBack(ctx: HostContext, bridge: Bridge): Promise<void> {
  const state = asText(ctx.query['state'])
  const attempt = state === '' ? undefined : await takeAttempt(ctx, bridge, state)
  if (!attempt) return refuseBrowser(ctx, bridge)
  const { purpose, underWay, browser, again } = attempt
  if (again) return redirectTo(ctx, startOf(bridge, purpose))
  let signedIn: SignedIn
  try {
    const callback = new URL(`${redirectUri(bridge)}?${ctx.querystring}`)
    signedIn = await bridge.upstream.finish(callback, underWay, { redirectUri: redirectUri(bridge), state })
  } catch (error) {
    return refuseLogin(ctx, bridge, purpose, error)
  }
  const decision = bridge.decide(signedIn.person)
  if ('refused' in decision) {
    bridge.upstream.revoke(signedIn.tokens).catch((err: unknown) => bridge.log.debug({ err }, 'not revoked'))
    return refusePerson(ctx, bridge, purpose, signedIn, decision.refused)
  }
  const login = await bridge.logins.create(signedIn, browser)
  const { subject, groups } = login.person
  bridge.signedIn('ok')
  bridge.log.info({ code: 'MH2126', subject }, 'a user signed in')
  bridge.log.debug({ subject, groups }, 'the groups of a user, as returned by the provider')
  if (purpose === 'account' || 'path' in purpose) {
    await signedInAs(ctx, bridge, login)
    return redirectTo(ctx, purpose === 'account' ? pathOf(bridge, '/account') : purpose.path)
  }
  const done: Done = { login: login.id, browser }
  await bridge.records.write(doneAt(purpose.uid), done, TTL)
  redirectTo(ctx, startOf(bridge, purpose))
}
