// Tokens of one user at one API. The user logs in with a browser that the host redirects.
import { readChallenge } from './challenge.ts'
import { AuthError, InteractionRequiredError } from './errors.ts'
import type { ClientOAuthOptions } from './options.ts'
import { resolveOptions } from './resolve-options.ts'
import { splitScope } from './scopes.ts'
import { createSession } from './session.ts'

export interface LoginClientOptions
  extends Pick<ClientOAuthOptions, 'clientId' | 'clientSecret' | 'scopes' | 'dynamicClientRegistration' | 'profile'>,
    Required<Pick<ClientOAuthOptions, 'redirectUri' | 'tokenCache' | 'flowStore'>> {
  readonly apiUrl: string
  /** The authorization server. Default: the resource metadata of the API names it. */
  readonly issuer?: string | undefined
  /** The resource indicator. Default: `resource` of the API's metadata. */
  readonly resource?: string | undefined
}

export type LoginClient = ReturnType<typeof createLoginClient>

/** Throws an AuthError `invalid_options`. */
export function createLoginClient({ apiUrl, issuer, resource, ...given }: LoginClientOptions) {
  const common = {
    ...given,
    serverUrl: apiUrl,
    dpop: false,
    ...(given.clientSecret !== undefined && issuer !== undefined && { clientIssuer: issuer }),
    ...(resource !== undefined && { resourceIndicator: resource }),
  }
  const { session, engine } = createSession(resolveOptions({ ...common, interactive: 'never' }), { issuer })
  const logins = createSession(resolveOptions({ ...common, interactive: 'defer' }), { issuer })

  return {
    /** Returns a valid token, refreshed if necessary; undefined if the user has to log in. */
    token: () => session.token(),
    /** Returns a token other than `refused`. Undefined: the user has to log in, and the refused token is deleted. */
    async renew(refused: string): Promise<string | undefined> {
      const current = await session.token()
      if (current !== refused) return current
      const challenge = new Response(null, { status: 401, headers: { 'www-authenticate': 'Bearer' } })
      if (await session.onUnauthorized(challenge)) return session.token()
      const { store } = await engine()
      return store.locked(async () => {
        const stored = await store.read()
        return stored?.accessToken === refused ? (await store.drop(stored))?.accessToken : stored?.accessToken
      })
    },
    /** The scopes that a 403 response requires and the token does not have. */
    async missingScopes(challenge: string): Promise<readonly string[]> {
      const parsed = readChallenge({ status: 403, headers: new Headers({ 'www-authenticate': challenge }) })
      const granted = splitScope((await session.status()).scope)
      return (parsed?.scope ?? []).filter(scope => !granted.includes(scope))
    },
    /** Returns the URL where the user logs in. `scopes` are added. `refusedClientId`: a registration to replace. */
    async startLogin(scopes: readonly string[] = [], refusedClientId?: string): Promise<string> {
      try {
        await logins.login({ scopes, refusedClientId })
      } catch (error) {
        if (error instanceof InteractionRequiredError) return error.authorizationUrl
        throw error
      }
      throw new AuthError('the login did not start', { code: 'login_failed' })
    },
    isLoggedIn: async (): Promise<boolean> => (await session.status()).loggedIn,
    disconnect: () => session.logout(),
    complete: (callbackUrl: string): Promise<void> => logins.session.completeAuthorization(callbackUrl),
  }
}
