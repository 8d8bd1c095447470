// The serving process of `mcp-host dev`: reloads edits and reports to the terminal process.
import { printable } from '../../client/text.ts'
import type { LoadedConfig } from '../../core/config/load-config.ts'
import { projectFiles, trackModules } from '../../core/config/module-graph.ts'
import type { CreateHostOptions, Host, ReloadReport } from '../../core/host.ts'
import { errorText } from '../../core/http/errors.ts'
import type { RouteSummary } from '../../core/mcp/routes/route-summary.ts'
import {
  type CONFIG_OPTION,
  type CommandValues,
  type ENV_FILE_OPTION,
  type LISTEN_OPTIONS,
  type LOG_OPTIONS,
  listenOn,
} from '../command.ts'
import type { EnvFiles } from '../config.ts'
import { createOperatorLink, withConsole } from '../console.ts'
import { type CommandContext, failureText } from '../context.ts'
import { type CliLog, openLog } from '../log.ts'
import { withFrames } from '../render.ts'
import {
  notifyParent,
  onCrash,
  type Reloaded,
  reloadConfig,
  runOneAtATime,
  type Served,
  type ServeSettings,
  serve,
  surviveRejections,
  surviveStdout,
} from '../serve.ts'
import { startPage } from '../start-page.ts'
import { countText } from '../text.ts'
import { type DevReport, isDevOrder } from './messages.ts'

export type DevOptions = CommandValues<
  typeof CONFIG_OPTION & typeof LISTEN_OPTIONS & typeof ENV_FILE_OPTION & typeof LOG_OPTIONS
>

type Observer = NonNullable<CreateHostOptions['observe']>

const KEYS = 'r restart   o open   q quit   ? help'
const MAX_TEXT = 48
const MAX_LINES = 20

const visible = (text: string) => printable(text, MAX_TEXT)

function readName(params: Readonly<Record<string, unknown>>): string {
  const name = params['name'] ?? params['uri']
  return typeof name === 'string' ? ` ${visible(name)}` : ''
}

const OUTCOMES = {
  ok: 'ok',
  input_required: 'asked the client',
  tool_error: 'tool error',
  error: 'refused',
  refused: 'refused',
  cancelled: 'cancelled',
} as const

function formatCall(record: Parameters<Observer>[0], now = new Date()): string {
  const { call, route = '', outcome, error, milliseconds } = record
  const time = now.toTimeString().slice(0, 8)
  const caller = call?.user ? visible(call.user.subject) : 'anonymous'
  const what = call ? `${visible(call.method)}${readName(call.params)}` : route
  const reason = error ? `: ${error.kind}` : ''
  const duration = milliseconds < 10 ? milliseconds.toFixed(1) : milliseconds.toFixed(0)
  return `${time}  ${caller}  ${what}  ${duration} ms  ${OUTCOMES[outcome]}${reason}`
}

function createCallLines(print: (line: string) => void): Observer {
  let lines = 0
  let left = 0
  function nextSecond() {
    if (left > 0) print(`          and ${countText(left, 'more call')}`)
    lines = left = 0
  }
  return record => {
    const { call, route, outcome } = record
    // Omits notifications, pings, and other HTTP requests except those that a route refused.
    if (call ? call.id === undefined || call.method === 'ping' : outcome !== 'refused' || route === undefined) return
    if (lines++ === 0) setTimeout(nextSecond, 1_000).unref()
    if (lines > MAX_LINES) left++
    else print(formatCall(record))
  }
}

const notify = (message: DevReport) => notifyParent(message)

const notifyFiles = () => notify({ mcpHostDev: 'files', files: projectFiles() })

const pageOf = (routes: readonly RouteSummary[]): string | undefined =>
  (routes.find(({ path, open }) => !path.includes(':') && open) ?? routes[0])?.url

function describe({ restart, taken, told }: ReloadReport, how: string): string {
  if (restart.length > 0)
    return `Restart required for: ${restart.join(', ')} (${how}). Still serving the previous version.`
  if (taken.length === 0) return 'Reloaded: no changes'
  return `Reloaded: ${taken.join(', ')}${told === 0 ? '' : `; notified ${countText(told, 'client')}`}`
}

function outcomeText(reloaded: Reloaded, hasKeys: boolean, { stdout }: CommandContext): string {
  if ('report' in reloaded) return describe(reloaded.report, hasKeys ? 'press r' : 'stop and start it again')
  const { error } = reloaded
  return `${failureText(error, withFrames(error, errorText(error), stdout))}\nStill serving the previous version.`
}

