// Converts handler return values to protocol results.
import { isDeepStrictEqual } from 'node:util'
import type { ResourceReturn } from '../definitions/define.ts'
import { base64Of, encodeBlock, encodeContents, isBytes, isData, toJson, toJsonValue } from '../encode-bytes.ts'
import { isObject } from '../wire/message.ts'
import type {
  CallToolResult,
  ContentBlock,
  GetPromptResult,
  PromptMessage,
  ReadResourceResult,
  ResourceContents,
} from '../wire/protocol.ts'
import type { RevisionRules } from '../wire/revisions.ts'

/** Removes the stack of a TypeError in a handler result: all frames belong to the host. */
function withoutStack(error: unknown): unknown {
  if (error instanceof TypeError) error.stack = `${error.name}: ${error.message}`
  return error
}

export function convertResult<Result>(convert: () => Result): Result {
  try {
    return convert()
  } catch (error) {
    throw withoutStack(error)
  }
}

const text = (value: string): ContentBlock => ({ type: 'text', text: value })

const BLOCK_FIELDS: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  image: ['data', 'mimeType'],
  audio: ['data', 'mimeType'],
  resource_link: ['uri', 'name'],
  resource: [],
} satisfies Record<ContentBlock['type'], readonly string[]>

export function isBlock(value: unknown): value is ContentBlock {
  if (!isObject(value) || typeof value['type'] !== 'string' || !Object.hasOwn(BLOCK_FIELDS, value['type'])) return false
  if (value['type'] === 'resource') return isObject(value['resource'])
  return (BLOCK_FIELDS[value['type']] ?? []).every(name =>
    name === 'data' ? isData(value[name]) : typeof value[name] === 'string',
  )
}

export const isWholeResult = (value: unknown): value is CallToolResult =>
  typeof value === 'object' &&
  value !== null &&
  'content' in value &&
  Array.isArray(value.content) &&
  value.content.every(isBlock)

export const errorResult = (message: string): CallToolResult => ({ content: [text(message)], isError: true })

/**
 * Converts a return value: content block arrays become content, other objects structured content. Throws a TypeError
 * for functions.
 */
export function toolResult(value: unknown): CallToolResult {
  if (typeof value === 'object' && value !== null) {
    if (isBytes(value)) return { content: [text(base64Of(value))] }
    if (isWholeResult(value)) {
      const { content, structuredContent } = value
      const encoded = { ...value, content: content.map(encodeInList) }
      if (typeof structuredContent !== 'object' || structuredContent === null) return encoded
      return { ...encoded, structuredContent: toJsonValue(structuredContent)[1] }
    }
    if (isBlock(value)) return { content: [encodeBlock(value, 'the return value')] }
    if (Array.isArray(value) && value.length > 0 && value.every(isBlock)) return { content: value.map(encodeInList) }
    const [json, structuredContent] = toJsonValue(value)
    if (json === undefined) throw new TypeError('a tool cannot return an object without a JSON form')
    return { content: [text(json)], structuredContent }
  }
  if (value === undefined || value === null) return { content: [] }
  if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') {
    throw new TypeError(`a tool cannot return a ${typeof value}`)
  }
  return { content: [text(String(value))] }
}

const encodeInList = (block: ContentBlock, index: number) => encodeBlock(block, `content[${index}]`)

/** `value`: the validated structured content, also sent as text. `whole`: the handler's own result. */
export function structuredResult(value: unknown, whole?: CallToolResult): CallToolResult {
  const words = typeof value === 'string' ? value : JSON.stringify(value)
  if (!whole) return { content: [text(words)], structuredContent: value }
  const parsed: unknown = JSON.parse(toJson(whole.structuredContent) ?? 'null')
  const blocks = whole.content.map(encodeInList)
  if (isDeepStrictEqual(parsed, value)) return { ...whole, content: blocks, structuredContent: value }
  // Text that repeats the structured content would contain values that the schema removed.
  const repeats = (block: ContentBlock) => block.type === 'text' && isDeepStrictEqual(readJson(block.text), parsed)
  const content = blocks.map(block => (repeats(block) ? { ...block, text: words } : block))
  return { ...whole, content: content as ContentBlock[], structuredContent: value }
}

export function withoutStructured({ structuredContent: _, ...rest }: CallToolResult): CallToolResult {
  return { ...rest, content: rest.content.map(encodeInList) }
}

function readJson(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}

const isContents = (value: unknown): value is Omit<ResourceContents, 'uri'> =>
  isObject(value) && (typeof value['text'] === 'string' || isData(value['blob']))

export function resourceResult(value: ResourceReturn, uri: string, mimeType: string | undefined): ReadResourceResult {
  const about = { uri, ...(mimeType !== undefined && { mimeType }) }
  if (typeof value === 'string') return { contents: [{ ...about, text: value }] }
  const encode = (contents: object, index: number) =>
    encodeContents({ ...about, ...contents } as ResourceContents, `contents[${index}]`)
  if (isBytes(value)) return { contents: [{ ...about, blob: base64Of(value) }] }
  if (Array.isArray(value) && value.every(isContents)) return { contents: value.map(encode) }
  if (isContents(value)) return { contents: [encode(value, 0)] }
  if (isObject(value) && 'contents' in value && Array.isArray(value.contents)) {
    const contents = value.contents.map((one, index) =>
      isContents(one) ? encodeContents(one, `contents[${index}]`) : one,
    )
    return { ...value, contents } as ReadResourceResult
  }
  throw new TypeError('a resource returns text, bytes, contents or a result')
}

function encodeMessage(message: PromptMessage, index: number): PromptMessage {
  if (!isObject(message)) return message
  return { ...message, content: encodeBlock(message.content, `messages[${index}].content`) }
}

export function promptResult(value: string | PromptMessage[] | GetPromptResult, description?: string): GetPromptResult {
  const about = description === undefined ? {} : { description }
  if (typeof value === 'string') return { ...about, messages: [{ role: 'user', content: text(value) }] }
  if (Array.isArray(value)) return { ...about, messages: value.map(encodeMessage) }
  if (isObject(value) && Array.isArray(value.messages)) {
    return { ...about, ...value, messages: value.messages.map(encodeMessage) }
  }
  throw new TypeError('a prompt returns text, messages or a result')
}

function contentFor(block: ContentBlock, known: RevisionRules['content']): ContentBlock {
  if (known.has(block.type)) return block
  return text(block.type === 'resource_link' ? `${block.name}: ${block.uri}` : `[${block.type}]`)
}

/** Replaces content blocks that the protocol version does not have, and removes structured content that is no object. */
export function fitToolResult(result: CallToolResult, { objectsOnly, content: known }: RevisionRules): CallToolResult {
  if (!objectsOnly) return result
  const isFitting = result.content.every(({ type }) => known.has(type))
  const content = isFitting ? result.content : result.content.map(block => contentFor(block, known))
  if (!('structuredContent' in result)) return isFitting ? result : { ...result, content }
  const { structuredContent, ...rest } = result
  return { ...rest, content, ...(isObject(structuredContent) && { structuredContent }) }
}

export function fitPromptResult(
  result: GetPromptResult,
  { handshake, content: known }: RevisionRules,
): GetPromptResult {
  if (!handshake) return result
  const messages = result.messages.map(({ role, content }) => ({ role, content: contentFor(content, known) }))
  return { ...result, messages }
}
