// Reads lists and results of a server, and repairs invalid entries, with a warning for each.
import { isObject, printable } from '../../client/text.ts'
import { StartError } from '../../core/http/errors.ts'
import type { CallToolResult, JsonObject } from '../../core/mcp/protocol.ts'
import { type Connection, RemoteError } from '../../remote/index.ts'
import { MAX_MESSAGE } from '../../remote/messages.ts'

export const tooLarge = () =>
  new StartError('MH3210', `the server sent more than ${MAX_MESSAGE / 2 ** 20} MB in one answer`)

type Members = Readonly<Record<string, unknown>>
type IsValid = (value: unknown) => boolean

export interface ListedTool {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly inputSchema: { readonly properties?: Members; readonly required?: readonly string[] }
  readonly outputSchema?: JsonObject
}

export interface ListedResource {
  readonly uri: string
  readonly uriTemplate: string
  readonly name: string
  readonly title?: string
  readonly description?: string
}

export interface ListedPrompt {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly arguments?: readonly { readonly name: string; readonly required?: boolean }[]
}

const isText: IsValid = value => typeof value === 'string'
const isBoolean: IsValid = value => typeof value === 'boolean'
const isNumber: IsValid = value => typeof value === 'number'
const optional =
  (isValid: IsValid): IsValid =>
  value =>
    value === undefined || isValid(value)
const arrayOf =
  (isValid: IsValid): IsValid =>
  value =>
    Array.isArray(value) && value.every(isValid)
const objectOf =
  (members: Readonly<Record<string, IsValid>>): IsValid =>
  value =>
    isObject(value) && Object.entries(members).every(([name, isValid]) => isValid(value[name]))

const isObjectSchema: IsValid = schema => isObject(schema) && schema['type'] === 'object'

const ANNOTATIONS = optional(
  objectOf({
    audience: optional(arrayOf(isText)),
    priority: optional(isNumber),
    lastModified: optional(isText),
  }),
)
const ICONS = optional(arrayOf(objectOf({ src: isText })))
const NAMED = {
  name: isText,
  title: optional(isText),
  description: optional(isText),
  icons: ICONS,
  _meta: optional(isObject),
}
const hint = optional(isBoolean)

/** The members of what lists contain (2025-11-25 and 2026-07-28, schema). */
const TYPES = {
  Tool: {
    ...NAMED,
    inputSchema: isObjectSchema,
    outputSchema: optional(isObject),
    annotations: optional(
      objectOf({
        title: optional(isText),
        readOnlyHint: hint,
        destructiveHint: hint,
        idempotentHint: hint,
        openWorldHint: hint,
      }),
    ),
  },
  Resource: { ...NAMED, uri: isText, mimeType: optional(isText), size: optional(isNumber), annotations: ANNOTATIONS },
  ResourceTemplate: { ...NAMED, uriTemplate: isText, mimeType: optional(isText), annotations: ANNOTATIONS },
  Prompt: {
    ...NAMED,
    arguments: optional(arrayOf(objectOf({ name: isText, description: optional(isText), required: hint }))),
  },
} as const satisfies Record<string, Readonly<Record<string, IsValid>>>

const contents = objectOf({ uri: isText, mimeType: optional(isText) })

const BLOCKS: Readonly<Record<string, IsValid>> = {
  text: objectOf({ text: isText }),
  image: objectOf({ data: isText, mimeType: isText }),
  audio: objectOf({ data: isText, mimeType: isText }),
  resource_link: objectOf({ uri: isText, name: isText, title: optional(isText) }),
  resource: objectOf({
    resource: value => contents(value) && isObject(value) && (isText(value['text']) || isText(value['blob'])),
  }),
}

const isBlock: IsValid = block => {
  if (!isObject(block) || !isText(block['type'])) return false
  const type = String(block['type'])
  return Object.hasOwn(BLOCKS, type) && BLOCKS[type]?.(block) === true && ANNOTATIONS(block['annotations'])
}

const findFaults = (value: Members, members: Readonly<Record<string, IsValid>>): string[] =>
  Object.entries(members).flatMap(([name, isValid]) => (isValid(value[name]) ? [] : [name]))

interface List {
  readonly key: string
  readonly type: keyof typeof TYPES
  readonly noun: string
}

