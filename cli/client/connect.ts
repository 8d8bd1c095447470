// Connects to an MCP server of any protocol version, with or without a login, over Streamable HTTP or HTTP+SSE.
import { readChallenge } from '../../client/challenge.ts'
import { AuthError } from '../../client/errors.ts'
import type { AuthEvent } from '../../client/events.ts'
import { causesOf, describeUnreachable } from '../../client/http.ts'
import { printable } from '../../client/text.ts'
import { StartError } from '../../core/http/errors.ts'
import type { ElicitParams, ElicitResult } from '../../core/mcp/wire/protocol.ts'
import { connect as connectRemote, RemoteError, type ServerNotification } from '../../remote/index.ts'
import type { CommandContext } from '../context.ts'
import { serverText } from '../text.ts'
import { version } from '../version.ts'
import { type Accounts, openAuthFetch, readTokens } from './account.ts'
import { loadCredentials } from './credentials.ts'
import { readElicitation } from './elicit.ts'
import type { RequestIds } from './http-flags.ts'
import { logIn, openReceiver, requiresLogin } from './login-flow.ts'
import { tooLarge } from './responses.ts'
import { type Login, loginCommand } from './stored-logins.ts'
import { createLoginReporter, isInteractive } from './terminal.ts'

export const NO_RESULT = 'the server ended its response without a result'
const METHOD_NOT_FOUND = -32_601
const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'
/** The maximum timer delay, milliseconds, so that only the command itself times out. */
export const NO_TIMEOUT = 2 ** 31 - 1
interface ConnectOptions {
  readonly signal: AbortSignal
  readonly onConnect: () => void
  readonly ids: Pick<RequestIds, 'watch'>
  readonly own?: boolean
  readonly elicit: (params: ElicitParams) => Promise<ElicitResult>
}

function findNetworkCode(causes: readonly Error[]): string | undefined {
  const { cause } = causes.find(({ message, cause }) => message === 'fetch failed' && cause instanceof Error) ?? {}
  const { code, message } = (cause ?? {}) as Partial<NodeJS.ErrnoException>
  return code ?? message
}

export function explainFailure(
  thrown: unknown,
  login: Pick<Login, 'url' | 'profile'>,
  { granted = [], own = false }: { readonly granted?: readonly string[]; readonly own?: boolean } = {},
): Error {
  if (thrown instanceof StartError) return thrown
  const about = { cause: thrown }
  const causes = [...causesOf(thrown)]
  const auth = causes.find(AuthError.is)
  if (auth?.code === 'interaction_required') {
    const what = `${login.url} requires a login, or --header 'Authorization: Bearer TOKEN'`
    return new StartError('MH3201', `${what}; log in with: ${loginCommand(login)}`, about)
  }
  if (auth) return auth
  const network = findNetworkCode(causes)
  if (network !== undefined) {
    const { problem, fix } = describeUnreachable(thrown, network)
    return new StartError('MH3202', `${login.url} ${problem}; ${fix}`, about)
  }
  if (!(thrown instanceof Error)) return new StartError('MH3203', String(thrown), about)
  const formatAdvice = (command: string, token: string) =>
    own ? `send ${token} in --header, or omit --header and log in with: ${command}` : `log in with: ${command}`
  const required = requiredScopes(thrown)
  if (required.length > 0) {
    const lacking = required.filter(scope => !granted.includes(scope))
    const command = loginCommand(login, lacking.length > 0 ? lacking : required)
    const text = `${login.url} requires the scope ${required.join(' ')}; ${formatAdvice(command, 'a token with this scope')}`
    return new StartError('MH3204', printable(text), about)
  }
  if (!(thrown instanceof RemoteError))
    return new StartError('MH3203', `${login.url}: ${serverText(thrown.message)}`, about)
  const { reason, code, status } = thrown
  const message = serverText(thrown.message)
  if (reason === 'too-large') return tooLarge()
  if (status === 401)
    return new StartError(
      'MH3201',
      `${login.url}: ${message}; ${formatAdvice(loginCommand(login), 'a valid token')}`,
      about,
    )
  const isMisplaced = status === 405 || (status === 404 && code !== METHOD_NOT_FOUND)
  const advice = isMisplaced && reason === 'rpc' ? '; check the path of the URL' : ''
  if (reason === 'rpc' && !isMisplaced)
    return new StartError('MH3206', `the server returned error ${code}: ${message}`, about)
  if (status !== undefined)
    return new StartError('MH3207', `the server returned HTTP ${status}: ${message}${advice}`, about)
  if (reason === 'lost' || reason === 'invalid') return new StartError('MH3211', NO_RESULT, about)
  return new StartError('MH3203', message, about)
}

