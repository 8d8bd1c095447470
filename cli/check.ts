// `mcp-host check`: everything that `start` does before it listens.
import { dirname } from 'node:path'
import { printable } from '../client/printable.ts'
import { hostOf, type Logger, loadConfig } from '../core/create-host.ts'
import { errorText } from '../core/http/errors.ts'
import { openLog } from './log.ts'
import { configLine, routeTable } from './start-page.ts'
import { CONFIG_OPTION, defineVerb, LOG_OPTIONS, type VerbValues } from './verb.ts'

const OPTIONS = { ...CONFIG_OPTION, ...LOG_OPTIONS }

/** A line of the log that is part of the answer. */
export interface Warning {
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** A log whose warnings are kept; the rest goes on. */
export function keepWarnings(log: Logger): { log: Logger; warnings: readonly Warning[] } {
  const warnings: Warning[] = []
  const keeping = (inner: Logger, bindings: object): Logger => {
    const keep = (fields: object, message = '') => void warnings.push({ message, fields: { ...bindings, ...fields } })
    return {
      debug: inner.debug.bind(inner),
      info: inner.info.bind(inner),
      warn: keep,
      error: keep,
      child: more => keeping(inner.child(more), { ...bindings, ...more }),
    }
  }
  return { log: keeping(log, {}), warnings }
}

function valueText(value: unknown): string {
  if (typeof value === 'string') return value
  return value instanceof Error ? errorText(value) : (JSON.stringify(value) ?? String(value))
}

/** The message, what it is about, and how to mend it. */
function warningText({ message, fields: { plugin, fix, ...about } }: Warning): string {
  const facts = Object.entries(about).map(([name, value]) => `${name} ${valueText(value)}`)
  const whose = plugin === undefined ? '' : `plugins.${plugin}: `
  const lines = [
    `  ${whose}${message}`,
    ...(facts.length > 0 ? [`    ${facts.join(', ')}`] : []),
    ...(fix === undefined ? [] : [`    fix: ${valueText(fix)}`]),
  ]
  return lines.map(line => printable(line)).join('\n')
}

export const warningsText = (warnings: readonly Warning[]): string =>
  warnings.length === 0 ? '' : `Warnings\n${warnings.map(warningText).join('\n')}\n\n`

async function check(values: VerbValues<typeof OPTIONS>): Promise<void> {
  const cliLog = openLog(values)
  const { log, warnings } = keepWarnings(cliLog)
  const { config } = values
  const loaded = await loadConfig({ cwd: process.cwd(), ...(config !== undefined && { file: config }) })
  cliLog.directory = dirname(loaded.file)
  const host = await hostOf(loaded, log)
  const { routes } = host
  await host.close()
  console.log(`${configLine(loaded.file)}\n\n${routeTable(routes)}\n\n${warningsText(warnings)}The config is fine.`)
}

export const checkVerb = defineVerb({
  summary: 'load and check the config; serve nothing',
  options: OPTIONS,
  run: check,
})
