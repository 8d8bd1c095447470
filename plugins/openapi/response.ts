// Converts HTTP responses to tool results.
import { isUtf8 } from 'node:buffer'
import { STATUS_CODES } from 'node:http'
import type { CallToolResult, ContentBlock } from '../../core/index.ts'
import { attempt } from '../../core/internal.ts'
import { isObject } from '../../core/plugin.ts'
import { isJsonType, mediaTypeEssence } from './media-types.ts'
import type { Operation } from './operation.ts'
import { headerOf, type ReceivedResponse } from './request-send.ts'
import { isTooDeep, type ParsedJson, parseResponse, stripByteOrderMark } from './response-json.ts'
import { findNextPage } from './response-pages.ts'

export interface ResponseLimits {
  /** Maximum size of a response, bytes. */
  readonly maxResponse: number
  readonly errorExcerpt: number
}

export interface ResponseFacts extends ResponseLimits {
  readonly operation: Operation
  /** The URL without the query, which can contain a secret. */
  readonly url: string
  readonly query: string
  /** Values that were sent as credentials. */
  readonly secrets: readonly string[]
}

const text = (value: string): ContentBlock => ({ type: 'text', text: value })
const failure = (message: string): CallToolResult => ({ content: [text(message)], isError: true })

/** Omits the server's status text, which can be arbitrary. */
function statusLine(status: number): string {
  const name = STATUS_CODES[status]
  return name === undefined ? `HTTP ${status}` : `HTTP ${status} ${name}`
}

/** True for the result of a response with status 404. */
export const isNotFound = ({ content: [first], isError }: CallToolResult): boolean =>
  isError === true && first?.type === 'text' && first.text.split('\n', 1)[0] === statusLine(404)

const REDACTED = '[redacted]'
/** Minimum length of redacted values, because shorter ones occur by chance. */
const MIN_SECRET = 6

function encodings(secret: string): string[] {
  return [...new Set([secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)])]
}

/** Redacts secrets, because some APIs repeat the request in their responses. */
function redactSecrets(body: string, secrets: readonly string[]): string {
  let clean = body
  for (const secret of secrets) {
    if (secret.length < MIN_SECRET) continue
    for (const encoding of encodings(secret)) if (clean.includes(encoding)) clean = clean.replaceAll(encoding, REDACTED)
  }
  return clean
}

