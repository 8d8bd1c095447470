// `mcp-host start`: serves until a stop signal, then drains and exits 0. `--workers` starts several processes.

import { isatty } from 'node:tty'
import type { LoadedConfig } from '../core/config/load-config.ts'
import { trackModules } from '../core/config/module-graph.ts'
import type { Host } from '../core/host.ts'
import { isConfiguredPlugin } from '../core/kernel/define-plugin.ts'
import type { Logger } from '../core/kernel/log.ts'
import { isObject } from '../core/plugin.ts'
import type { StartOptions } from './command.ts'
import { loadEnvFiles } from './config.ts'
import { createOperatorLink, type OperatorLink } from './console.ts'
import { type CommandContext, usage } from './context.ts'
import { listenOn } from './listen-options.ts'
import { openLog } from './log.ts'
import type { ReloadSettings } from './reload.ts'
import { nextSignal, onCrash, type ServeSettings, serve, surviveRejections, surviveStdout } from './serve.ts'
import { startPage } from './start-page.ts'
import { parseCount } from './workers/count.ts'

const isOn = (owner: unknown) => isObject(owner) && isObject(owner['plugins']) && isObject(owner['plugins']['tasks'])

function withRole<Owner>(owner: Owner, role: string): Owner {
  if (!isObject(owner) || !isObject(owner['plugins']) || !isObject(owner['plugins']['tasks'])) return owner
  const { plugins } = owner
  const { tasks } = owner['plugins']
  const changed = isConfiguredPlugin(tasks) ? { ...tasks, options: { ...tasks.options, role } } : { ...tasks, role }
  return { ...owner, plugins: { ...plugins, tasks: changed } }
}

function roleOf(role: NonNullable<StartOptions['role']>): (loaded: LoadedConfig) => LoadedConfig {
  return loaded => {
    const { config } = loaded
    if (!isObject(config)) return loaded
    const routes = Object.entries(isObject(config['routes']) ? config['routes'] : {})
    if (![config, ...routes.map(([, route]) => route)].some(isOn))
      throw usage(`--role ${role} requires the plugin "tasks". Add plugins: { tasks: {} }, or omit --role.`)
    const changed = Object.fromEntries(routes.map(([path, route]) => [path, withRole(route, role)]))
    return { ...loaded, config: { ...withRole(config, role), ...(routes.length > 0 && { routes: changed }) } }
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

/** Delay before modules are preloaded, milliseconds, so that startup finishes first. */
const AHEAD_AFTER = 200

const FILES_GONE = 'Restart the host if node_modules was changed.'

/** SIGHUP: a reload request, or the terminal was closed. */
function onHangUp(
  log: Logger,
  context: CommandContext,
  link: OperatorLink,
): {
  reloadWith(settings: ReloadSettings | undefined): void
  readonly gone: Promise<'SIGHUP'>
} {
  const atTerminal = hasTerminal()
  let settings: ReloadSettings | undefined
  let asked = false
  let ask: Promise<() => Promise<void>> | undefined
  const gone = new Promise<'SIGHUP'>(resolve => {
    context.process.on('SIGHUP', () => {
      asked = true
      if (atTerminal && !hasTerminal()) resolve('SIGHUP')
      else if (settings) void reload(settings)
    })
  })
  function load(settings: ReloadSettings): Promise<() => Promise<void>> {
    ask ??= import('./reload.ts')
      .then(({ logReload, oneAtATime, reloadConfig }) =>
        oneAtATime(async () => {
          const reloaded = await reloadConfig(settings)
          logReload(reloaded, log)
          link.noteReload(reloaded)
        }),
      )
      .catch(error => {
        ask = undefined
        throw error
      })
    return ask
  }
  const failed = (error: unknown) => {
    log.error({ code: 'MH3101', err: error, fix: FILES_GONE }, 'Reload failed: cannot read a file of mcp-host')
    link.noteReload({ error })
  }
  const reload = (settings: ReloadSettings) => load(settings).then(reloadNow => reloadNow(), failed)
  return {
    gone,
    reloadWith(served) {
      settings = served
      link.reload = served && (() => reload(served))
      if (asked && served) void reload(served)
      // Preloads the module, because its files or file descriptors can be unavailable later.
      else if (served) setTimeout(() => void load(served).catch(() => undefined), AHEAD_AFTER).unref()
    },
  }
}

function settingsOf({ role, frozen = false, lock, ...options }: StartOptions): ServeSettings {
  const listening = listenOn(options)
  const withRoleOf = role === undefined ? undefined : roleOf(role)
  return {
    frozen,
    adapt: loaded => listening(withRoleOf?.(loaded) ?? loaded),
    ...(lock !== undefined && { lock }),
  }
}

async function serveAlone(options: StartOptions, context: CommandContext): Promise<number> {
  let listening = false
  const log = openLog(options, context, { delaysWarnings: true })
  surviveStdout(log, context)
  const link = createOperatorLink(context, options.lock)
  const { gone, reloadWith } = onHangUp(log, context, link)
  const signalled = Promise.race([nextSignal(context.process, ...ENDING), gone]).then(signal => {
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
  reloadWith(undefined)
  await drain(host, why, context)
  await log.flush()
  return why === 'crash' ? 1 : 0
}

export async function start(options: StartOptions, context: CommandContext): Promise<number | undefined> {
  if (options.lock !== undefined && !options.frozen) {
    throw usage('--lock requires --frozen')
  }
  if (options.workers === undefined) return serveAlone(options, context)
  const count = parseCount(options.workers)
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
