// `mcp-host proxy`: a stdio server in front of a remote one, for clients that start their servers themselves or cannot log in.
import type { Readable, Writable } from 'node:stream'
import { AuthError } from '../client/errors.ts'
import { errorText } from '../core/http/errors.ts'
import { openAccounts } from './client/account.ts'
import { explainFailure } from './client/connect.ts'
import { recallCredentials, SECRET_VARIABLE } from './client/credentials.ts'
import { inFlags } from './client/flag-words.ts'
import { readLogin, SECRET_INSTEAD } from './client/login.ts'
import type { Login } from './client/logins.ts'
import { headersOf, type Reach, readReach } from './client/reach.ts'
import type { CommandContext } from './context.ts'
import { networkCode, TIMING, type Timing, unreachable } from './proxy/link.ts'
import { Failure } from './proxy/messages.ts'
import { createPatientFetch } from './proxy/patient-fetch.ts'
import { createIgnoredTools, type Relay, startRelay } from './proxy/relay.ts'
import { PROXY_OPTIONS, type ProxyValues, readHeaders, readUrl } from './proxy/settings.ts'
import { signInFetch } from './proxy/sign-in.ts'
import { nextSignal } from './serve.ts'
import { defineVerb, readSeconds } from './verb.ts'

const TOO_NEW = 'supports no protocol version that this client supports; update the client'

const explainTo =
  (login: Login, { secrets, runnable }: CommandContext) =>
  (thrown: unknown): Failure => {
    if (networkCode(thrown) !== undefined && !AuthError.is(thrown)) return unreachable(login.url, thrown)
    const { message } = explainFailure(thrown, login)
    const reason = AuthError.is(thrown) ? thrown.code : 'failed'
    return new Failure(reason, secrets.scrub(runnable(inFlags(message))), {
      retryable: AuthError.is(thrown) && thrown.retryable,
    })
  }

/** A client with a secret in the environment or a file uses it; nobody can be prompted. */
function withSecret(login: Login, { env }: CommandContext): Login {
  const hasSecret = login.secretFile !== undefined || Boolean(env[SECRET_VARIABLE])
  return login.clientId !== undefined && hasSecret ? { ...login, secret: true } : login
}

export interface ProxyEnds {
  readonly input: Readable
  readonly output: Writable
}

/** Throws a StartError for a command line that makes no sense; the server is not asked before the client says something. */
export async function startProxy(
  context: CommandContext,
  given: string,
  values: ProxyValues,
  ends: ProxyEnds,
  timing: Timing = TIMING,
): Promise<Relay> {
  const url = readUrl(given, values)
  const plain = readReach(context, {
    header: readHeaders(context, values),
    ...(values.proxy !== undefined && { proxy: values.proxy }),
  })
  const logins = openAccounts(context, plain).logins
  const before = await logins.find(url, values.profile)
  const login = withSecret(readLogin(context, url, values, before, plain), context)
  const base = createPatientFetch(login.url, plain.proxy ?? before?.proxy)
  const reach: Reach = { ...plain, base }
  const accounts = openAccounts(context, reach)
  const options = {
    credentials: recallCredentials(context, login),
    browser: !values['no-browser'],
    timeout: readSeconds('login-timeout', values['login-timeout']),
  }
  // Whoever shows something of their own needs no login.
  const isOwn = headersOf(context, reach, login).has('authorization')
  const fetch = isOwn ? accounts.fetchFor(login) : await signInFetch(accounts, login, options)
  const note = (what: string) => {
    if (values.verbose) context.say(what)
  }
  return startRelay(
    {
      url: login.url,
      fetch,
      transport: values.transport ?? 'auto',
      timing,
      note,
      ignored: createIgnoredTools(values['ignore-tool'] ?? []),
      explain: explainTo(login, context),
      refusedInitialize: () => context.say(`warning: ${login.url} ${TOO_NEW}`),
    },
    ends,
  )
}

const ENDING = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

async function proxy(values: ProxyValues, [given = '']: readonly string[], context: CommandContext): Promise<void> {
  const { process: events, stdin: input } = context
  const relay = await startProxy(context, given, values, { input, output: context.stdout })
  void nextSignal(events, ...ENDING).then(() => {
    void nextSignal(events, ...ENDING).then(() => context.exit(1))
    relay.end()
  })
  // One message that fails in a way nobody thought of must not end the others.
  events.on('unhandledRejection', error => context.say(`unexpected: ${errorText(error)}`))
  await relay.ended
}

export const proxyVerb = defineVerb({
  summary: 'a stdio server in front of a remote one, for clients that cannot log in or know no HTTP',
  positionals: ['URL'],
  options: PROXY_OPTIONS,
  instead: SECRET_INSTEAD,
  notes: `For desktop clients: "command": "mcp-host", "args": ["proxy", "https://example.com/mcp"].
The login is that of \`mcp-host login\`: one for all processes, kept encrypted. Without a browser the client is told to run \`mcp-host login URL\`.`,
  run: proxy,
})