export function requiredScopes(thrown: unknown): readonly string[] {
  if (!(thrown instanceof RemoteError) || thrown.status !== 403 || thrown.challenge === undefined) return []
  try {
    return readChallenge({ status: 403, headers: new Headers({ 'www-authenticate': thrown.challenge }) })?.scope ?? []
  } catch {
    return []
  }
}

function showLog({ method, params }: ServerNotification, { say }: CommandContext): void {
  if (method !== 'notifications/message') return
  const { level, logger, data } = params
  const source = typeof logger === 'string' ? ` ${logger}` : ''
  say(`${level}${source}: ${typeof data === 'string' ? data : JSON.stringify(data)}`)
}

const open = (url: string, fetcher: typeof fetch, { ids, elicit, signal }: ConnectOptions, context: CommandContext) =>
  connectRemote(
    { url, fetch: ids.watch(fetcher) },
    {
      client: { name: 'mcp-host', version },
      capabilities: { elicitation: { form: {} }, extensions: { [TASKS_EXTENSION]: {} } },
      connectTimeout: NO_TIMEOUT,
      onRequest: async ({ params }) => ({ ...(await elicit(readElicitation(params))) }),
      onNotification: notification => showLog(notification, context),
      signal,
    },
  )

/** Logs in before connecting, because connection requests time out sooner than a user logs in. */
async function prepare(accounts: Accounts, login: Login, signal: AbortSignal): Promise<void> {
  if (!isInteractive(accounts.context) || login.grant === 'client_credentials') return
  const { session } = await openAuthFetch(accounts, login, { interactive: 'never' })
  if (
    (await session.token({ signal })) !== undefined ||
    !(await requiresLogin(login.url, accounts.fetchFor(login), signal))
  )
    return
  await logIn(accounts, login, { credentials: loadCredentials(accounts.context, login), browser: true, signal })
}

const REPORTED_EVENTS: readonly AuthEvent['type'][] = [
  'authorization-started',
  'step-up',
  'refresh-failed',
  'registered',
]

export async function connect(accounts: Accounts, login: Login, options: ConnectOptions) {
  const { context } = accounts
  const report = createLoginReporter(context)
  if (options.own) {
    options.onConnect()
    const server = await open(login.url, accounts.fetchFor(login), options, context)
    return { server, close: () => server.close() }
  }
  await prepare(accounts, login, options.signal)
  options.onConnect()
  const isLoggedIn = isInteractive(context) && (await readTokens(accounts, login))?.accessToken !== undefined
  const receiver = isLoggedIn ? await openReceiver(accounts, login, true) : undefined
  const authFetch = await openAuthFetch(accounts, login, {
    interactive: receiver || (isInteractive(context) && login.grant === 'device') ? 'any' : 'never',
    onEvent: event => {
      if (REPORTED_EVENTS.includes(event.type)) report(event)
    },
    ...(receiver && { redirectUri: receiver.redirectUri, authorizationRedirectDelegate: receiver.delegate }),
  })
  try {
    const server = await open(login.url, authFetch, options, context)
    return {
      server,
      async close() {
        await server.close()
        await receiver?.close()
      },
    }
  } catch (error) {
    await receiver?.close()
    throw error
  }
}
