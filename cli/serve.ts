// Serves a config in a process: the host, its signals, reloads, and uncaught errors. Reloads run one at a time.
import { dirname } from 'node:path'
import { hostOfConfig, reloadHost } from '../core/create-host.ts'
import type { Host, ReloadReport } from '../core/host.ts'
import { describeThrown } from '../core/http/describe-thrown.ts'
import type { Logger, ProcessLog } from '../core/kernel/log.ts'
import { errorText } from '../core/plugin.ts'
import type { StartOptions } from './command.ts'
import { type EnvFiles, readConfig } from './config.ts'
import type { CommandContext, ProcessEvents } from './context.ts'
import type { CliLog } from './log.ts'

export function notifyParent(message: object): Promise<void> {
  return new Promise(resolve => {
    if (process.connected && process.send) process.send(message, () => resolve())
    else resolve()
  })
}

export function nextSignal(events: ProcessEvents, ...signals: NodeJS.Signals[]): Promise<NodeJS.Signals> {
  return new Promise(resolve => {
    for (const signal of signals) events.once(signal, resolve)
  })
}

/** Resolves at the first signal that ends a stdio server; exits at the second one. */
export async function nextInputEnd({ process: events, exit }: Pick<CommandContext, 'process' | 'exit'>): Promise<void> {
  const ENDING = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
  await nextSignal(events, ...ENDING)
  void nextSignal(events, ...ENDING).then(() => exit(1))
}

export interface Served {
  readonly host: Host
  readonly file: string
}

/** Logs the first failed write to stdout and continues; a closed reader is ignored. */
export function surviveStdout(log: Pick<Logger, 'warn'>, { stdout }: Pick<CommandContext, 'stdout'>): void {
  let isReported = false
  stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (isReported || code === 'EPIPE') return
    isReported = true
    log.warn({ code: 'MH3104', problem: message }, 'Cannot write to stdout. Further output is lost.')
  })
}

export type ServeSettings = Omit<NonNullable<Parameters<typeof hostOfConfig>[2]>, 'lock'> &
  Pick<StartOptions, 'frozen' | 'lock'>

export async function serve(
  config: string | undefined,
  log: CliLog,
  context: CommandContext,
  { frozen, lock, ...options }: ServeSettings = {},
): Promise<Served> {
  let host: Host | undefined
  try {
    const loaded = await readConfig({ config }, context)
    const { file } = loaded
    log.directory = dirname(file)
    const frozenTo = frozen && (await import('./lock.ts')).requireLock(file, lock, context)
    host = await hostOfConfig(loaded, log, { ...options, ...frozenTo })
    await host.listen()
    return { host, file }
  } catch (error) {
    log.releaseWarnings()
    await host?.close().catch(() => undefined)
    throw error
  }
}

export interface ReloadSettings {
  readonly host: Host
  readonly config: string | undefined
  readonly env: EnvFiles | undefined
  readonly cwd: string
}

export type Reloaded = { readonly report: ReloadReport } | { readonly error: unknown }

/** Reloads config and environment, and restores the environment if the reload fails. Never rejects. */
export async function reloadConfig({ host, config, env, cwd }: ReloadSettings): Promise<Reloaded> {
  let isRead = false
  try {
    const environment = env?.load() ?? false
    isRead = true
    const file = config === undefined ? {} : { file: config }
    const report = await reloadHost(host, { cwd, environment, ...file })
    if (report.restart.length > 0) env?.undo()
    return { report }
  } catch (error) {
    if (isRead) env?.undo()
    return { error }
  }
}

/** Returns a function that runs the task. Runs do not overlap. Calls before the next run starts share this run. */
export function runOneAtATime(task: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  async function run(before: Promise<void> | undefined) {
    await before
    running = next
    next = undefined
    await task()
    if (!next) running = undefined
  }
  return () => {
    next ??= run(running)
    return next
  }
}

export function logReload(reloaded: Reloaded, log: Logger): void {
  if ('error' in reloaded) {
    const problem = errorText(reloaded.error)
    log.error({ code: 'MH3101', problem }, 'Reload failed. Still serving the previous version.')
    return
  }
  const { restart, taken, told } = reloaded.report
  if (restart.length > 0) {
    log.warn(
      { code: 'MH3102', restart },
      'Not reloaded: these changes require a restart. Still serving the previous version.',
    )
  } else log.info({ code: 'MH3103', taken, told }, taken.length > 0 ? 'Reloaded' : 'Reloaded: no changes')
}

/** An unhandled rejection of a tool must not affect other calls. */
export function surviveRejections(log: Logger, events: ProcessEvents): void {
  events.on('unhandledRejection', err => {
    // Elicitation interrupts the handler with this error; it runs again with the response.
    if (describeThrown(err).type === 'AwaitingInput') return
    log.error({ code: 'MH3105', err }, 'Unhandled promise rejection')
  })
}

/** Logs uncaught errors, such as in a timer of a tool. `crashed` is called once: the process should drain and end. */
export function onCrash(log: ProcessLog, events: ProcessEvents, crashed: (error: unknown) => void): void {
  let first = true
  events.on('uncaughtException', err => {
    if (!first) return log.error({ code: 'MH3106', err }, 'Another uncaught error')
    first = false
    log.fatal(
      { code: 'MH3106', err },
      'Uncaught error in a timer or event of a tool or plugin. The process drains and exits with 1.',
    )
    crashed(err)
  })
}
