// Loads a config and environment files. Messages never quote a line of such a file, which can be a secret.
import { dirname, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { type LoadedConfig, loadConfig } from '../core/config/load-config.ts'
import { hostOfConfig } from '../core/create-host.ts'
import type { Host } from '../core/host.ts'
import type { LockSettings } from '../core/kernel/kernel-host.ts'
import type { LogValues } from './command.ts'
import { type CommandContext, readText, usage } from './context.ts'
import { openLog } from './log.ts'

const NAMED = /^\s*(?:export\s+)?[A-Za-z_][\w.-]*\s*=\s*(.*)$/

const stop = (file: string, line: number, why: string) => usage(`${file}:${line}: ${why}`)

/** Refuses lines that `parseEnv` would ignore. */
function checkLines(file: string, text: string): void {
  const lines = text.split(/\r?\n/)
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? ''
    if (/^\s*(#|$)/.test(line)) continue
    const value = NAMED.exec(line)?.[1]
    if (value === undefined) throw stop(file, index + 1, 'not a variable; a line is NAME=value, or begins with #')
    const [quote = ''] = /^["'`]/.exec(value) ?? []
    if (quote === '' || value.indexOf(quote, 1) !== -1) continue
    const end = lines.findIndex((later, at) => at > index && later.includes(quote))
    if (end === -1) throw stop(file, index + 1, `the quote ${quote} that opens the value is never closed`)
    index = end
  }
}

function readEnvFile(file: string): Record<string, string> {
  const text = readText(file, `--env-file: ${file}`)
  checkLines(file, text)
  return parseEnv(text) as Record<string, string>
}

export type EnvFiles = ReturnType<typeof createEnvFiles>

export function createEnvFiles(files: () => readonly string[], { env, cwd }: Pick<CommandContext, 'env' | 'cwd'>) {
  const own = new Set(Object.keys(env))
  let loaded: Record<string, string> = {}
  let before = loaded
  let isChanged = false
  let isUndone = false

  function become(wanted: Record<string, string>): string[] {
    const names = [...new Set([...Object.keys(loaded), ...Object.keys(wanted)])]
    const changed = names.filter(name => loaded[name] !== wanted[name])
    for (const name of changed) {
      const value = wanted[name]
      if (value === undefined) delete env[name]
      else env[name] = value
    }
    loaded = wanted
    return changed
  }

  return {
    /**
     * Sets the variables and removes those of the previous load; later files win. Returns whether anything changed. Throws a
     * StartError with file and line, and changes nothing.
     */
    load(): boolean {
      const read: Record<string, string> = Object.assign({}, ...files().map(file => readEnvFile(resolve(cwd, file))))
      const wanted = Object.fromEntries(Object.entries(read).filter(([name]) => !own.has(name)))
      before = loaded
      // Modules may have read the reverted variables, so they are loaded again even if the files are unchanged.
      isChanged = become(wanted).length > 0 || isUndone
      isUndone = false
      return isChanged
    },
    undo(): void {
      become(before)
      isUndone = isChanged
    },
  }
}

export function loadEnvFiles(
  files: readonly string[] | undefined,
  context: Pick<CommandContext, 'env' | 'cwd'>,
): EnvFiles | undefined {
  if (files === undefined) return undefined
  const env = createEnvFiles(() => files, context)
  env.load()
  return env
}

interface ConfigValues {
  readonly config?: string | undefined
  readonly 'env-file'?: readonly string[] | undefined
}

export async function readConfig(
  { config, 'env-file': files }: ConfigValues,
  context: Pick<CommandContext, 'env' | 'cwd'>,
): Promise<LoadedConfig> {
  loadEnvFiles(files, context)
  return loadConfig({ cwd: context.cwd, file: config })
}

/** Calls `act` with a host that is not started: no port, Redis connection or plugin file is opened. */
export async function inspectConfig<Result>(
  values: ConfigValues & LogValues,
  context: CommandContext,
  act: (host: Host, loaded: LoadedConfig) => Promise<Result>,
  lockOf?: (file: string) => LockSettings,
): Promise<Result> {
  const loaded = await readConfig(values, context)
  const log = openLog(values, context, { delaysWarnings: true })
  log.directory = dirname(loaded.file)
  let host: Host | undefined
  try {
    host = await hostOfConfig(loaded, log, { purpose: 'inspect', ...(lockOf && { lock: lockOf(loaded.file) }) })
    return await act(host, loaded)
  } finally {
    await host?.close({ grace: 0 })
    log.releaseWarnings()
  }
}
