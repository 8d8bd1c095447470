// The login of a relay without a terminal: opens the browser once for all processes, or shows the client the login command.
import { AuthError } from '../../client/errors.ts'
import type { AuthEvent } from '../../client/events.ts'
import { createLoopbackRedirect } from '../../client/node/index.ts'
import { type LoopbackHost, previousPort } from '../../client/node/loopback.ts'
import { browserCommands } from '../../client/node/open-browser.ts'
import { printable } from '../../client/text.ts'
import { type Accounts, openAuthFetch } from '../client/account.ts'
import type { Credentials } from '../client/credentials.ts'
import { type Login, loginCommand } from '../client/stored-logins.ts'
import { createLoginReporter } from '../client/terminal.ts'
import type { CommandContext } from '../context.ts'

interface SignInOptions {
  readonly credentials: Credentials
  readonly browser: boolean
  readonly timeout: number | undefined
}

const REPORTED_EVENTS: readonly AuthEvent['type'][] = [
  'authorization-started',
  'login-waiting',
  'step-up',
  'refresh-failed',
  'registered',
  'token-obtained',
]

const showLogin = (login: Login, context: CommandContext) => async (url: URL) => {
  context.say(`${login.url} requires a login; if no browser opens, go to:`)
  context.stderr.write(`  ${printable(url.href, 8_000)}\n`)
  try {
    await context.openBrowser(url)
  } catch (cause) {
    throw new AuthError('no browser could be opened on this machine', {
      code: 'interaction_required',
      fix: `log in at a terminal: ${loginCommand(login)}`,
      cause,
    })
  }
}

/** The redirect URI: the login's port, otherwise any free port per login. */
async function createRedirect(login: Login, context: CommandContext) {
  const host = (login.redirectHost ?? '127.0.0.1') as LoopbackHost
  const { redirectPath: path = '/callback' } = login
  const opener = { host, path, openBrowser: showLogin(login, context) }
  if (login.redirectPort !== undefined) {
    const { redirectUri, delegate } = await createLoopbackRedirect({ ...opener, port: login.redirectPort })
    return { options: { redirectUri, authorizationRedirectDelegate: delegate }, platform: {} }
  }
  const authority = host === '::1' ? '[::1]' : host
  const openRedirect = (previous: string | undefined) =>
    createLoopbackRedirect({ ...opener, preferredPort: previousPort(previous, host) })
  return { options: { redirectUri: `http://${authority}:0${path}` }, platform: { openRedirect } }
}

export async function signInFetch(
  accounts: Accounts,
  login: Login,
  { credentials, browser, timeout }: SignInOptions,
): Promise<typeof fetch> {
  const { context } = accounts
  const hasBrowser = browser && browserCommands(context.env, process.platform).length > 0
  const opensBrowser = login.grant === 'authorization_code' && hasBrowser
  const isInteractive = login.grant === 'device' || opensBrowser
  const redirect = opensBrowser ? await createRedirect(login, context) : { options: {}, platform: {} }
  const report = createLoginReporter(context)
  const onEvent = (event: AuthEvent) => {
    if (!REPORTED_EVENTS.includes(event.type)) return
    report(event)
    if (event.type === 'token-obtained' && event.grant !== 'refresh_token')
      accounts.logins.save(login).catch(() => undefined)
  }
  return openAuthFetch(
    accounts,
    login,
    {
      interactive: isInteractive || login.grant === 'client_credentials' ? 'post' : 'never',
      onEvent,
      ...(timeout !== undefined && { loginTimeoutMs: timeout }),
      ...redirect.options,
    },
    credentials,
    redirect.platform,
  )
}
