// `mcp-host check`: everything that `start` does before it listens, and all that is wrong with the config at once.
import { dirname } from 'node:path'
import { hostOf, loadConfig } from '../core/create-host.ts'
import { StartError } from '../core/http/errors.ts'
import { type CheckReport, collectWarnings, describeProblems, warningsText } from './check-report.ts'
import type { CommandContext } from './context.ts'
import { jsonText } from './json-text.ts'
import { openLog } from './log.ts'
import { configLine, routeTable } from './start-page.ts'
import { CONFIG_OPTION, defineVerb, ENV_FILE_OPTION, LOG_OPTIONS, type VerbValues } from './verb.ts'

const OPTIONS = {
  ...CONFIG_OPTION,
  ...ENV_FILE_OPTION,
  ...LOG_OPTIONS,
  workers: {
    type: 'string',
    value: '<n>',
    help: 'as start has it: what so many processes that share a port need is checked, too',
  },
  format: { type: 'string', value: '<format>', help: 'text, or json for editors and CI; default: text' },
} as const

type EnvContext = Pick<CommandContext, 'env' | 'cwd'>
type CheckOptions = Omit<VerbValues<typeof OPTIONS>, 'format'>

/** The other workers, of which none is there: what they carry is said to be there. */
async function unreachable() {
  const { createNeighbours } = await import('./workers/neighbours.ts')
  return createNeighbours({ send: () => false, receive() {} })
}

/** What the checked config is, and what it is with: as `start` would have it. */
async function loadAsStart({ config, 'env-file': files, workers }: CheckOptions, context: EnvContext) {
  if (files !== undefined) (await import('./env-file.ts')).createEnvFiles(() => files, context).load()
  const processes = workers === undefined ? 1 : (await import('./workers/count.ts')).parseCount(workers)
  const others = workers === undefined ? {} : { neighbours: await unreachable() }
  const loaded = await loadConfig({ cwd: context.cwd, ...(config !== undefined && { file: config }) })
  return { loaded, settings: { purpose: 'inspect', processes, ...others } as const }
}

async function checkInText(options: CheckOptions, context: CommandContext): Promise<void> {
  const cliLog = openLog(options, context)
  const { log, warnings } = collectWarnings(context.cwd, cliLog)
  try {
    const { loaded, settings } = await loadAsStart(options, context)
    cliLog.directory = dirname(loaded.file)
    const host = await hostOf(loaded, log, settings)
    const { routes } = host
    await host.close()
    context.print(
      `${configLine(loaded.file, context.cwd)}\n\n${routeTable(routes)}\n\n${warningsText(warnings)}The config is fine.`,
    )
  } catch (error) {
    if (warnings.length > 0) context.stderr.write(`${warningsText(warnings).trimEnd()}\n`)
    throw error
  }
}

/** What is wrong with a config, and what may be: `check --format json` prints it. */
export async function reportOn(
  options: CheckOptions,
  context: EnvContext,
): Promise<CheckReport & { exitCode: 0 | 1 | 2 | 3 }> {
  const { log, warnings } = collectWarnings(context.cwd)
  let file: string | null = null
  try {
    const { loaded, settings } = await loadAsStart(options, context)
    file = loaded.file
    const host = await hostOf(loaded, log, settings)
    await host.close()
    return { ok: true, config: file, problems: [], warnings, exitCode: 0 }
  } catch (error) {
    const exitCode = error instanceof StartError ? error.exitCode : 1
    return { ok: false, config: file, problems: describeProblems(error), warnings, exitCode }
  }
}

async function check(
  { format = 'text', ...options }: VerbValues<typeof OPTIONS>,
  _positionals: readonly string[],
  context: CommandContext,
): Promise<number> {
  if (format === 'text') {
    await checkInText(options, context)
    return 0
  }
  if (format !== 'json') throw new StartError(`--format ${format}: it is one of text, json`, { exitCode: 2 })
  const { exitCode, ...report } = await reportOn(options, context)
  context.print(jsonText(report))
  return exitCode
}

export const checkVerb = defineVerb({
  summary: 'load and check the config, and say all that is wrong with it; serve nothing',
  options: OPTIONS,
  run: check,
})
