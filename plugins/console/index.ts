// The plugin `console`: a page for operators on a separate port, with the state of this host and its calls.
import type { AddressInfo } from 'node:net'
import { isLoopback } from '../../core/auth.ts'
import { definePlugin, type InternalHost, type Operator } from '../../core/internal.ts'
import { type CallRecord, type OptionsOf, StartError } from '../../core/plugin.ts'
import { checkPort, checkToken, LOOPBACK, portOptions } from '../families/separate-port/index.ts'
import { createHandlers } from './handlers.ts'
import { createLogins } from './login.ts'
import { createRecords } from './records.ts'
import { createRoleLogin } from './role-login.ts'
import { type ConsoleServer, openConsoleServer } from './server.ts'

export type { ConsoleProgram } from './program.ts'

const OPTIONS = {
  type: 'object',
  description: 'A page for operators, on a separate port: routes, access, calls, refusals, sessions, config.',
  additionalProperties: false,
  properties: {
    ...portOptions(9465, 'the page', '`http.tls`, and `token` or `role`'),
    token: {
      type: 'string',
      writeOnly: true,
      description:
        'Token for logins: at least 16 characters. Default without `role`: one-time tokens, printed at startup.',
    },
    role: {
      type: 'string',
      minLength: 1,
      description: 'Users of auth-bridge with this role can log in. Default: logins by token only.',
    },
    allowedHosts: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      default: [],
      description: 'Other allowed `Host` names. Loopback listeners also allow loopback names.',
    },
    actions: {
      type: 'boolean',
      default: false,
      description: 'Allows operators to end sessions, cancel tasks, reload the config and call tools.',
    },
  },
} as const

export interface ConsoleOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledConsoleOptions extends OptionsOf<typeof OPTIONS, true> {}

/** Reports settings that would expose the console. */
function checkOptions(host: InternalHost, { host: address, token, role, port }: FilledConsoleOptions) {
  const { at, http, processes } = host.config
  const wrong = (code: string, key: string, text: string) =>
    host.report(new StartError(code, text, { at: [...at, key] }))
  if (at[0] === 'routes') {
    const what =
      'the console belongs to the whole host: set options in `plugins`; a route can only set `console: false`'
    return host.report(new StartError('MH3601', what, { at }))
  }
  checkToken(host, 'MH3601', token)
  if (!isLoopback(address) && token === undefined && role === undefined) {
    wrong(
      'MH3602',
      'host',
      `one-time tokens are for this machine only; set \`token\` or \`role\`, or \`host\` to ${LOOPBACK}`,
    )
  }
  if (!isLoopback(address) && !http.tls) {
    const what = `tokens and cookies would cross the network unencrypted; set \`http.tls\`, or \`host\` to ${LOOPBACK}`
    wrong('MH3602', 'host', what)
  }
  host.onReady(() => checkPort(host, { code: 'MH3601', port, host: address }))
  if (processes > 1 && port === 0) {
    wrong('MH3603', 'port', 'each worker would select another free port; set a port, which one worker then serves')
  }
}

/** Milliseconds until a worker tries again to listen on the port. */
const RETRY_DELAY = 2_000

type Handlers = ReturnType<typeof createHandlers>

const isPortUsed = (error: unknown) =>
  error instanceof StartError && (error.cause as NodeJS.ErrnoException | undefined)?.code === 'EADDRINUSE'

const NO_OPERATOR = 'the console was started before the host was built'

function setup(host: InternalHost, options: FilledConsoleOptions) {
  checkOptions(host, options)
  const { at, purpose, node } = host.config
  const { role, ...place } = options
  const roleLogin = role === undefined || at[0] === 'routes' ? undefined : createRoleLogin(host, { ...place, role })
  if (purpose === 'stdio') {
    const fix = 'the console requires a listening host: mcp-host start'
    return host.onStart(() =>
      host.log.info({ code: 'MH3604', fix }, 'The console is not served: each stdio client has its own process'),
    )
  }
  if (purpose !== 'serve') return
  let operator: Operator | undefined
  let server: ConsoleServer | undefined
  const samplePathOf = (path: string) => operator?.routes.find(route => route.path === path)?.samplePath
  const records = createRecords(node, () => host.clock.now(), samplePathOf)
  const logins = createLogins(options.token, () => host.clock.now())
  const { observe, startTimeline } = records
  host.onFinish(Object.assign((record: CallRecord) => observe(record), { startTimeline }))
  const readProgram = host.inEveryProcess('node', () => node)
  let retry: ReturnType<typeof host.clock.setTimeout> | undefined
  let isClosed = false

  async function serve(running: Operator, api: Handlers): Promise<void> {
    const { port, host: address, allowedHosts } = options
    const takesTokens = options.token !== undefined || !roleLogin
    const makeServer = isLoopback(address) ? undefined : running.createServer
    try {
      server = await openConsoleServer({
        host,
        port,
        address,
        allowedHosts,
        makeServer,
        logins,
        roleLogin,
        takesTokens,
        ...api,
      })
    } catch (error) {
      if (host.config.processes === 1 || !isPortUsed(error)) throw error
      if (!retry) host.log.info({ code: 'MH3610', port }, 'Another worker or program uses the port of the console')
      const failed = (err: unknown) => host.log.error({ code: 'MH3607', err }, 'The console cannot be served')
      retry = host.clock.setTimeout(() => void serve(running, api).catch(failed), RETRY_DELAY).unref()
      return
    }
    if (isClosed) return void server.server.close()
    const { url } = server
    roleLogin?.opened((server.server.address() as AddressInfo).port)
    const isOneTime = options.token === undefined && !roleLogin
    const createLoginUrl = () => (isOneTime ? `${url}/#t=${logins.createToken()}` : url)
    running.program?.announce(createLoginUrl)
    // The start page shows the URL, but not that of a worker.
    if (!running.program || host.config.processes > 1) {
      host.log.info({ code: 'MH3608', url: createLoginUrl() }, 'serving the console')
    }
  }

  let end = async () => logins.endAll()
  host.onStart(async () => {
    operator = host.operator
    if (!operator) throw new Error(NO_OPERATOR)
    const api = createHandlers({ host, operator, records, isActive: options.actions, readProgram })
    api.start()
    end = async () => {
      isClosed = true
      if (retry) host.clock.clear(retry)
      logins.endAll()
      await api.end()
    }
    await serve(operator, api)
  })
  host.preClose(() => void end())
  host.onClose(async () => {
    await end()
    server?.server.close()
    server?.server.closeAllConnections()
  })
}

export const console = definePlugin<ConsoleOptions, FilledConsoleOptions>({ options: OPTIONS, setup })
