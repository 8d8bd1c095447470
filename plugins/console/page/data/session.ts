// The session of the operator: login with the token of the URL fragment, and what the operator may do.
import { signal } from '@preact/signals'
import { type Me, PATHS } from '../../api.ts'
import { access, post, request } from './request.ts'

export const me = signal<Me | undefined>(undefined)

export async function login(token: string): Promise<void> {
  me.value = await post<Me>(PATHS.login, { token })
}

export async function logout(): Promise<void> {
  await post(PATHS.logout, {})
  me.value = undefined
  access.value = 'missing'
}

/** Removes the token from the URL and the history, and returns it. */
function takeToken(): string | undefined {
  const token = new URLSearchParams(location.hash.slice(1)).get('t') ?? undefined
  if (token !== undefined) history.replaceState(null, '', location.pathname + location.search)
  return token
}

/** Uses the token of the URL, if there is one, otherwise the existing session. Resolves to the error of the login. */
export async function begin(): Promise<unknown> {
  const token = takeToken()
  try {
    if (token === undefined) me.value = await request<Me>(PATHS.me)
    else await login(token)
    return undefined
  } catch (error) {
    return token === undefined && access.value === 'missing' ? undefined : error
  }
}
