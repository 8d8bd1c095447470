// Logs in to a server: receives the browser's redirect, and checks that the MCP server accepts the token.
import { AuthError } from '../../client/errors.ts'
import { createLoopbackRedirect } from '../../client/node/index.ts'
import { type LoopbackHost, previousPort } from '../../client/node/loopback.ts'
import { type AuthSession, requestChallenge, type SessionStatus } from '../../client/session.ts'
import { StartError } from '../../core/http/errors.ts'
import { connect, RemoteError } from '../../remote/index.ts'
import type { CommandContext } from '../context.ts'
import { shellWord } from '../text.ts'
import { type Accounts, loginKey, openAuthFetch, readTokens } from './account.ts'
import type { Credentials } from './credentials.ts'
import type { Login } from './stored-logins.ts'
import { createLoginReporter, prompt, step } from './terminal.ts'

interface ReceiverOptions {
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly path?: string | undefined
  /** Port of an earlier registration, which is valid only for its redirect URI. Reused if free. */
  readonly before?: string | undefined
  readonly browser: boolean
}

const isCallbackUrl = (text: string): boolean => {
  const parameters = URL.canParse(text) ? new URL(text).searchParams : undefined
  return parameters !== undefined && (parameters.has('code') || parameters.has('error'))
}

async function promptForCallback(context: CommandContext, signal: AbortSignal): Promise<string | undefined> {
  for (;;) {
    const text = (await prompt(context, 'Paste the URL here: ', { signal }))?.trim()
    if (text === undefined || isCallbackUrl(text)) return text
    if (text !== '') context.say('This is not a callback URL: it has neither code nor error. Paste the complete URL.')
  }
}

async function createReceiver(context: CommandContext, options: ReceiverOptions) {
  const { say, stderr, openBrowser } = context
  const host = (options.host ?? '127.0.0.1') as LoopbackHost
  const pendingPages = new Map<string, () => void>()

  async function show(url: URL): Promise<void> {
    if (options.browser) step(context, 'browser', 'opening; Ctrl-C ends the login. If no page opens, open this URL:')
    else say('Open this URL in a browser, and log in:')
    stderr.write(`\n  ${url.href}\n\n`)
    try {
      if (options.browser) return await openBrowser(url)
    } catch (error) {
      say(AuthError.is(error) ? (error.message.split(';', 1)[0] ?? '') : String(error))
    }
    say('If the browser cannot show the last page, copy its URL from the address bar.')
    pendingPages.get(url.href)?.()
  }

  const redirect = await createLoopbackRedirect({
    host,
    port: options.port,
    path: options.path,
    preferredPort: previousPort(options.before, host),
    openBrowser: show,
  })

  return {
    redirectUri: redirect.redirectUri,
    async delegate(url: URL, redirectUri: string, { signal }: { readonly signal: AbortSignal }) {
      const controller = new AbortController()
      const combined = AbortSignal.any([signal, controller.signal])
      const opened = new Promise<void>(resolve => pendingPages.set(url.href, resolve))
      const never = new Promise<never>(() => {})
      const pasted = opened
        .then(() => promptForCallback(context, combined))
        .then(text => {
          if (text === undefined) say('The input has ended: waiting for a browser on this machine.')
          return text ?? never
        })
      const received = redirect.delegate(url, redirectUri, { signal: combined }).catch(error => {
        if (options.browser || combined.aborted) throw error
        // The port is in use, but the user can still paste the URL.
        return show(url).then(() => never)
      })
      try {
        return await Promise.race([received, pasted])
      } finally {
        pendingPages.delete(url.href)
        controller.abort(new AuthError('the login has ended', { code: 'aborted' }))
      }
    },
    close: redirect.close,
  }
}

/** `refused`: not accessible with this token. `unsure`: could not be determined. */
type Verdict = { readonly kind: 'mcp' } | { readonly kind: 'refused' | 'unsure' | 'other'; readonly status: number }

const VERIFY_TIMEOUT = 15_000

/** JSON-RPC errors with status 404 that only MCP servers send: unknown method, unknown session. */
const MCP_NOT_FOUND: readonly number[] = [-32_601, -32_001]

function toVerdict({ reason, status = 0, code }: RemoteError): Verdict {
  if (status === 401 || status === 403) return { kind: 'refused', status }
  if (status >= 500 || status === 408 || status === 429) return { kind: 'unsure', status }
  const isMissing = status === 404 || status === 405
  if (reason === 'rpc' && (!isMissing || (status === 404 && MCP_NOT_FOUND.includes(code)))) return { kind: 'mcp' }
  return { kind: isMissing || reason === 'refused' ? 'other' : 'unsure', status }
}

