// Reads lists and results of a server, and repairs invalid entries, with a warning for each.
import { isObject, printable } from '../../client/text.ts'
import { StartError } from '../../core/http/errors.ts'
import { isBlock } from '../../core/mcp/calls/results.ts'
import type { CallToolResult, JsonObject } from '../../core/mcp/wire/protocol.ts'
import { type Connection, RemoteError } from '../../remote/index.ts'
import { MAX_MESSAGE } from '../../remote/messages.ts'

export const tooLarge = () =>
  new StartError('MH3210', `the server sent more than ${MAX_MESSAGE / 2 ** 20} MB in one response`)

type Members = Readonly<Record<string, unknown>>
type IsValid = (value: unknown) => boolean

interface Listed {
  readonly name: string
  readonly title?: string
  readonly description?: string
}

export interface ListedTool extends Listed {
  readonly inputSchema: { readonly properties?: Members; readonly required?: readonly string[] }
  readonly outputSchema?: JsonObject
}

export interface ListedResource extends Listed {
  readonly uri: string
  readonly uriTemplate: string
}

interface ListedPrompt extends Listed {
  readonly arguments?: readonly { readonly name: string; readonly required?: boolean }[]
}

const isText: IsValid = value => typeof value === 'string'
const isOptionalText: IsValid = value => value === undefined || isText(value)
const isObjectSchema: IsValid = schema => isObject(schema) && schema['type'] === 'object'
const isArgument: IsValid = value => isObject(value) && isText(value['name'])

const NAMED = { name: isText, title: isOptionalText, description: isOptionalText }

const TYPES: Readonly<Record<List['type'], Readonly<Record<string, IsValid>>>> = {
  Tool: { ...NAMED, inputSchema: isObjectSchema, outputSchema: value => value === undefined || isObject(value) },
  Resource: { ...NAMED, uri: isText },
  ResourceTemplate: { ...NAMED, uriTemplate: isText },
  Prompt: { ...NAMED, arguments: value => value === undefined || (Array.isArray(value) && value.every(isArgument)) },
}

/** Unlike `isBlock`, requires the contents of an embedded resource, because they are printed. */
const isPrintable = (block: unknown): boolean =>
  isBlock(block) &&
  (block.type !== 'resource' ||
    (isText(block.resource.uri) && ['text', 'blob'].some(name => isText(Reflect.get(block.resource, name)))))

const findInvalid = (value: Members, members: Readonly<Record<string, IsValid>>): string[] =>
  Object.entries(members).flatMap(([name, isValid]) => (isValid(value[name]) ? [] : [name]))

const LISTS = {
  'tools/list': { key: 'tools', type: 'Tool', noun: 'tool' },
  'resources/list': { key: 'resources', type: 'Resource', noun: 'resource' },
  'resources/templates/list': { key: 'resourceTemplates', type: 'ResourceTemplate', noun: 'resource template' },
  'prompts/list': { key: 'prompts', type: 'Prompt', noun: 'prompt' },
} as const

type List = (typeof LISTS)[keyof typeof LISTS]

interface Entries {
  readonly 'tools/list': ListedTool
  readonly 'resources/list': ListedResource
  readonly 'resources/templates/list': ListedResource
  readonly 'prompts/list': ListedPrompt
}

export type Warn = (text: string) => void

const MAX_NAME = 200
const MAX_WARNINGS = 20
const MAX_PAGES = 1_000
const METHOD_NOT_FOUND = -32_601

/** Limits the number of warnings. */
export function createWarnings(say: (line: string) => void): Warn {
  let warnings = 0
  return text => {
    warnings++
    if (warnings <= MAX_WARNINGS) say(`warning: ${text}`)
    else if (warnings === MAX_WARNINGS + 1) say('warning: the server sent more invalid entries')
  }
}

