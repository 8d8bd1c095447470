// The session of a browser, which is oidc-provider's: for the pages of our own that read it, begin it and end it.
import type Provider from 'oidc-provider'
import type { Session } from 'oidc-provider'
import type { HostContext } from '../../../core/index.ts'
import type { Login } from '../people/logins.ts'
import type { Bridge } from './bridge.ts'

/** Of requests that reach us by another name than the issuer's, as behind a proxy. */
function contextOf(provider: Provider, { req, res }: Pick<HostContext, 'req' | 'res'>) {
  const { host, protocol } = new URL(provider.issuer)
  req.headers['x-forwarded-host'] = host
  req.headers['x-forwarded-proto'] = protocol.slice(0, -1)
  return provider.createContext(req, res)
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
  const secure = provider.issuer.startsWith('https:')
  context.cookies.secure = secure
  context.cookies.set(provider.cookieName('session'), session.jti, {
    ...{ signed: true, httpOnly: true, overwrite: true, sameSite: 'lax', path: '/', secure },
    expires: new Date(Date.now() + lifetimes.session),
  })
}
