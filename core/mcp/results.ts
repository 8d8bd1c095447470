// From what a handler returned to the protocol's result. Text, structured content, blocks and whole results are told
// apart here, and nowhere else.
import { isDeepStrictEqual } from 'node:util'
import type { ResourceReturn } from './define.ts'
import { isObject } from './is-object.ts'
import type {
  CallToolResult,
  ContentBlock,
  GetPromptResult,
  PromptMessage,
  ReadResourceResult,
  ResourceContents,
} from './protocol.ts'
import type { RevisionRules } from './revisions.ts'

const text = (value: string): ContentBlock => ({ type: 'text', text: value })

/** What makes an object a block of its `type`: structured content may have a `type` of its own. */
const BLOCK_FIELDS: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  image: ['data', 'mimeType'],
  audio: ['data', 'mimeType'],
  resource_link: ['uri', 'name'],
  resource: [],
} satisfies Record<ContentBlock['type'], readonly string[]>

function isBlock(value: unknown): value is ContentBlock {
  if (!isObject(value) || typeof value['type'] !== 'string' || !Object.hasOwn(BLOCK_FIELDS, value['type'])) return false
  if (value['type'] === 'resource') return isObject(value['resource'])
  return (BLOCK_FIELDS[value['type']] ?? []).every(name => typeof value[name] === 'string')
}

/** Whether a tool returned a result of the protocol. */
export const isWholeResult = (value: unknown): value is CallToolResult =>
  typeof value === 'object' &&
  value !== null &&
  'content' in value &&
  Array.isArray(value.content) &&
  value.content.every(isBlock)

/** A result that says no: what a model reads to try again. */
export const errorResult = (message: string): CallToolResult => ({ content: [text(message)], isError: true })

/**
 * A tool's return value as a result, without an output schema: a list of content blocks is content, another list or object
 * is structured content. Throws a TypeError for what no client can be sent, such as a function.
 */
export function toolResult(value: unknown): CallToolResult {
  if (typeof value === 'object' && value !== null) {
    if (isWholeResult(value)) return value
    if (isBlock(value)) return { content: [value] }
    if (Array.isArray(value) && value.length > 0 && value.every(isBlock)) return { content: value }
    const json: string | undefined = JSON.stringify(value)
    if (json === undefined) throw new TypeError('a tool cannot return an object that has no JSON')
    // What writes its own JSON, such as a Date, is what it writes.
    return { content: [text(json)], structuredContent: 'toJSON' in value ? JSON.parse(json) : value }
  }
  if (value === undefined || value === null) return { content: [] }
  if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') {
    throw new TypeError(`a tool cannot return a ${typeof value}`)
  }
  return { content: [text(String(value))] }
}

/**
 * The result of a tool with an output schema. `value`: what its schema made of the structured content, as JSON holds it.
 * `whole`: the result that the handler returned, if it returned one. Structured content also travels as text, for clients
 * that do not support it.
 */
export function structuredResult(value: unknown, whole?: CallToolResult): CallToolResult {
  const words = typeof value === 'string' ? value : JSON.stringify(value)
  if (!whole) return { content: [text(words)], structuredContent: value }
  const given: unknown = JSON.parse(JSON.stringify(whole.structuredContent))
  if (isDeepStrictEqual(given, value)) return { ...whole, structuredContent: value }
  // A text that repeats the structured content would contain what the schema left out.
  const repeats = (block: ContentBlock) => block.type === 'text' && isDeepStrictEqual(readJson(block.text), given)
  const content = whole.content.map(block => (repeats(block) ? { ...block, text: words } : block))
  return { ...whole, content: content as ContentBlock[], structuredContent: value }
}

/** An error result whose structured content its schema refuses. */
export function withoutStructured({ structuredContent: _, ...rest }: CallToolResult): CallToolResult {
  return rest
}

function readJson(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}

const isContents = (value: unknown): value is Omit<ResourceContents, 'uri'> =>
  isObject(value) && (typeof value['text'] === 'string' || typeof value['blob'] === 'string')

/** A resource's return value as a result. Throws a TypeError for anything that is no contents. */
export function resourceResult(value: ResourceReturn, uri: string, mimeType: string | undefined): ReadResourceResult {
  const about = { uri, ...(mimeType !== undefined && { mimeType }) }
  if (typeof value === 'string') return { contents: [{ ...about, text: value }] }
  if (value instanceof Uint8Array) return { contents: [{ ...about, blob: Buffer.from(value).toString('base64') }] }
  if (Array.isArray(value) && value.every(isContents)) {
    return { contents: value.map(contents => ({ ...about, ...contents }) as ResourceContents) }
  }
  if (isContents(value)) return { contents: [{ ...about, ...value } as ResourceContents] }
  if (isObject(value) && 'contents' in value && Array.isArray(value.contents)) return value as ReadResourceResult
  throw new TypeError('a resource returns text, bytes, contents or a result')
}

/** A prompt's return value as a result. Throws a TypeError for anything that is no prompt. */
export function promptResult(value: string | PromptMessage[] | GetPromptResult, description?: string): GetPromptResult {
  const about = description === undefined ? {} : { description }
  if (typeof value === 'string')
    return { ...about, messages: [{ role: 'user', content: { type: 'text', text: value } }] }
  if (Array.isArray(value)) return { ...about, messages: value }
  if (isObject(value) && Array.isArray(value.messages)) return { ...about, ...value }
  throw new TypeError('a prompt returns text, messages or a result')
}

/** A block as a revision knows it: kinds that came later are told in words. */
function contentFor(block: ContentBlock, known: RevisionRules['content']): ContentBlock {
  if (known.has(block.type)) return block
  return text(block.type === 'resource_link' ? `${block.name}: ${block.uri}` : `[${block.type}]`)
}

/** A tool's result as its revision knows it. */
export function fitToolResult(result: CallToolResult, { objectsOnly, content: known }: RevisionRules): CallToolResult {
  if (!objectsOnly) return result
  const { structuredContent, ...rest } = result
  return {
    ...rest,
    content: result.content.map(block => contentFor(block, known)),
    ...(isObject(structuredContent) && { structuredContent }),
  }
}

/** A prompt's messages as its revision knows them. */
export function fitPromptResult(
  result: GetPromptResult,
  { handshake, content: known }: RevisionRules,
): GetPromptResult {
  if (!handshake) return result
  const messages = result.messages.map(({ role, content }) => ({ role, content: contentFor(content, known) }))
  return { ...result, messages }
}
