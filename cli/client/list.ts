// `mcp-host list`: lists tools, resources and prompts of any MCP server.
import type { Client, Prompt, Resource, ResourceTemplateType, Tool } from '@modelcontextprotocol/client'
import { isObject, printable } from '../../client/text.ts'
import type { CommandContext } from '../context.ts'
import { columns, jsonText } from '../text.ts'
import { defineVerb, type VerbValues } from '../verb.ts'
import { NO_TIMEOUT } from './connect.ts'
import { SERVER_OPTIONS, TIMEOUT_OPTION, withServer } from './with-server.ts'

const OPTIONS = {
  ...SERVER_OPTIONS,
  ...TIMEOUT_OPTION,
  tools: { type: 'boolean', help: 'List tools only' },
  resources: { type: 'boolean', help: 'List resources and resource templates only' },
  prompts: { type: 'boolean', help: 'List prompts only' },
  json: { type: 'boolean', help: 'Print complete definitions as JSON' },
} as const

type ListValues = VerbValues<typeof OPTIONS>

interface Offer {
  readonly server: { readonly name: string; readonly version: string } | null
  readonly protocolVersion: string | null
  readonly tools?: readonly Tool[]
  readonly resources?: readonly Resource[]
  readonly resourceTemplates?: readonly ResourceTemplateType[]
  readonly prompts?: readonly Prompt[]
}

async function readOffer(client: Client, values: ListValues, signal: AbortSignal): Promise<Offer> {
  const capabilities = client.getServerCapabilities() ?? {}
  const everything = !values.tools && !values.resources && !values.prompts
  const wants = (kind: 'tools' | 'resources' | 'prompts') => everything || values[kind] === true
  const has = (kind: 'tools' | 'resources' | 'prompts') => wants(kind) && capabilities[kind] !== undefined
  const { name, version } = client.getServerVersion() ?? {}
  const about = { signal, timeout: NO_TIMEOUT }
  return {
    server: name === undefined ? null : { name, version: version ?? '' },
    protocolVersion: client.getNegotiatedProtocolVersion() ?? null,
    ...(wants('tools') && { tools: has('tools') ? (await client.listTools({}, about)).tools : [] }),
    ...(wants('resources') && {
      resources: has('resources') ? (await client.listResources({}, about)).resources : [],
      resourceTemplates: has('resources') ? (await client.listResourceTemplates({}, about)).resourceTemplates : [],
    }),
    ...(wants('prompts') && { prompts: has('prompts') ? (await client.listPrompts({}, about)).prompts : [] }),
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

function signature({ name, inputSchema }: Tool): string {
  const { properties = {}, required = [] } = inputSchema
  const words = Object.entries(properties).map(([argument, schema]) => {
    const word = `${argument}:${typeName(schema)}`
    return required.includes(argument) ? word : `[${word}]`
  })
  return [name, ...words].join(' ')
}

function section(title: string, rows: ReadonlyArray<readonly [string, string]> | undefined): string[] {
  if (rows === undefined) return []
  const cells = rows.map(([name, text]) => [printable(name, MAX_TEXT), printable(text, MAX_TEXT)] as const)
  return [rows.length === 0 ? `${title}: none` : `${title}\n${columns(cells)}`]
}

function describe({ server, protocolVersion, tools, resources, resourceTemplates, prompts }: Offer): string {
  const who = server === null ? 'a server that does not say its name' : `${server.name} ${server.version}`
  const uris = resources?.map(
    ({ uri, title, name, description }) => [uri, firstLine(description ?? title ?? name)] as const,
  )
  const templates = resourceTemplates?.map(
    ({ uriTemplate, title, name, description }) => [uriTemplate, firstLine(description ?? title ?? name)] as const,
  )
  return [
    printable(`${who.trim()}, MCP ${protocolVersion}`, MAX_TEXT),
    ...section(
      'Tools',
      tools?.map(tool => [signature(tool), firstLine(tool.description ?? tool.title)]),
    ),
    ...section('Resources', uris && [...uris, ...(templates ?? [])]),
    ...section(
      'Prompts',
      prompts?.map(({ name, arguments: words = [], description, title }) => [
        [name, ...words.map(word => (word.required ? word.name : `[${word.name}]`))].join(' '),
        firstLine(description ?? title),
      ]),
    ),
  ].join('\n\n')
}

async function list(values: ListValues, [url = '']: readonly string[], context: CommandContext): Promise<void> {
  const offer = await withServer(context, url, values, ({ client, signal }) => readOffer(client, values, signal))
  context.print(values.json ? jsonText(offer) : describe(offer))
}

export const listVerb = defineVerb({
  summary: 'List the tools, resources and prompts of an MCP server',
  example: 'https://mcp.example/mcp --tools',
  positionals: ['URL'],
  options: OPTIONS,
  run: list,
})
