// Runs CLI commands in the process of the test, with the interface of run-cli.ts. Signals are emitted, and a terminal
// is a pair of streams with `isTTY`. Modules are loaded once: a test that edits a config needs a new file.
import { EventEmitter } from 'node:events'
import { extname } from 'node:path'
import { PassThrough } from 'node:stream'
import type { CommandEnvironment } from '../../cli/context.ts'
import { type ConfigParts, configWith, type Ended, follow, plainEnvironment, type Running } from './running-command.ts'

export type { ConfigParts, Ended, Running } from './running-command.ts'

/** For configs in other folders: the same modules as the test's own, from source or compiled. */
export const coreUrl = (module: string): string =>
  new URL(`../../core/${module}${extname(import.meta.url)}`, import.meta.url).href
export const CORE = coreUrl('index')
/** The same for `mcp-host/plugin`. */
export const PLUGIN = coreUrl('plugin')

export interface CliOptions extends Pick<CommandEnvironment, 'openBrowser' | 'script'> {
  /** All streams are a terminal of 100 columns. */
  readonly terminal?: boolean
}

const running = new Set<Running>()

/** Imported as configs import the core: under tsx, what a test file imports itself is another instance. */
async function runMain(args: readonly string[], environment: CommandEnvironment): Promise<number> {
  const { main } = await import('../../cli/main.ts')
  return main(args, environment)
}

/** Messages begin with the file that they are about, as seen from the process's folder: here from that of the command. */
const fromFolder = (text: string, folder: string): string =>
  text.replaceAll(
    new RegExp(`^(mcp-host: error \\w+: | {2}and )?${folder}/(?=[^\\s:]+(?::|$))`, 'gm'),
    (_, before = '') => before,
  )

/** Runs `mcp-host ...args` in `cwd`; `env` is put over this process's own. */
export function startCli(
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = {},
  { terminal = false, ...options }: CliOptions = {},
): Running {
  const stream = () => Object.assign(new PassThrough(), terminal && { isTTY: true, columns: 100 })
  const [stdin, stdout, stderr] = [stream(), stream(), stream()]
  const events = new EventEmitter()
  const environment = { stdin, stdout, stderr, env: { ...plainEnvironment(), ...env }, cwd, process: events }
  const code = runMain(args, { ...environment, ...options }).then(async code => {
    stdin.destroy()
    for (const output of [stdout, stderr]) {
      const read = new Promise(resolve => output.once('end', resolve))
      output.end()
      await read
    }
    running.delete(started)
    return code
  })
  const started: Running = {
    child: { stdin, kill: (signal = 'SIGTERM') => events.emit(signal, signal) },
    ...follow({ stdout, stderr }, code, text => fromFolder(text, cwd)),
  }
  running.add(started)
  return started
}

/** Runs `mcp-host ...args` in `cwd` to its end. */
export const runCli = (
  args: readonly string[],
  cwd: string,
  env?: NodeJS.ProcessEnv,
  options?: CliOptions,
): Promise<Ended> => startCli(args, cwd, env, options).ended

/** Ends what a failed test left running: for `after`. */
export async function stopAll(): Promise<void> {
  for (const { child } of running) child.kill('SIGTERM')
  await Promise.all([...running].map(({ ended }) => ended))
}

/** The text of an `mcp.config.mjs`; each part is JavaScript. */
export const configText = (parts: ConfigParts = {}): string => configWith(CORE, parts)
