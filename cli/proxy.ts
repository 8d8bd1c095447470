// `mcp-host proxy`: a stdio server that relays to a remote one, for clients that only start local servers or cannot log in.
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { AuthError } from '../client/errors.ts'
import { describeUnreachable } from '../client/http.ts'
import { createProxyDispatcher, fetchThrough, usesProxy } from '../client/node/fetch.ts'
import { isLoopback } from '../client/resolve-options.ts'
import { printable } from '../client/text.ts'
import { errorText } from '../core/http/errors.ts'
import { RemoteError } from '../remote/errors.ts'
import { networkCode, TIMING, type Timing } from '../remote/http/link.ts'
import type { Fields } from '../remote/messages.ts'
import { openAccounts } from './client/account.ts'
import { explainFailure, requiredScopes } from './client/connect.ts'
import { loadCredentials, SECRET_VARIABLE } from './client/credentials.ts'
import { withFlags } from './client/flag-text.ts'
import { createHeaders, HTTP_OPTIONS, type HttpOptions, readHeaderFile, readHttpOptions } from './client/http-flags.ts'
import { LOGIN_OPTIONS, readLogin, SECRET_ARGUMENT_FIX } from './client/login.ts'
import { checkServerUrl, type Login, loginCommand } from './client/stored-logins.ts'
import { type CommandValues, defineCommand, readSeconds } from './command.ts'
import { type CommandContext, usage } from './context.ts'
import { Failure } from './proxy/messages.ts'
import { createIgnoredTools, type Relay, startRelay } from './proxy/relay.ts'
import { signInFetch } from './proxy/sign-in.ts'
import { nextInputEnd } from './serve.ts'

const PROXY_OPTIONS = {
  ...LOGIN_OPTIONS,
  'header-file': {
    value: '<file>',
    multiple: true,
    help: 'Send the headers in this file, one per line, # for comments; protect it with chmod 600',
  },
  proxy: { ...HTTP_OPTIONS.proxy, help: 'HTTP proxy, or none [HTTPS_PROXY, HTTP_PROXY, NO_PROXY]' },
  transport: {
    choices: ['auto', 'http', 'sse'],
    help: 'Transport; sse is the one of protocol version 2024-11-05 [auto]',
  },
  'allow-http': { help: 'Allow an unencrypted http URL on another machine' },
  'ignore-tool': { value: '<glob>', multiple: true, help: 'Hide tools with this name; * matches any text; repeatable' },
} as const

export type ProxyValues = CommandValues<typeof PROXY_OPTIONS>

/** Validates the URL; plain HTTP requires `--allow-http`, because traffic could be intercepted. */
export function readUrl(address: string, { 'allow-http': allowed = false }: ProxyValues): string {
  const url = checkServerUrl(address)
  const { protocol, hostname } = new URL(url)
  if (protocol === 'https:' || isLoopback(hostname) || allowed) return url
  throw usage(`${hostname}: plain http can be read and changed; use https, or --allow-http in a trusted network`)
}

const SENSITIVE = /^(?:authorization|proxy-authorization|cookie)$|token|secret|key|password|auth/i

function warnSensitiveHeader(header: string, { say }: CommandContext) {
  const [name = ''] = header.split(':', 1)
  if (!SENSITIVE.test(name.trim()) || /\$\{/.test(header)) return
  say(`warning: other programs can read --header ${name.trim()}; use \${NAME} from the environment, or --header-file`)
}

function warnFileMode(file: string, { say }: CommandContext) {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
  if (process.platform !== 'win32' && (mode & 0o077) !== 0)
    say(`warning: --header-file ${file}: other users can read it; run chmod 600 ${file}`)
}

const CONNECT_TIMEOUT = 10_000
/** Streams can be idle. */
const NO_TIMEOUTS = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: CONNECT_TIMEOUT } }

/** `proxy`: a URL, `none`, or `env` (HTTPS_PROXY, HTTP_PROXY and NO_PROXY; loopback addresses excluded). */
const createBaseFetch = (proxy = 'env'): typeof fetch =>
  fetchThrough(undici =>
    usesProxy(proxy) ? createProxyDispatcher(undici, proxy, NO_TIMEOUTS) : new undici.Agent(NO_TIMEOUTS),
  )

const TOO_NEW = 'supports no protocol version that this client supports; update the client'

/** The values of `data.reason`. */
const REASONS: Readonly<Record<string, string>> = { lost: 'connection lost', 'too-large': 'too large' }

