// `mcp-host check`: everything that `start` does before it listens, and all that is wrong with the config at once.
import { createLogger, hostOf, type Logger, loadConfig } from '../core/create-host.ts'
import { StartError } from '../core/http/errors.ts'
import { type CheckReport, collectWarnings, describeProblems } from './check-report.ts'
import { routeTable } from './start-page.ts'
import { CONFIG_OPTION, defineVerb, type VerbValues } from './verb.ts'

const OPTIONS = {
  ...CONFIG_OPTION,
  format: { type: 'string', value: '<format>', help: 'text, or json for editors and CI; default: text' },
} as const

const placeOf = (config: string | undefined, cwd: string) => ({ cwd, ...(config !== undefined && { file: config }) })

async function checkInText(config: string | undefined, log: Logger): Promise<void> {
  const host = await hostOf(await loadConfig(placeOf(config, process.cwd())), log)
  console.log(`${routeTable(host.routes)}\n\nThe config is fine.`)
  await host.close()
}

/** What is wrong with a config, and what may be: `check --format json` prints it. */
export async function reportOn(
  config: string | undefined,
  cwd: string,
): Promise<CheckReport & { exitCode: 0 | 1 | 2 }> {
  const { log, warnings } = collectWarnings(cwd)
  let file: string | null = null
  try {
    const loaded = await loadConfig(placeOf(config, cwd))
    file = loaded.file
    const host = await hostOf(loaded, log)
    await host.close()
    return { ok: true, config: file, problems: [], warnings, exitCode: 0 }
  } catch (error) {
    const exitCode = error instanceof StartError ? error.exitCode : 1
    return { ok: false, config: file, problems: describeProblems(error), warnings, exitCode }
  }
}

async function check({ config, format = 'text', verbose = false }: VerbValues<typeof OPTIONS>): Promise<void> {
  if (format === 'text') return checkInText(config, createLogger({ verbose }))
  if (format !== 'json') throw new StartError(`--format ${format}: it is one of text, json`, { exitCode: 2 })
  const { exitCode, ...report } = await reportOn(config, process.cwd())
  // What a plugin opened before it failed must not keep the process.
  process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`, () => process.exit(exitCode))
}

export const checkVerb = defineVerb({
  summary: 'load and check the config, and say all that is wrong with it; serve nothing',
  options: OPTIONS,
  run: check,
})
