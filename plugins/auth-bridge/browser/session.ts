// The session of a browser, which is oidc-provider's: for the pages of our own that read it, begin it and end it.
import type Provider from 'oidc-provider'
import type { Session } from 'oidc-provider'
import type { HostContext } from '../../../core/index.ts'
import type { Login } from '../people/logins.ts'
import { longCookie } from '../server/cookies.ts'
import { nameIssuer } from '../server/oidc-provider.ts'
import type { Bridge } from './bridge.ts'

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
