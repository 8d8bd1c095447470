// `mcp-host list`: lists tools, resources and prompts of any MCP server.
import { isObject, printable } from '../../client/text.ts'
import { type CommandValues, defineCommand } from '../command.ts'
import { formatColumns } from '../render.ts'
import { jsonText } from '../text.ts'
import { type ListedResource, type ListedTool, readList } from './responses.ts'
import { SERVER_OPTIONS, type ServerWork, TIMEOUT_OPTION, withServer } from './with-server.ts'

const OPTIONS = {
  ...SERVER_OPTIONS,
  ...TIMEOUT_OPTION,
  tools: { help: 'List tools only' },
  resources: { help: 'List resources and resource templates only' },
  prompts: { help: 'List prompts only' },
  json: { help: 'Print complete definitions as JSON' },
} as const

async function readCatalog(work: ServerWork, values: CommandValues<typeof OPTIONS>) {
  const { server } = work
  const all = !values.tools && !values.resources && !values.prompts
  /** Undefined: not wanted. */
  const read = async <Method extends Parameters<typeof readList>[1]>(
    kind: 'tools' | 'resources' | 'prompts',
    method: Method,
  ) => {
    if (!all && !values[kind]) return undefined
    return server.capabilities[kind] === undefined ? [] : readList(server, method, work)
  }
  const { name, version } = server.server
  return {
    server: name === undefined ? null : { name, version: version ?? '' },
    protocolVersion: server.revision,
    tools: await read('tools', 'tools/list'),
    resources: await read('resources', 'resources/list'),
    resourceTemplates: await read('resources', 'resources/templates/list'),
    prompts: await read('prompts', 'prompts/list'),
  }
}

const MAX_TEXT = 1_000

const firstLine = (text: string | undefined) => text?.trim().split('\n', 1)[0] ?? ''

function typeName(schema: unknown): string {
  if (!isObject(schema)) return 'any'
  const { type, enum: values } = schema
  if (Array.isArray(values)) return values.map(value => JSON.stringify(value)).join('|')
  return Array.isArray(type) ? type.join('|') : typeof type === 'string' ? type : 'any'
}

function signature({ name, inputSchema }: ListedTool): string {
  const { properties = {}, required = [] } = inputSchema
  const parts = Object.entries(properties).map(([argument, schema]) => {
    const part = `${argument}:${typeName(schema)}`
    return required.includes(argument) ? part : `[${part}]`
  })
  return [name, ...parts].join(' ')
}

function section(title: string, rows: ReadonlyArray<readonly [string, string]> | undefined, width?: number): string[] {
  if (rows === undefined) return []
  const cells = rows.map(([name, text]) => [printable(name, MAX_TEXT), printable(text, MAX_TEXT)] as const)
  return [rows.length === 0 ? `${title}: none` : `${title}\n${formatColumns(cells, width)}`]
}

function describe(catalog: Awaited<ReturnType<typeof readCatalog>>, width?: number): string {
  const { server, protocolVersion, tools, resources, resourceTemplates, prompts } = catalog
  const serverLine = server === null ? 'a server without a name' : `${server.name} ${server.version}`
  const details = ({ description, title, name }: ListedResource) => firstLine(description ?? title ?? name)
  const uris = resources?.map(one => [one.uri, details(one)] as const)
  const templates = resourceTemplates?.map(one => [one.uriTemplate, details(one)] as const)
  return [
    printable(`${serverLine.trim()}, MCP ${protocolVersion}`, MAX_TEXT),
    ...section(
      'Tools',
      tools?.map(tool => [signature(tool), firstLine(tool.description ?? tool.title)]),
      width,
    ),
    ...section('Resources', uris && [...uris, ...(templates ?? [])], width),
    ...section(
      'Prompts',
      prompts?.map(({ name, arguments: parts = [], description, title }) => [
        [name, ...parts.map(part => (part.required ? part.name : `[${part.name}]`))].join(' '),
        firstLine(description ?? title),
      ]),
      width,
    ),
  ].join('\n\n')
}

export const listCommand = defineCommand({
  summary: 'List the tools, resources and prompts of an MCP server',
  example: 'https://mcp.example/mcp --tools',
  positionals: ['URL'],
  options: OPTIONS,
  async run(values, [url = ''], context) {
    const catalog = await withServer(context, url, values, work => readCatalog(work, values))
    context.print(values.json ? jsonText(catalog) : describe(catalog, context.stdout.columns))
  },
})
