// Logs a person or a program in to one server, and says what happens meanwhile.

import { readCue } from '../../client/challenge.ts'
import { AuthError } from '../../client/errors.ts'
import { tellUnreached } from '../../client/http.ts'
import type { AuthSession, SessionStatus } from '../../client/index.ts'
import { StartError } from '../../core/http/errors.ts'
import { shellWord } from '../shell-word.ts'
import { type Accounts, keyOf, openAuthFetch, readTokens } from './account.ts'
import type { Credentials } from './credentials.ts'
import type { Login } from './logins.ts'
import { createNarrator, step } from './narrate.ts'
import { createReceiver, type Receiver } from './receiver.ts'
import { type Verdict, verifyServer } from './verify-server.ts'

export interface LogInOptions {
  readonly credentials: Credentials
  /** False: the URL is shown instead. */
  readonly browser: boolean
  readonly signal: AbortSignal
  /** Milliseconds. */
  readonly timeout?: number | undefined
}

const PING = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** Whether the server turns away who has no token. Rejects with an AuthError where it cannot be reached. */
export async function asksForLogin(url: string, ask: typeof fetch, signal: AbortSignal): Promise<boolean> {
  const requests: RequestInit[] = [{ method: 'POST', headers: HEADERS, body: PING }, { headers: HEADERS }]
  for (const request of requests) {
    try {
      const response = await ask(url, { ...request, redirect: 'manual', signal })
      await response.body?.cancel()
      if (readCue(response)) return true
    } catch (cause) {
      if (signal.aborted || AuthError.is(cause)) throw cause
      const { code } = ((cause as Error).cause ?? {}) as NodeJS.ErrnoException
      const { what, fix } = tellUnreached(cause, code)
      throw new AuthError(`${url} ${what}`, {
        code: 'temporarily_unavailable',
        fix,
        retryable: true,
        cause,
      })
    }
  }
  return false
}

/** Of whoever logged in here before as somebody else: the same URL and profile have one login. */
async function logOutPredecessor(accounts: Accounts, login: Login): Promise<void> {
  const before = await accounts.logins.find(login.url, login.profile)
  if (!before || (await keyOf(before)) === (await keyOf(login))) return
  const { session } = await openAuthFetch(accounts, before, { interactive: 'never' })
  await session.logout({ forgetClient: true })
}

async function receiverFor(accounts: Accounts, login: Login, browser: boolean): Promise<Receiver | undefined> {
  if (login.grant !== 'authorization_code') return undefined
  const before = (await readTokens(accounts, login))?.registration?.redirectUri
  const { redirectHost: host, redirectPort: port, redirectPath: path } = login
  return createReceiver(accounts.context, { host, port, path, before, browser })
}

/** What is there is no MCP server: before somebody logs in for nothing, or after. */
function wrongPlace({ url }: Login, status: number, then: string): StartError {
  const found =
    status === 404 ? `nothing is served at ${url} (404)` : `${url} answers HTTP ${status}, and not as an MCP server`
  return new StartError(`${found}; check the path${then}`)
}

/** Looks whether the server at this very path takes the new token. Where there is none, the login is undone. */
async function checkServer(accounts: Accounts, login: Login, credentials: Credentials, signal: AbortSignal) {
  const authFetch = await openAuthFetch(accounts, login, { interactive: 'never' }, credentials)
  const verdict = await verifyServer(login.url, authFetch, signal).catch((error: unknown): Verdict => {
    if (signal.aborted) throw error
    const refused = AuthError.is(error) && error.code === 'interaction_required'
    return refused ? { kind: 'refused', status: 401 } : { kind: 'unsure', status: 0 }
  })
  if (verdict.kind === 'mcp') return
  const { status } = verdict
  if (verdict.kind === 'other') {
    await authFetch.session.logout({ signal, forgetClient: true })
    throw wrongPlace(login, status, '; the login was undone')
  }
  if (status === 401) {
    const doctor = `mcp-host doctor ${shellWord(login.url)}`
    throw new StartError(`${login.url} refuses the token that it was given (HTTP 401); see why with: ${doctor}`)
  }
  step(
    accounts.context,
    'note',
    `whether an MCP server is there could not be seen (${status === 0 ? 'no answer' : `HTTP ${status}`})`,
  )
}

/** Undefined where the server lets anyone in. The login is remembered. */
export async function logIn(
  accounts: Accounts,
  login: Login,
  { credentials, browser, signal, timeout }: LogInOptions,
): Promise<SessionStatus | undefined> {
  const reached = accounts.fetchFor(login)
  const asked = await asksForLogin(login.url, reached, signal)
  step(accounts.context, 'server', `${login.url} ${asked ? 'asks for a login' : 'does not ask for a login'}`)
  if (!asked) {
    const verdict = await verifyServer(login.url, reached, signal)
    if (verdict.kind === 'other') throw wrongPlace(login, verdict.status, '')
  }
  const receiver = await receiverFor(accounts, login, browser)
  try {
    const { session } = await openAuthFetch(
      accounts,
      login,
      {
        onEvent: createNarrator(accounts.context),
        interactive: 'any',
        // Who does not ask and publishes nothing wants nothing.
        legacyFallback: asked,
        ...(timeout !== undefined && { loginTimeoutMs: timeout }),
        ...(receiver && { redirectUri: receiver.redirectUri, authorizationRedirectDelegate: receiver.delegate }),
      },
      credentials,
    )
    if (!(await obtain(session, login, asked, signal))) return undefined
    await checkServer(accounts, login, credentials, signal)
    await logOutPredecessor(accounts, login)
    await accounts.logins.keep(login)
    return await session.status()
  } finally {
    await receiver?.close()
  }
}

async function obtain(
  session: AuthSession,
  { addedScopes: scopes }: Login,
  asked: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await session.login({ signal, ...(scopes && { scopes }) })
    return true
  } catch (error) {
    if (!asked && AuthError.is(error) && error.code === 'no_authorization_server') return false
    throw error
  }
}
