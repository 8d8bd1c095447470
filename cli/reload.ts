// Reloads the config of a running host. Reloads run one at a time; requests during a reload are merged.
import { reloadHost } from '../core/create-host.ts'
import type { Host, ReloadReport } from '../core/host.ts'
import type { Logger } from '../core/kernel/log.ts'
import { errorText } from '../core/plugin.ts'
import type { EnvFiles } from './config.ts'

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
export function oneAtATime(task: () => Promise<void>): () => Promise<void> {
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