const MEDIA_TYPE = /^[\w.+!#$&^-]+\/[\w.+!#$&^-]+$/

function readMediaType({ headers }: ReceivedResponse) {
  const header = headerOf(headers, 'content-type') ?? ''
  const name = mediaTypeEssence(header)
  const charset = /;\s*charset\s*=\s*"?([\w:.-]+)"?/i.exec(header)?.[1]
  return { type: MEDIA_TYPE.test(name) ? name : '', charset }
}

const TEXTUAL =
  /^(?:text\/.*|application\/(?:(?:.*\+)?xml|(?:x-)?yaml|.*\+yaml|javascript|ecmascript|x-ndjson|jsonl|json-seq|graphql|sql|toml|x-sh|x-www-form-urlencoded|http)|image\/svg\+xml|multipart\/.*)$/

const isText = (type: string): boolean => isJsonType(type) || TEXTUAL.test(type)

/** Decodes a body. Undefined for an unknown charset, and for bytes that are not text in it. */
function decodeText(body: Buffer, charset: string | undefined): string | undefined {
  if (charset === undefined || /^utf-?8$/i.test(charset)) return isUtf8(body) ? body.toString('utf8') : undefined
  return attempt(() => new TextDecoder(charset, { fatal: true }).decode(body))
}

function binaryResult({ body }: ReceivedResponse, type: string, { url }: ResponseFacts): CallToolResult {
  const data = body.toString('base64')
  if (type.startsWith('image/')) return { content: [{ type: 'image', data, mimeType: type }] }
  if (type.startsWith('audio/')) return { content: [{ type: 'audio', data, mimeType: type }] }
  const mimeType = type === '' ? 'application/octet-stream' : type
  return { content: [{ type: 'resource', resource: { uri: url, mimeType, blob: data } }] }
}

function createNote({ inexact, duplicate }: ParsedJson): string | undefined {
  if (duplicate !== undefined) {
    return `The JSON response repeats the key ${JSON.stringify(duplicate.slice(0, 100))}, so there is no structured content.`
  }
  if (inexact === 0) return undefined
  const count = inexact === 1 ? '1 number' : `${inexact} numbers`
  return `${count} of the response cannot be represented exactly. The structured content has strings in their place.`
}

function jsonResult(parsed: ParsedJson, response: ReceivedResponse, facts: ResponseFacts): CallToolResult {
  const notes = [createNote(parsed), findNextPage(response.headers, parsed.value, facts.operation, facts.query)]
  const content = [text(parsed.text)]
  for (const note of notes) if (note !== undefined) content.push(text(note))
  return parsed.duplicate === undefined ? { content, structuredContent: parsed.value } : { content }
}

function textResult(body: string, type: string, response: ReceivedResponse, facts: ResponseFacts): CallToolResult {
  const clean = redactSecrets(body, facts.secrets)
  const isJson = isJsonType(type)
  if (isJson || type === '') {
    const parsed = parseResponse(clean)
    if (parsed) return jsonResult(parsed, response, facts)
  }
  const plain = stripByteOrderMark(clean)
  const content = [text(plain)]
  const { accepts } = facts.operation
  const isPromised = accepts.length > 0 && accepts.every(isJsonType) && !isTooDeep(plain)
  // Some APIs declare the wrong type for JSON.
  if ((isJson || type === 'text/html') && isPromised && attempt(() => JSON.parse(plain)) === undefined) {
    const what = `The API returned ${isJson ? 'invalid JSON' : type}; its document promises ${accepts.join(', ')}.`
    const hint = facts.operation.method === 'get' ? '' : ' It may have executed the request.'
    return failure([`${what}${hint}`, createExcerpt(response, facts) ?? ''].join('\n'))
  }
  if (isJson) content.push(text('The response is declared as JSON, but is not valid JSON or is nested too deeply.'))
  const next = findNextPage(response.headers, undefined, facts.operation, facts.query)
  if (next !== undefined) content.push(text(next))
  return { content }
}

/** Creates the result of a response without a body, which often contains only the location of a new resource. */
function emptyResult({ status, headers }: ReceivedResponse, { secrets }: ResponseFacts): CallToolResult {
  const location = headerOf(headers, 'location')
  const lines = [statusLine(status)]
  if (location !== undefined) lines.push(`Location: ${redactSecrets(location, secrets).slice(0, MAX_LOCATION)}`)
  return { content: [text(lines.join('\n'))] }
}

const MAX_LOCATION = 2_000

const sizeText = (bytes: number): string =>
  bytes >= 1_048_576 ? `${Math.round(bytes / 104_857.6) / 10} MB` : `${Math.ceil(bytes / 1_024)} kB`

function tooLargeResult({ declaredSize }: ReceivedResponse, { maxResponse }: ResponseFacts): CallToolResult {
  const size = declaredSize === undefined ? '' : ` (${sizeText(declaredSize)})`
  return failure(
    `The response is larger than ${sizeText(maxResponse)}${size} and was not read. Request less data, such as a smaller page or fewer fields.`,
  )
}

/** Returns the texts of a problem document (RFC 9457), or of common error objects. */
function readProblem(value: unknown): string | undefined {
  if (!isObject(value)) return undefined
  const texts = ['title', 'detail', 'message', 'error_description'].flatMap(name => {
    const member = value[name]
    return typeof member === 'string' && member.trim() !== '' ? [member.trim()] : []
  })
  return texts.length === 0 ? undefined : [...new Set(texts)].join(': ')
}

function truncateText(value: string, bytes: number): string {
  const body = Buffer.from(value)
  if (body.length <= bytes) return value
  return `${new TextDecoder().decode(body.subarray(0, bytes), { stream: true })}… (cut after ${sizeText(bytes)})`
}

/** Error pages are mostly markup. Each pattern takes linear time. */
const htmlToText = (html: string): string =>
  html
    .replaceAll(/<(?:script|style)\b[^<]*/gi, '')
    .replaceAll(/<[^<>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')

function createExcerpt(response: ReceivedResponse, facts: ResponseFacts): string | undefined {
  const { type, charset } = readMediaType(response)
  if (response.body.length === 0) return undefined
  if (type !== '' && !isText(type)) return `The body is ${type}.`
  // A cut body can end within a character.
  const body = response.isCut ? new TextDecoder().decode(response.body) : decodeText(response.body, charset)
  if (body === undefined) return undefined
  const readable = type === 'text/html' ? htmlToText(body) : stripByteOrderMark(body)
  const clean = redactSecrets(readable, facts.secrets).trim()
  const isProblem = type === 'application/problem+json'
  const problem = isProblem ? readProblem(parseResponse(clean)?.value) : undefined
  const excerpt = truncateText(clean, facts.errorExcerpt)
  return problem === undefined ? excerpt : `${truncateText(problem, facts.errorExcerpt)}\n${excerpt}`
}

function errorResult(response: ReceivedResponse, facts: ResponseFacts): CallToolResult {
  const retryAfter = headerOf(response.headers, 'retry-after')
  const lines = [statusLine(response.status)]
  if (response.status === 401) {
    const what = facts.secrets.length > 0 ? 'refused the credentials of the host' : 'requires credentials'
    lines.push(`The API ${what}. Only the operator of the host can change them; the log of the host has details.`)
  }
  if (retryAfter !== undefined && /^[\w ,:]{1,40}$/.test(retryAfter)) lines.push(`Retry-After: ${retryAfter}`)
  const excerpt = createExcerpt(response, facts)
  if (excerpt) lines.push(excerpt)
  return failure(lines.join('\n'))
}

function redirectResult(response: ReceivedResponse, { secrets }: ResponseFacts): CallToolResult {
  const location = redactSecrets(headerOf(response.headers, 'location') ?? '', secrets).slice(0, MAX_LOCATION)
  const target = location === '' ? '' : ` to ${location}`
  return failure(`HTTP ${response.status}: the API redirects${target}. The redirect was not followed.`)
}

/** Creates the result of a call: `isError` for a status of 300 or more, except 304. */
export function toToolResult(response: ReceivedResponse, facts: ResponseFacts): CallToolResult {
  const { status, body, isCut } = response
  if (status >= 400) return errorResult(response, facts)
  if (isCut) return tooLargeResult(response, facts)
  if (status >= 300 && status !== 304) return redirectResult(response, facts)
  if (body.length === 0) return emptyResult(response, facts)
  const { type, charset } = readMediaType(response)
  if (type !== '' && !isText(type)) return binaryResult(response, type, facts)
  const decoded = decodeText(body, charset)
  if (decoded === undefined) return binaryResult(response, isText(type) ? '' : type, facts)
  return textResult(decoded, type, response, facts)
}

/** Returns the status or cause of a failed call, for logs: neither arguments nor content of the API. */
export function failureOf(failed: unknown): string | undefined {
  const [first] = isObject(failed) && Array.isArray(failed['content']) ? failed['content'] : []
  const message: unknown = failed instanceof Error ? failed.message : Object(first).text
  const [own] = /^(?:HTTP \d|The (?:API|host|response) )[^:\n]*/.exec(String(message)) ?? []
  return own?.split('. ', 1)[0]?.replace(/\.$/, '').slice(0, MAX_FAILURE)
}

const MAX_FAILURE = 120