/** Connects and ends the session. */
export async function verifyServer(url: string, send: typeof fetch, signal: AbortSignal): Promise<Verdict> {
  try {
    const client = { name: 'mcp-host login', version: '1' }
    const connection = await connect({ url, fetch: send }, { client, connectTimeout: VERIFY_TIMEOUT, signal })
    await connection.close()
    return { kind: 'mcp' }
  } catch (error) {
    if (!(error instanceof RemoteError)) throw error
    return toVerdict(error)
  }
}

interface LogInOptions {
  readonly credentials: Credentials
  readonly browser: boolean
  readonly signal: AbortSignal
  readonly timeout?: number | undefined
}

const PING = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** True if the server refuses requests without a token. Rejects with an AuthError if the server cannot be reached. */
export async function requiresLogin(url: string, send: typeof fetch, signal: AbortSignal): Promise<boolean> {
  const ping = { method: 'POST', headers: HEADERS, body: PING }
  return Boolean(
    (await requestChallenge(send, url, ping, signal)) ??
      (await requestChallenge(send, url, { headers: HEADERS }, signal)),
  )
}

/** Revokes the previous login, because a URL and profile have one login. */
async function logOutPrevious(accounts: Accounts, login: Login): Promise<void> {
  const before = await accounts.logins.find(login.url, login.profile)
  if (!before || (await loginKey(before)) === (await loginKey(login))) return
  const { session } = await openAuthFetch(accounts, before, { interactive: 'never' })
  await session.logout({ forgetClient: true })
}

export async function openReceiver(accounts: Accounts, login: Login, browser: boolean) {
  if (login.grant !== 'authorization_code') return undefined
  const previous = (await readTokens(accounts, login))?.registration?.redirectUri
  const { redirectHost: host, redirectPort: port, redirectPath: path } = login
  return createReceiver(accounts.context, { host, port, path, before: previous, browser })
}

function notMcpError({ url }: Login, status: number, then: string): StartError {
  const problem =
    status === 404
      ? `nothing is served at ${url} (404)`
      : `${url} responds with HTTP ${status}, and is not an MCP server`
  return new StartError('MH3207', `${problem}; check the path${then}`)
}

/** Checks that the server accepts the new token at this path. If no MCP server responds, the login is undone. */
async function checkServer(accounts: Accounts, login: Login, credentials: Credentials, signal: AbortSignal) {
  const authFetch = await openAuthFetch(accounts, login, { interactive: 'never' }, credentials)
  const verdict = await verifyServer(login.url, authFetch, signal).catch((error: unknown): Verdict => {
    if (signal.aborted) throw error
    const isRefused = AuthError.is(error) && error.code === 'interaction_required'
    return isRefused ? { kind: 'refused', status: 401 } : { kind: 'unsure', status: 0 }
  })
  if (verdict.kind === 'mcp') return
  const { status } = verdict
  if (verdict.kind === 'other') {
    await authFetch.session.logout({ signal, forgetClient: true })
    throw notMcpError(login, status, '; the login was undone')
  }
  if (status === 401) {
    const command = `mcp-host doctor ${shellWord(login.url)}`
    throw new StartError('MH3208', `${login.url} rejected the new token (HTTP 401). To find the cause, run: ${command}`)
  }
  step(accounts.context, 'note', `cannot verify the MCP server (${status === 0 ? 'no answer' : `HTTP ${status}`})`)
}

export async function logIn(
  accounts: Accounts,
  login: Login,
  { credentials, browser, signal, timeout }: LogInOptions,
): Promise<SessionStatus | undefined> {
  const send = accounts.fetchFor(login)
  const isRequired = await requiresLogin(login.url, send, signal)
  step(accounts.context, 'server', `${login.url} ${isRequired ? 'requires a login' : 'does not require a login'}`)
  if (!isRequired) {
    const verdict = await verifyServer(login.url, send, signal)
    if (verdict.kind === 'other') throw notMcpError(login, verdict.status, '')
  }
  const receiver = await openReceiver(accounts, login, browser)
  try {
    const { session } = await openAuthFetch(
      accounts,
      login,
      {
        onEvent: createLoginReporter(accounts.context),
        interactive: 'any',
        // A server without a challenge and without metadata requires no login.
        legacyFallback: isRequired,
        ...(timeout !== undefined && { loginTimeoutMs: timeout }),
        ...(receiver && { redirectUri: receiver.redirectUri, authorizationRedirectDelegate: receiver.delegate }),
      },
      credentials,
    )
    if (!(await startLogin(session, login, isRequired, signal))) return undefined
    await checkServer(accounts, login, credentials, signal)
    await logOutPrevious(accounts, login)
    await accounts.logins.save(login)
    return await session.status()
  } finally {
    await receiver?.close()
  }
}

async function startLogin(
  session: AuthSession,
  { addedScopes: scopes }: Login,
  isRequired: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await session.login({ signal, ...(scopes && { scopes }) })
    return true
  } catch (error) {
    if (!isRequired && AuthError.is(error) && error.code === 'no_authorization_server') return false
    throw error
  }
}
