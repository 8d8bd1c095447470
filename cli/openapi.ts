// `mcp-host openapi`: shows the tools of an OpenAPI document, their sizes, and omitted operations.
import type { Survey } from '../plugins/openapi/survey.ts'
import { defineCommand } from './command.ts'
import { readSurvey } from './openapi/read-survey.ts'
import { tableLines } from './render.ts'
import { countText, jsonText } from './text.ts'

const sizeText = (bytes: number): string => (bytes < 1_024 ? `${bytes} B` : `${(bytes / 1_024).toFixed(1)} kB`)

function inText(survey: Survey, all: boolean, width: number | undefined): string {
  const { document, version, operations, tools, leftOut, skipped, notes, securitySchemes, blocked } = survey
  const total = tools.reduce((sum, { input, output = 0 }) => sum + input + output, 0)
  const head = `${document}: OpenAPI ${version}, ${countText(operations, 'operation')}, ${countText(tools.length, 'tool')} with ${sizeText(total)} of schemas`
  const rows = tools.map(({ name, operation, input, output, simplified }) => [
    name,
    operation,
    sizeText(input),
    output === undefined ? '' : sizeText(output),
    simplified.length > 0 ? `any value: ${simplified.join(', ')}` : '',
  ])
  const part = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : ['', title, ...lines.map(line => `  ${line}`)]
  const schemes = Object.entries(securitySchemes).map(([name, type]) => `${name} (${type})`)
  const reasons = new Map<string, number>()
  for (const { reason } of skipped) reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
  return [
    head,
    ...(rows.length > 0
      ? ['', ...tableLines(['tool', 'operation', 'input', 'output', 'simplified'], rows, width)]
      : []),
    ...part(
      'Left out because of the document:',
      leftOut.map(({ operation, reason }) => `${operation} ${reason}`.trim()),
    ),
    ...part(
      'Left out by options:',
      all
        ? skipped.map(({ operation, reason }) => `${operation}: ${reason}`)
        : [...reasons].map(([reason, count]) => `${count}: ${reason}`),
    ),
    ...part('Invalid parts of the document:', notes),
    ...part('Security schemes that require `credentials`:', schemes),
    ...part(
      'Blocked servers:',
      blocked.map(({ server, reason }) => `${server}: ${reason}`),
    ),
  ].join('\n')
}

export const openapiCommand = defineCommand({
  summary: 'Show the tools of an OpenAPI document, their sizes, and omitted operations',
  example: "openapi.yaml --methods get,post --include 'GET /orders/*'",
  positionals: ['FILE'],
  options: {
    include: {
      value: '<glob>',
      multiple: true,
      help: 'Operations to show, by operationId, or method and path; repeatable',
    },
    exclude: { value: '<glob>', multiple: true, help: 'Operations to leave out; repeatable' },
    methods: { value: '<list>', help: 'HTTP methods, separated by commas; all for every method [get]' },
    overlay: { value: '<file>', multiple: true, help: 'Overlay to apply; repeatable, applied in order' },
    'base-url': { value: '<url>', help: 'URL of the API [first server of the document]' },
    'max-schema': { value: '<size>', help: "Maximum size of a tool's schema [32kb]" },
    'allow-host': {
      value: '<host>',
      multiple: true,
      help: 'Host to allow at a private address or over plain http; repeatable',
    },
    output: { choices: ['omit', 'pass', 'check'], help: 'Output schemas [omit]' },
    all: { help: 'List each operation that the options leave out' },
    json: { help: 'Print JSON' },
  },
  notes: 'FILE is a JSON or YAML file, or an https URL.',
  async run({ all = false, json = false, ...given }, [document = ''], context) {
    const { 'base-url': baseUrl, 'max-schema': maxSchema, 'allow-host': allowHosts, verbose: _, ...same } = given
    const survey = await readSurvey(document, { ...same, baseUrl, maxSchema, allowHosts }, context.cwd)
    context.print(json ? jsonText(survey) : inText(survey, all, context.stdout.columns || undefined))
  },
})