const MAX_PORTS = 10

/** Serves on the next free port if the port is in use, unless `http.publicUrl` fixes the URL. */
async function serveOnFreePort(
  options: DevOptions,
  log: CliLog,
  context: CommandContext,
  connect: (settings: ServeSettings) => ServeSettings,
): Promise<Served> {
  let port: string | undefined
  let hasPublicUrl = false
  const adapt = (read: LoadedConfig) => {
    const loaded = listenOn({ ...options, ...(port !== undefined && { port }) })(read)
    const { http } = loaded.config as { readonly http?: { readonly publicUrl?: string } }
    hasPublicUrl = http?.publicUrl !== undefined
    return withConsole(loaded)
  }
  for (let left = MAX_PORTS; ; left--) {
    try {
      return await serve(options.config, log, context, connect({ observe: createCallLines(context.show), adapt }))
    } catch (error) {
      const { code, port: used } = ((error as Error).cause ?? {}) as { readonly code?: string; readonly port?: number }
      if (code !== 'EADDRINUSE' || !used || used > 65_534 || left === 0 || hasPublicUrl) throw error
      port = String(used + 1)
      context.show(`Port ${used} is in use. Trying port ${port}.`)
    }
  }
}

async function stop(host: Host | undefined, say: (text: string) => void) {
  // Nothing to drain before serving, and a hanging start must also end.
  if (!host) process.exit(0)
  const { cancelled } = await host.close({ grace: 2_000, handOver: false })
  if (cancelled > 0) say(`${cancelled} running ${cancelled === 1 ? 'request was' : 'requests were'} cancelled`)
}

/** Serves until the parent sends `stop`. `hasKeys`: the parent reads keys. Rejects with a StartError for an invalid config. */
export async function serveForDevelopment(
  options: DevOptions,
  context: CommandContext,
  env: EnvFiles,
  hasKeys: boolean,
): Promise<void> {
  process.env['NODE_ENV'] ??= 'development'
  const log = openLog(options, context, { delaysWarnings: true })
  const say = context.show
  surviveStdout(log, context)
  let host: Host | undefined
  let served: Served
  let open: (() => Promise<void>) | undefined
  const link = createOperatorLink(context)
  const changes: (string | undefined)[] = []
  const crash = new Promise<void>(resolve => onCrash(log, context.process, () => resolve()))
  const stopped = new Promise<void>(resolve => {
    process.on('message', message => {
      if (!isDevOrder(message)) return
      if (message.mcpHostDev === 'stop') resolve()
      else if (message.mcpHostDev === 'open') void open?.()
      else {
        changes.push(message.change)
        void link.reload?.()
      }
    })
    process.once('disconnect', resolve)
    process.on('SIGTERM', resolve)
  })
  // The terminal sends these to both processes; the parent handles them.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
  void stopped.then(() => !host && process.exit(0))

  trackModules({ always: true })
  try {
    env.load()
    served = await serveOnFreePort(options, log, context, link.connect)
    host = served.host
  } finally {
    await notifyFiles()
  }
  const settings = { host: served.host, config: options.config, env, cwd: context.cwd }
  link.reload = runOneAtATime(async () => {
    const changed = changes.splice(0)
    const reloaded = await reloadConfig(settings)
    link.noteReload(reloaded)
    const isQuiet = 'report' in reloaded && reloaded.report.taken.length + reloaded.report.restart.length === 0
    const isOfNewFiles = changed.every(line => line !== undefined)
    if (!isQuiet || !isOfNewFiles) say([...changed, outcomeText(reloaded, hasKeys, context)].filter(Boolean).join('\n'))
    await notifyFiles()
  })
  surviveRejections(log, context.process)
  const keys = hasKeys ? KEYS : undefined
  say(startPage(served.host, served.file, context, { keys, console: link.createLoginUrl() }))
  log.releaseWarnings()
  const page = pageOf(served.host.routes) ?? served.host.url
  open = () => notify({ mcpHostDev: 'open', page: link.createLoginUrl() ?? page })
  await notify({ mcpHostDev: 'serving', page })
  const code = await Promise.race([stopped.then(() => 0), crash.then(() => 1)])
  await stop(host, say)
  await log.flush()
  process.exit(code)
}