function toFailure(error: RemoteError, login: Login, runnable: (text: string) => string): Failure {
  const { reason, status = 0, code, data } = error
  const { url } = login
  const scopes = requiredScopes(error)
  if (scopes.length > 0) {
    const text = `${url} requires the scope ${scopes.join(' ')}; get it with: ${loginCommand(login, scopes)}`
    return new Failure('scope needed', runnable(text), { status })
  }
  // The server's own error, unchanged.
  if (reason === 'rpc')
    return Object.assign(
      new Failure('refused', error.message, { code, status }),
      data === undefined ? {} : { data: data as Fields },
    )
  const isUnreached = reason === 'unreachable'
  const { problem, fix } = describeUnreachable(error.cause, networkCode(error.cause))
  return new Failure(
    REASONS[reason] ?? reason,
    isUnreached ? `${url} ${problem}; ${fix}; the next request tries again` : printable(error.message),
    { retryable: isUnreached || status >= 500 || status === 429, ...(status > 0 && { status }) },
  )
}

const createExplainer =
  (login: Login, { secrets, runnable }: CommandContext) =>
  (thrown: unknown): Failure => {
    if (thrown instanceof Failure) return thrown
    if (thrown instanceof RemoteError) return toFailure(thrown, login, runnable)
    const explained = explainFailure(thrown, login)
    const reason = AuthError.is(thrown) ? thrown.code : 'failed'
    return new Failure(
      reason,
      secrets.scrub(runnable(AuthError.is(explained) ? withFlags(explained) : explained.message)),
      {
        retryable: AuthError.is(thrown) && thrown.retryable,
      },
    )
  }

/** Uses a client secret from the environment or a file, because the relay cannot prompt. */
function addSecret(login: Login, { env }: CommandContext): Login {
  const hasSecret = login.secretFile !== undefined || Boolean(env[SECRET_VARIABLE])
  return login.clientId !== undefined && hasSecret ? { ...login, secret: true } : login
}

export interface ProxyEnds {
  readonly input: Readable
  readonly output: Writable
}

/** Throws a StartError for an invalid command line. The server is contacted after the client's first message. */
export async function startProxy(
  context: CommandContext,
  address: string,
  values: ProxyValues,
  ends: ProxyEnds,
  timing: Timing = TIMING,
): Promise<Relay> {
  const url = readUrl(address, values)
  const { header = [], 'header-file': files = [] } = values
  for (const line of header) if (!line.startsWith('@')) warnSensitiveHeader(line, context)
  const { headers, ...rest } = readHttpOptions(context, values)
  const filePaths = files.map(file => resolve(context.cwd, file))
  for (const path of filePaths) warnFileMode(path, context)
  const fileHeaders = filePaths.flatMap(path => readHeaderFile(path, '--header-file', context))
  const http: HttpOptions = { ...rest, headers: [...fileHeaders, ...headers] }
  const logins = openAccounts(context, http).logins
  const before = await logins.find(url, values.profile)
  const login = addSecret(readLogin(context, url, values, before, http), context)
  const base = createBaseFetch(http.proxy ?? before?.proxy)
  const httpWithBase: HttpOptions = { ...http, base }
  const accounts = openAccounts(context, httpWithBase)
  const options = {
    credentials: loadCredentials(context, login),
    browser: !values['no-browser'],
    timeout: readSeconds('login-timeout', values['login-timeout']),
  }
  const isAuthorized = createHeaders(context, httpWithBase, login).has('authorization')
  const fetch = isAuthorized ? accounts.fetchFor(login) : await signInFetch(accounts, login, options)
  const debug = (what: string) => {
    if (values.verbose) context.say(what)
  }
  return startRelay(
    {
      url: login.url,
      fetch,
      transport: values.transport ?? 'auto',
      timing,
      debug: debug,
      ignored: createIgnoredTools(values['ignore-tool'] ?? []),
      explain: createExplainer(login, context),
      isFinal: AuthError.is,
      refusedInitialize: () => context.say(`warning: ${login.url} ${TOO_NEW}`),
    },
    ends,
  )
}

export const proxyCommand = defineCommand({
  summary: 'Connect a stdio client to a remote server, with login',
  example: 'https://mcp.example/mcp',
  positionals: ['URL'],
  options: PROXY_OPTIONS,
  instead: SECRET_ARGUMENT_FIX,
  notes: `For desktop clients: "command": "mcp-host", "args": ["proxy", "https://example.com/mcp"].
proxy uses the login of \`mcp-host login\`, which is stored encrypted. Without a browser, clients get an error that names \`mcp-host login URL\`.`,
  async run(values, [address = ''], context) {
    const { process: events, stdin: input } = context
    const relay = await startProxy(context, address, values, { input, output: context.stdout })
    void nextInputEnd(context).then(relay.end)
    // An unexpected failure of one message must not end the others.
    events.on('unhandledRejection', error => context.say(`unexpected: ${errorText(error)}`))
    await relay.ended
  },
})