function entryName(entry: unknown, index: number): string {
  const name = isObject(entry) ? (entry['uri'] ?? entry['uriTemplate'] ?? entry['name']) : undefined
  return typeof name === 'string' ? JSON.stringify(printable(name, MAX_NAME)) : `${index + 1}`
}

/** Removes invalid members. Undefined if a required one is invalid. */
function repairEntry(entry: Members, type: List['type'], isModern: boolean) {
  const { inputSchema, outputSchema } = entry
  const invalid = findInvalid(entry, TYPES[type])
  // Protocol versions before 2026-07-28 allow object schemas only.
  const isLegacyOutput = type === 'Tool' && !isModern && outputSchema !== undefined && !isObjectSchema(outputSchema)
  if (isLegacyOutput && !invalid.includes('outputSchema')) invalid.push('outputSchema')
  const repaired = Object.fromEntries(Object.entries(entry).filter(([name]) => !invalid.includes(name)))
  if (invalid.includes('inputSchema'))
    repaired['inputSchema'] = { ...(isObject(inputSchema) && inputSchema), type: 'object' }
  return { invalid, entry: findInvalid(repaired, TYPES[type]).length === 0 ? repaired : undefined }
}

function repairEntries(entries: readonly unknown[], { type, noun }: List, isModern: boolean, warn: Warn): Members[] {
  return entries.flatMap((given, index): Members[] => {
    const { entry, invalid = [] } = isObject(given) ? repairEntry(given, type, isModern) : {}
    const what = invalid.length === 0 ? '' : `: invalid ${invalid.join(', ')}`
    if (entry === undefined) warn(`omitted ${noun} ${entryName(given, index)}${what}`)
    else if (invalid.length > 0) warn(`${noun} ${entryName(given, index)}${what}`)
    return entry ? [entry] : []
  })
}

/** Reads all pages of a list. Each page has the size limit of one message. */
export async function readList<Method extends keyof Entries>(
  server: Connection,
  method: Method,
  { signal, warn }: { readonly signal: AbortSignal; readonly warn: Warn },
): Promise<readonly Entries[Method][]> {
  const list: List = LISTS[method]
  const found: Members[] = []
  let remaining = MAX_MESSAGE
  const onText = (text: string): void => {
    remaining -= text.length
  }
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = cursor === undefined ? {} : { cursor }
    let result: JsonObject
    try {
      result = await server.request(method, params, { signal, timeout: 0, maxTime: 0, onText })
    } catch (error) {
      if (!(error instanceof RemoteError) || error.code !== METHOD_NOT_FOUND) throw error
      if (list.type !== 'ResourceTemplate') warn(`the server declares ${list.key} and does not support ${method}`)
      break
    }
    if (remaining < 0) throw tooLarge()
    const { [list.key]: entries, nextCursor } = result
    if (!Array.isArray(entries)) throw new StartError('MH3211', `the response to ${method} has no \`${list.key}\``)
    for (const entry of repairEntries(entries, list, server.era === 'modern', warn)) found.push(entry)
    if (typeof nextCursor !== 'string' || nextCursor === cursor) break
    cursor = nextCursor
  }
  return found as unknown as readonly Entries[Method][]
}

const RESULT = {
  content: (value: unknown) => Array.isArray(value) && value.every(isPrintable),
  isError: (value: unknown) => value === undefined || typeof value === 'boolean',
}

export function repairResult(result: Members, warn: Warn): CallToolResult {
  const invalid = findInvalid(result, RESULT)
  if (invalid.length === 0) return result as unknown as CallToolResult
  const valid = Object.fromEntries(Object.entries(result).filter(([name]) => !invalid.includes(name)))
  const { content } = result
  warn(`the result of the tool has invalid ${invalid.join(', ')}`)
  const blocks = (Array.isArray(content) ? content : []).map(block =>
    isPrintable(block) ? block : { type: 'text', text: JSON.stringify(block) },
  )
  return { ...valid, content: blocks } as CallToolResult
}
