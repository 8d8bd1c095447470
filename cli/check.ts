// `mcp-host check`: runs the startup checks without listening, and reports all config problems at once.

import { dirname, resolve } from 'node:path'
import { defined, printable } from '../client/text.ts'
import { ConfigError, codeOf, textOf } from '../core/config/problems.ts'
import { hostOfConfig } from '../core/create-host.ts'
import type { Host } from '../core/host.ts'
import { errorText, StartError } from '../core/http/errors.ts'
import type { Logger } from '../core/kernel/log.ts'
import {
  CONFIG_OPTION,
  type CommandValues,
  defineCommand,
  ENV_FILE_OPTION,
  LOG_OPTIONS,
  readWorkers,
} from './command.ts'
import { readConfig } from './config.ts'
import type { CommandContext } from './context.ts'
import { type CliLog, openLog } from './log.ts'
import { describeWarning, type ReportedProblem } from './render.ts'
import { configLine, routeTable } from './start-page.ts'
import { countText, jsonText } from './text.ts'

function describeProblems(error: unknown): ReportedProblem[] {
  if (!(error instanceof ConfigError)) {
    return [{ severity: 'error', ...(error instanceof StartError && { code: error.code }), message: errorText(error) }]
  }
  return error.problems.map(problem => {
    const { file, line, path } = problem
    const place = defined({ file, line, path })
    const known = { severity: 'error', code: codeOf(problem), ...place, message: textOf(problem) } as const
    if ('text' in problem) return { ...known, ...defined({ also: problem.also }) }
    const { found, expected, suggestion } = problem
    return { ...known, found, expected, ...defined({ suggestion }) }
  })
}

const nothing = () => undefined
const SILENT: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => SILENT }

/** A log that collects warnings and passes other lines to `inner` (default: discards them). */
export function collectWarnings(cwd: string, inner = SILENT): { log: Logger; warnings: ReportedProblem[] } {
  const warnings: ReportedProblem[] = []
  const create = (inner: Logger, bindings: Readonly<Record<string, unknown>>): Logger => {
    const keep = (fields: object, message = '') => {
      const { code, file, line, path, ...rest } = { ...bindings, ...fields } as Record<string, unknown>
      warnings.push({
        severity: 'warning',
        ...(typeof code === 'string' && { code }),
        ...(typeof file === 'string' && { file: resolve(cwd, file) }),
        ...(typeof line === 'number' && { line }),
        ...(typeof path === 'string' && { path }),
        message,
        ...(Object.keys(rest).length > 0 && { details: rest }),
      })
    }
    return {
      debug: inner.debug.bind(inner),
      info: inner.info.bind(inner),
      warn: keep,
      error: keep,
      child: more => create(inner.child(more), { ...bindings, ...more }),
    }
  }
  return { log: create(inner, {}), warnings }
}

function warningText(warning: ReportedProblem): string {
  const { head, facts, fix } = describeWarning(warning)
  const lines = [
    `  ${head}`,
    ...(facts === '' ? [] : [`    ${facts}`]),
    ...(fix === undefined ? [] : [`    fix: ${fix}`]),
  ]
  return lines.map(line => printable(line)).join('\n')
}

/** Reports definitions that the host does not serve, with the reason for the first of each toolset. */
function describeResult(routes: Host['routes']): string {
  const sources = new Map(routes.flatMap(({ sources }) => sources.map(({ toolset, withheld }) => [toolset, withheld])))
  const leftOut = [...sources].flatMap(([toolset, withheld]) => {
    const [reason] = withheld.values()
    return reason === undefined
      ? []
      : `${countText(withheld.size, 'definition')} of "${toolset}" ${withheld.size === 1 ? 'is' : 'are'} left out: ${reason}`
  })
  return printable(leftOut.length === 0 ? 'The config is valid.' : `The config is valid, but ${leftOut.join('; ')}`)
}

const warningsText = (warnings: readonly ReportedProblem[]): string =>
  warnings.length === 0 ? '' : `Warnings\n${warnings.map(warningText).join('\n')}\n\n`

const OPTIONS = {
  ...CONFIG_OPTION,
  ...ENV_FILE_OPTION,
  ...LOG_OPTIONS,
  workers: { value: '<n>', help: 'Also check the requirements of start --workers' },
  format: { choices: ['text', 'json'], help: 'Output format; json for editors and CI [text]' },
} as const

type EnvContext = Pick<CommandContext, 'env' | 'cwd'>
type CheckOptions = Omit<CommandValues<typeof OPTIONS>, 'format'>

/** Builds the host as `start` does. */
async function runChecks({ config, 'env-file': files, workers }: CheckOptions, context: EnvContext, inner?: CliLog) {
  const { log, warnings } = collectWarnings(context.cwd, inner)
  const checked = { warnings, file: '', routes: [] as Host['routes'], error: undefined as unknown }
  try {
    const processes = workers === undefined ? 1 : readWorkers(workers)
    const others = workers === undefined ? {} : { neighbours: await unreachable() }
    const loaded = await readConfig({ config, 'env-file': files }, context)
    checked.file = loaded.file
    if (inner) inner.directory = dirname(loaded.file)
    const host = await hostOfConfig(loaded, log, { purpose: 'inspect', processes, ...others })
    checked.routes = host.routes
    await host.close()
  } catch (error) {
    checked.error = error
  }
  return checked
}

async function unreachable() {
  const { createHubClient } = await import('./workers/hub-client.ts')
  return createHubClient({ send: () => false, receive() {} })
}

export async function reportOn(options: CheckOptions, context: EnvContext) {
  const { file, warnings, error } = await runChecks(options, context)
  const ok = error === undefined
  const exitCode = ok ? 0 : error instanceof StartError ? error.exitCode : 1
  return { ok, config: file || null, problems: ok ? [] : describeProblems(error), warnings, exitCode }
}

export const checkCommand = defineCommand({
  summary: 'Check the config and report all errors, without serving',
  example: '--format json',
  options: OPTIONS,
  async run({ format = 'text', ...options }, _positionals, context) {
    if (format === 'json') {
      const { exitCode, ...report } = await reportOn(options, context)
      context.print(jsonText(report))
      return exitCode
    }
    const { file, routes, warnings, error } = await runChecks(options, context, openLog(options, context))
    if (error === undefined) {
      const head = `${configLine(file, context.cwd)}\n\n${routeTable(routes, context.stdout.columns || undefined)}\n\n`
      context.show(`${head}${warningsText(warnings)}${describeResult(routes)}`)
      return 0
    }
    if (warnings.length > 0) context.stderr.write(`${warningsText(warnings).trimEnd()}\n`)
    throw error
  },
})
