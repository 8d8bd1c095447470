// Connects to an MCP server of any protocol version, with or without a login, over Streamable HTTP or HTTP+SSE.
import type { Client, ElicitRequest, ElicitResult, JsonSchemaValidator } from '@modelcontextprotocol/client'
import { AuthError } from '../../client/errors.ts'
import type { AuthEvent } from '../../client/events.ts'
import { tellUnreached } from '../../client/http.ts'
import { isObject, printable } from '../../client/text.ts'
import { StartError } from '../../core/http/errors.ts'
import type { CommandContext } from '../context.ts'
import { parseObject, serverText, shellWord } from '../text.ts'
import { version } from '../version.ts'
import { type Accounts, openAuthFetch, readTokens } from './account.ts'
import { limitAnswers, repairAnswers } from './answers.ts'
import { recallCredentials } from './credentials.ts'
import { asksForLogin, logIn, receiverFor } from './log-in.ts'
import type { Login } from './logins.ts'
import { loginCommand } from './logins.ts'
import type { RequestIds } from './reach.ts'
import { createNarrator, hasPerson } from './terminal.ts'

const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'
/** The maximum timer delay, milliseconds, so that only the command itself times out. */
export const NO_TIMEOUT = 2 ** 31 - 1
interface ConnectOptions {
  readonly signal: AbortSignal
  readonly fail: (reason: StartError) => void
  readonly begin: () => void
  readonly ids: Pick<RequestIds, 'watch'>
  readonly own?: boolean
  readonly elicit: (params: ElicitRequest['params']) => Promise<ElicitResult>
}

interface Connection {
  readonly client: Client
  close(): Promise<void>
}

function authErrorIn(thrown: unknown): AuthError | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 6; error = error.cause, depth++) {
    if (AuthError.is(error)) return error
  }
  return undefined
}

function networkFailureIn(thrown: unknown): string | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 6; error = error.cause, depth++) {
    if (error.message !== 'fetch failed' || !(error.cause instanceof Error)) continue
    const { code, message } = error.cause as NodeJS.ErrnoException
    return code ?? message
  }
  return undefined
}

function serverWords(message: string): string {
  const error = parseObject(message.slice(message.indexOf('{"')))?.['error']
  return serverText(isObject(error) && typeof error['message'] === 'string' ? error['message'] : message)
}

export function explainFailure(
  thrown: unknown,
  login: Pick<Login, 'url' | 'profile'>,
  granted: readonly string[] = [],
): Error {
  if (thrown instanceof StartError) return thrown
  const about = { cause: thrown }
  const auth = authErrorIn(thrown)
  if (auth?.code === 'interaction_required') {
    return new StartError(
      'MH3201',
      `${login.url} asks for a login; log in with: ${loginCommand(login.url, login.profile)}`,
      about,
    )
  }
  if (auth) return auth
  const network = networkFailureIn(thrown)
  if (network !== undefined) {
    const { what, fix } = tellUnreached(thrown, network)
    return new StartError('MH3202', `${login.url} ${what}; ${fix}`, about)
  }
  if (!(thrown instanceof Error)) return new StartError('MH3203', String(thrown), about)
  const { requiredScope } = thrown as { requiredScope?: unknown }
  if (typeof requiredScope === 'string') {
    const lacking = requiredScope.split(' ').filter(scope => scope !== '' && !granted.includes(scope))
    const scopes = lacking.length > 0 ? lacking : requiredScope.split(' ')
    const command = [loginCommand(login.url, login.profile), ...scopes.map(shellWord)].join(' --add-scope ')
    return new StartError(
      'MH3204',
      printable(`${login.url} wants the scope ${requiredScope} for this; log in with: ${command}`),
      about,
    )
  }
  const { code, status } = thrown as { code?: unknown; status?: unknown }
  if (code === 'REQUEST_TIMEOUT') return new StartError('MH3205', 'no answer in time', about)
  const words = serverWords(thrown.message)
  if (typeof code === 'number') return new StartError('MH3206', `the server answered error ${code}: ${words}`, about)
  const fix = status === 404 ? '; check the path of the URL' : ''
  if (typeof status === 'number')
    return new StartError('MH3207', `the server answered HTTP ${status}: ${words}${fix}`, about)
  return new StartError('MH3203', `${login.url}: ${words}`, about)
}

const acceptAll =
  <T>(): JsonSchemaValidator<T> =>
  input => ({
    valid: true,
    data: input as T,
    errorMessage: undefined,
  })

