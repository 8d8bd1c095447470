// `mcp-host start`: serves until a stop signal, then drains and exits 0. `--workers` starts several processes.

import { isatty } from 'node:tty'
import type { LoadedConfig } from '../core/config/load-config.ts'
import { trackModules } from '../core/config/module-graph.ts'
import type { Host } from '../core/host.ts'
import { isConfiguredPlugin } from '../core/kernel/define-plugin.ts'
import type { Logger } from '../core/kernel/log.ts'
import { isObject } from '../core/plugin.ts'
import { listenOn, readWorkers, type StartOptions } from './command.ts'
import { loadEnvFiles } from './config.ts'
import { createOperatorLink, type OperatorLink } from './console.ts'
import { type CommandContext, usage } from './context.ts'
import { openLog } from './log.ts'
import {
  logReload,
  nextSignal,
  onCrash,
  type ReloadSettings,
  reloadConfig,
  runOneAtATime,
  type ServeSettings,
  serve,
  surviveRejections,
  surviveStdout,
} from './serve.ts'
import { startPage } from './start-page.ts'

/** Sets the role of the plugin `tasks` of a config or route. Returns the same value without this plugin. */
function applyRole<Owner>(owner: Owner, role: string): Owner {
  const plugins = isObject(owner) ? owner['plugins'] : undefined
  const tasks = isObject(plugins) ? plugins['tasks'] : undefined
  if (!isObject(tasks)) return owner
  const changed = isConfiguredPlugin(tasks) ? { ...tasks, options: { ...tasks.options, role } } : { ...tasks, role }
  return { ...owner, plugins: { ...(plugins as object), tasks: changed } }
}

function readRole(role: NonNullable<StartOptions['role']>): (loaded: LoadedConfig) => LoadedConfig {
  return loaded => {
    const { config } = loaded
    if (!isObject(config)) return loaded
    const configured = Object.entries(isObject(config['routes']) ? config['routes'] : {})
    const routes = configured.map(([path, route]) => [path, applyRole(route, role)] as const)
    const changed = applyRole(config, role)
    if (changed === config && routes.every(([, route], index) => route === configured[index]?.[1]))
      throw usage(`--role ${role} requires the plugin "tasks". Add plugins: { tasks: {} }, or omit --role.`)
    return { ...loaded, config: { ...changed, ...(routes.length > 0 && { routes: Object.fromEntries(routes) }) } }
  }
}

const ENDING = ['SIGTERM', 'SIGINT'] as const

const hasTerminal = () => [0, 1, 2].some(isatty)

async function drain(host: Host, why: NodeJS.Signals | 'crash', context: CommandContext) {
  void nextSignal(context.process, ...ENDING).then(() => context.exit(1))
  // After Ctrl-C no other node takes over, so idle connections are closed at once.
  const closing = host.close(why === 'SIGINT' ? { handOver: false } : {})
  context.print(`${why}: draining; a second signal stops immediately`)
  const { finished, cancelled } = await closing
  context.print(`stopped; running requests: ${finished} finished, ${cancelled} cancelled`)
}

/** SIGHUP: a reload request, or the terminal was closed. */
function onHangUp(log: Logger, context: CommandContext, link: OperatorLink) {
  const isTerminal = hasTerminal()
  let isRequested = false
  const hangUp = new Promise<'SIGHUP'>(resolve => {
    context.process.on('SIGHUP', () => {
      isRequested = true
      if (isTerminal && !hasTerminal()) resolve('SIGHUP')
      else void link.reload?.()
    })
  })
  return {
    hangUp: hangUp,
    reloadWith(settings: ReloadSettings): void {
      link.reload = runOneAtATime(async () => {
        const reloaded = await reloadConfig(settings)
        logReload(reloaded, log)
        link.noteReload(reloaded)
      })
      if (isRequested) void link.reload()
    },
  }
}

function settingsOf({ role, frozen = false, lock, ...options }: StartOptions): ServeSettings {
  const listening = listenOn(options)
  const withRoleOf = role === undefined ? undefined : readRole(role)
  return {
    frozen,
    adapt: loaded => listening(withRoleOf?.(loaded) ?? loaded),
    ...(lock !== undefined && { lock }),
  }
}

async function serveSingle(options: StartOptions, context: CommandContext): Promise<number> {
  let listening = false
  const log = openLog(options, context, { delaysWarnings: true })
  surviveStdout(log, context)
  const link = createOperatorLink(context, options.lock)
  const { hangUp, reloadWith } = onHangUp(log, context, link)
  const signalled = Promise.race([nextSignal(context.process, ...ENDING), hangUp]).then(signal => {
    // Before listening there is nothing to drain, and a hanging startup must also end.
    if (!listening) context.exit(1)
    return signal
  })
  const env = loadEnvFiles(options['env-file'], context)
  trackModules()
  const { host, file } = await serve(options.config, log, context, link.connect(settingsOf(options)))
  listening = true
  reloadWith({ host, config: options.config, env, cwd: context.cwd })
  surviveRejections(log, context.process)
  const crashed = new Promise<'crash'>(resolve => onCrash(log, context.process, () => resolve('crash')))
  context.show(startPage(host, file, context, { console: link.createLoginUrl() }))
  log.releaseWarnings()
  const why = await Promise.race([signalled, crashed])
  link.reload = undefined
  await drain(host, why, context)
  await log.flush()
  return why === 'crash' ? 1 : 0
}

export async function start(options: StartOptions, context: CommandContext): Promise<number | undefined> {
  if (options.lock !== undefined && !options.frozen) {
    throw usage('--lock requires --frozen')
  }
  if (options.workers === undefined) return serveSingle(options, context)
  const count = readWorkers(options.workers)
  const { default: cluster } = await import('node:cluster')
  if (!cluster.isWorker) {
    const { supervise } = await import('./workers/supervisor.ts')
    return supervise(count, options, context)
  }
  const { work } = await import('./workers/worker.ts')
  // Not in the primary process, because later workers must read the files again.
  loadEnvFiles(options['env-file'], context)
  return work(count, options, context, settingsOf(options), createOperatorLink(context, options.lock))
}
