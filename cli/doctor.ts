// `mcp-host doctor`: checks a running server from outside, and a config's dependencies, and suggests fixes.

import { printableLines } from '../client/text.ts'
import { checkServerUrl } from './client/stored-logins.ts'
import { defineCommand, ENV_FILE_OPTION } from './command.ts'
import { readConfig } from './config.ts'
import { type CommandContext, readToken, usage } from './context.ts'
import type { Finding } from './doctor/request.ts'
import { MIN_TEXT, wrapLines } from './render.ts'
import { jsonText } from './text.ts'

const SIGNS = { ok: 'ok   ', note: 'note ', wrong: 'WRONG' } as const

function describe({ check, level, text, fix }: Finding, width: number, lineWidth?: number): string {
  const line = (start: string, rest: string) =>
    start +
    wrapLines(printableLines(rest), lineWidth && Math.max(MIN_TEXT, lineWidth - width - 9)).replaceAll(
      '\n',
      `\n${' '.repeat(width + 9)}`,
    )
  const lines = [line(`${SIGNS[level]}  ${check.padEnd(width)}  `, text)]
  return [...lines, ...(fix === undefined ? [] : [line(' '.repeat(width + 9), `fix: ${fix}`)])].join('\n')
}

const scrubFinding = (finding: Finding, secrets: CommandContext['secrets']): Finding => ({
  ...finding,
  text: secrets.scrub(finding.text),
  ...(finding.fix !== undefined && { fix: secrets.scrub(finding.fix) }),
})

async function examineFile(config: string, files: readonly string[] | undefined, context: CommandContext) {
  const [{ examineConfig }, { collectWarnings }, { reportOn }] = await Promise.all([
    import('../core/create-host.ts'),
    import('./check.ts'),
    import('./doctor/request.ts'),
  ])
  // Warnings are discarded, because `check` reports them.
  const { log } = collectWarnings(context.cwd)
  const findings = await examineConfig(await readConfig({ config, 'env-file': files }, context), log)
  return findings.length > 0 ? findings : [reportOn('config').note('no plugin of this config depends on a service')]
}

export const doctorCommand = defineCommand({
  summary: 'Diagnose a running server as its clients see it, or the services that a config depends on',
  example: 'https://mcp.example/mcp',
  positionals: ['[URL]'],
  options: {
    url: { value: '<url>', help: 'Server URL, instead of the argument' },
    token: { value: '<token>', help: 'Token to send; @file reads a file, - reads stdin' },
    origin: { value: '<origin>', help: 'Origin of a web page that must be able to call the server' },
    config: {
      short: 'c',
      value: '<file>',
      help: 'Check the services that the plugins of this config depend on; no running server needed',
    },
    ...ENV_FILE_OPTION,
    json: { help: 'Print JSON' },
  },
  async run(values, [positional], context) {
    const { url: option, origin, json, config } = values
    const given = positional ?? option
    if (given === undefined && config === undefined) throw usage('doctor needs a URL, or --config with a config file')
    if (positional !== undefined && option !== undefined) throw usage('doctor accepts one URL: omit --url')
    const url = given === undefined ? undefined : checkServerUrl(given)
    const token = await readToken(context, values.token)
    const found = [
      ...(config === undefined ? [] : await examineFile(config, values['env-file'], context)),
      ...(url === undefined ? [] : await (await import('./doctor/examine.ts')).examine(url, { token, origin })),
    ]
    const findings = found.map(finding => scrubFinding(finding, context.secrets))
    const healthy = findings.every(({ level }) => level !== 'wrong')
    const width = Math.max(...findings.map(({ check }) => check.length))
    context.show(
      json
        ? jsonText({ config, url, healthy, findings })
        : findings.map(one => describe(one, width, context.stdout.columns || undefined)).join('\n'),
    )
    return healthy ? 0 : 1
  },
})
