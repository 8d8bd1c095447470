// The session of the operator: login with the token of the URL fragment, and what the operator may do.
import { effect, signal } from '@preact/signals'
import { type Login, type LoginMethods, type Me, PATHS } from '../../api.ts'
import { access, post, RequestError, request } from './request.ts'
import { createChallenge, findSecret, forgetSecret, received, shareSecret, takeVerifier } from './secret.ts'

export const me = signal<Me | undefined>(undefined)

/** True if the page at another origin of this console, such as `localhost`, sent the browser here to sign in. */
let isSignIn = false

function grant(own: Me): void {
  isSignIn = false
  me.value = own
  access.value = 'granted'
}

export async function login(token: string): Promise<void> {
  const { secret, ...own } = await post<Login>(PATHS.login, { token, verifier: takeVerifier() })
  shareSecret(secret)
  grant(own)
}

export async function signIn(at: string): Promise<void> {
  const url = new URL(at)
  // A URL with a fragment leads to another origin of the console, whose page starts the sign-in.
  if (url.hash === '') url.searchParams.set('challenge', await createChallenge())
  location.assign(url)
}

export async function findLoginMethods(): Promise<LoginMethods> {
  const methods = await request<LoginMethods>(PATHS.login)
  if (isSignIn && methods.signIn !== undefined && new URL(methods.signIn).hash === '') await signIn(methods.signIn)
  return methods
}

export async function logout(): Promise<void> {
  await post(PATHS.logout, {})
  forgetSecret()
  me.value = undefined
  access.value = 'missing'
}

const USED = 'This login link was used or has expired. Restart mcp-host, or press o in mcp-host dev, for a new one.'

/** Removes the token from the URL and the history, and returns it. */
function takeToken(): string | undefined {
  const fragment = new URLSearchParams(location.hash.slice(1))
  const token = fragment.get('t') ?? undefined
  isSignIn = fragment.has('sign-in')
  if (token !== undefined || isSignIn) history.replaceState(null, '', location.pathname + location.search)
  return token
}

/** Uses the token of the URL, if there is one, otherwise the existing session. Resolves to the error of the login. */
export async function logIn(): Promise<unknown> {
  const token = takeToken()
  try {
    if (token !== undefined) await login(token)
    else if (await findSecret()) grant(await request<Me>(PATHS.me))
    else access.value = 'missing'
    return undefined
  } catch (error) {
    if (token === undefined) return access.value === 'missing' ? undefined : error
    return error instanceof RequestError && error.status === 401 ? new RequestError(401, USED) : error
  }
}

effect(() => {
  if (received.value > 0 && access.peek() === 'missing') void logIn()
})
