// The surface of a config that is not served: its host is built as `check` builds it. No port, no Redis, no file of a plugin.
import { hostOf, loadConfig } from '../../core/create-host.ts'
import type { CommandContext } from '../context.ts'
import { openLog } from '../log.ts'
import type { VerbValues } from '../verb.ts'
import { CONFIG_OPTION, ENV_FILE_OPTION } from '../verb.ts'
import { readSurface } from './read-surface.ts'
import type { Surface } from './surface.ts'

export const SURFACE_OPTIONS = { ...CONFIG_OPTION, ...ENV_FILE_OPTION } as const

interface SurfaceOfConfig {
  /** The config. */
  readonly file: string
  readonly surface: Surface
}

/** Throws a ConfigError where the config could not be served. */
export async function surfaceOfConfig(
  context: CommandContext,
  { config, 'env-file': files, verbose = false }: VerbValues<typeof SURFACE_OPTIONS>,
): Promise<SurfaceOfConfig> {
  if (files !== undefined) (await import('../env-file.ts')).createEnvFiles(() => files, context).load()
  const loaded = await loadConfig({ cwd: context.cwd, ...(config !== undefined && { file: config }) })
  const host = await hostOf(loaded, openLog({ verbose }, context), { purpose: 'inspect' })
  try {
    return { file: loaded.file, surface: readSurface(host.served) }
  } finally {
    await host.close({ grace: 0 })
  }
}

/** What is told beside a lock of what it cannot hold; empty: nothing. */
export const notLocked = ({ atRunTime }: Pick<Surface, 'atRunTime'>): string =>
  atRunTime.length === 0
    ? ''
    : `Not locked: ${atRunTime.join(', ')} decides at run time what each caller is offered beside this, or in its place.`