async function makeClient({ elicit }: ConnectOptions, { say }: CommandContext): Promise<Client> {
  const { Client: OfficialClient } = await import('@modelcontextprotocol/client')
  const client = new OfficialClient(
    { name: 'mcp-host', version },
    {
      capabilities: { elicitation: { form: {} }, extensions: { [TASKS_EXTENSION]: {} } },
      versionNegotiation: { mode: 'auto' },
      // Schemas of a server never run on this thread: see `checkResult`.
      jsonSchemaValidator: { getValidator: acceptAll },
    },
  )
  client.setRequestHandler('elicitation/create', ({ params }) => elicit(params))
  client.setNotificationHandler('notifications/message', ({ params: { level, logger, data } }) => {
    say(
      `${level}${logger === undefined ? '' : ` ${logger}`}: ${typeof data === 'string' ? data : JSON.stringify(data)}`,
    )
  })
  return client
}

/** Whether the server may support HTTP+SSE only, because it refuses POST. */
const isRefusal = (status: number | undefined) =>
  status !== undefined && status >= 400 && status < 500 && ![401, 403, 408, 429].includes(status)

async function open(
  url: URL,
  way: typeof fetch,
  options: ConnectOptions,
  context: CommandContext,
): Promise<Connection> {
  const authFetch = options.ids.watch(limitAnswers(way, options.fail))
  const olderFetch = options.ids.watch(limitAnswers(way, options.fail, { answersElsewhere: true }))
  const sdk = await import('@modelcontextprotocol/client')
  const { signal } = options
  const wait = { signal, timeout: NO_TIMEOUT }
  let status: number | undefined
  const watched: typeof fetch = async (input, init) => {
    const response = await authFetch(input, init)
    if (init?.method === 'POST') status = response.status
    return response
  }
  const client = await makeClient(options, context)
  const transport = new sdk.StreamableHTTPClientTransport(url, { fetch: watched })
  try {
    await client.connect(transport, wait)
    await repairAnswers(transport, { client, say: context.say })
    return {
      client,
      async close() {
        // Fails for a server without sessions, or one that does not respond.
        await transport.terminateSession().catch(() => undefined)
        await client.close()
      },
    }
  } catch (error) {
    await client.close().catch(() => undefined)
    if (signal.aborted || authErrorIn(error) || !isRefusal(status)) throw error
    const older = await makeClient(options, context)
    const olderTransport = new sdk.SSEClientTransport(url, { fetch: olderFetch })
    try {
      await older.connect(olderTransport, wait)
      await repairAnswers(olderTransport, { client: older, say: context.say })
    } catch {
      await older.close().catch(() => undefined)
      throw error
    }
    return { client: older, close: () => older.close() }
  }
}

/** Logs in before connecting, because connection requests time out sooner than a user logs in. */
async function prepare(accounts: Accounts, login: Login, signal: AbortSignal): Promise<void> {
  if (!hasPerson(accounts.context) || login.grant === 'client_credentials') return
  const { session } = await openAuthFetch(accounts, login, { interactive: 'never' })
  if (
    (await session.token({ signal })) !== undefined ||
    !(await asksForLogin(login.url, accounts.fetchFor(login), signal))
  )
    return
  await logIn(accounts, login, { credentials: recallCredentials(accounts.context, login), browser: true, signal })
}

const QUIETLY_TOLD: readonly AuthEvent['type'][] = ['authorization-started', 'step-up', 'refresh-failed', 'registered']

export async function connect(accounts: Accounts, login: Login, options: ConnectOptions): Promise<Connection> {
  const { context } = accounts
  const narrate = createNarrator(context)
  if (options.own) {
    options.begin()
    return open(new URL(login.url), accounts.fetchFor(login), options, context)
  }
  await prepare(accounts, login, options.signal)
  options.begin()
  const isLoggedIn = hasPerson(context) && (await readTokens(accounts, login))?.accessToken !== undefined
  const receiver = isLoggedIn ? await receiverFor(accounts, login, true) : undefined
  const authFetch = await openAuthFetch(accounts, login, {
    interactive: receiver || (hasPerson(context) && login.grant === 'device') ? 'any' : 'never',
    onEvent: event => {
      if (QUIETLY_TOLD.includes(event.type)) narrate(event)
    },
    ...(receiver && { redirectUri: receiver.redirectUri, authorizationRedirectDelegate: receiver.delegate }),
  })
  try {
    const { client, close } = await open(new URL(login.url), authFetch, options, context)
    return {
      client,
      async close() {
        await close()
        await receiver?.close()
      },
    }
  } catch (error) {
    await receiver?.close()
    throw error
  }
}