const LISTS = {
  'tools/list': { key: 'tools', type: 'Tool', noun: 'tool' },
  'resources/list': { key: 'resources', type: 'Resource', noun: 'resource' },
  'resources/templates/list': { key: 'resourceTemplates', type: 'ResourceTemplate', noun: 'resource template' },
  'prompts/list': { key: 'prompts', type: 'Prompt', noun: 'prompt' },
} as const satisfies Record<string, List>

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

function nameOf(entry: unknown, index: number): string {
  const name = isObject(entry) ? (entry['uri'] ?? entry['uriTemplate'] ?? entry['name']) : undefined
  return typeof name === 'string' ? JSON.stringify(printable(name, MAX_NAME)) : `${index + 1}`
}

interface Repaired {
  readonly entry: Members | undefined
  readonly faults: readonly string[]
}

function repairEntry(entry: unknown, type: List['type'], isModern: boolean): Repaired {
  if (!isObject(entry)) return { entry: undefined, faults: [] }
  const repaired: Record<string, unknown> = { ...entry }
  const faults = new Set<string>()
  if (type === 'Tool') {
    const { inputSchema, outputSchema } = entry
    if (!isObjectSchema(inputSchema)) {
      repaired['inputSchema'] = { ...(isObject(inputSchema) && inputSchema), type: 'object' }
      faults.add('inputSchema')
    }
    // Protocol versions before 2026-07-28 allow object schemas only.
    if (!isModern && outputSchema !== undefined && !isObjectSchema(outputSchema)) {
      delete repaired['outputSchema']
      faults.add('outputSchema')
    }
  }
  for (const name of findFaults(repaired, TYPES[type])) {
    faults.add(name)
    delete repaired[name]
  }
  const isUsable = faults.size === 0 || findFaults(repaired, TYPES[type]).length === 0
  return { entry: isUsable ? repaired : undefined, faults: [...faults] }
}

function repairEntries(entries: readonly unknown[], { type, noun }: List, isModern: boolean, warn: Warn): Members[] {
  const usable: Members[] = []
  for (const [index, given] of entries.entries()) {
    const { entry, faults } = repairEntry(given, type, isModern)
    const what = faults.length === 0 ? '' : `: invalid ${faults.join(', ')}`
    if (entry === undefined) warn(`omitted ${noun} ${nameOf(given, index)}${what}`)
    else if (faults.length > 0) warn(`${noun} ${nameOf(given, index)}${what}`)
    if (entry) usable.push(entry)
  }
  return usable
}

interface Reading {
  readonly signal: AbortSignal
  readonly warn: Warn
}

/** All pages of a list. The size limit is that of one message. */
export async function readList<Method extends keyof Entries>(
  server: Connection,
  method: Method,
  { signal, warn }: Reading,
): Promise<readonly Entries[Method][]> {
  const list: List = LISTS[method]
  const found: Members[] = []
  let left = MAX_MESSAGE
  const onText = (text: string): void => {
    left -= text.length
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
    if (left < 0) throw tooLarge()
    const { [list.key]: entries, nextCursor } = result
    if (!Array.isArray(entries)) throw new StartError('MH3211', `the server answered ${method} without \`${list.key}\``)
    for (const entry of repairEntries(entries, list, server.era === 'modern', warn)) found.push(entry)
    if (typeof nextCursor !== 'string' || nextCursor === cursor) break
    cursor = nextCursor
  }
  return found as unknown as readonly Entries[Method][]
}

const RESULT = {
  content: arrayOf(isBlock),
  isError: optional(isBoolean),
  _meta: optional(isObject),
}

export function repairResult(result: Members, warn: Warn): CallToolResult {
  const faults = findFaults(result, RESULT)
  if (faults.length === 0) return result as unknown as CallToolResult
  const valid = Object.fromEntries(Object.entries(result).filter(([name]) => !faults.includes(name)))
  const { content } = result
  warn(`the result of the tool has invalid ${faults.join(', ')}`)
  const blocks = (Array.isArray(content) ? content : []).map(block =>
    isBlock(block) ? block : { type: 'text', text: JSON.stringify(block) },
  )
  return { ...valid, content: blocks } as CallToolResult
}
