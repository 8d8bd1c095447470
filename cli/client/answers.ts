// Limits what `call` and `list` read from a server, and repairs invalid entries of lists and results.
import type { CallToolResult, Client, Transport } from '@modelcontextprotocol/client'
import { isObject, printable } from '../../client/text.ts'
import { StartError } from '../../core/http/errors.ts'
import { EventTooLarge, readEvents, type StreamEvent } from '../../remote/http/event-stream.ts'
import { MAX_MESSAGE } from '../../remote/messages.ts'
import { parseObject } from '../text.ts'

const tooLarge = () => new StartError('MH3210', `the server sent more than ${MAX_MESSAGE / 2 ** 20} MB in one answer`)

/** Encodes an event. An event with only an id keeps its empty data, so that the id counts. */
function encodeEvent({ event, data, id, retry }: StreamEvent): string {
  const lines = [
    ...(retry === undefined ? [] : [`retry: ${retry}`]),
    ...(id === undefined ? [] : [`id: ${id}`]),
    ...(data === '' && id === undefined ? [] : [`event: ${event}`, ...data.split('\n').map(line => `data: ${line}`)]),
  ]
  return `${lines.join('\n')}\n\n`
}

async function* eventsOf(
  body: ReadableStream<Uint8Array>,
  see: (event: StreamEvent) => void,
): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  for await (const event of readEvents(body, MAX_MESSAGE)) {
    see(event)
    yield encoder.encode(encodeEvent(event))
  }
}

async function* limited(chunks: AsyncIterable<Uint8Array>, take: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    take(chunk.byteLength)
    yield chunk
  }
}

const noAnswer = () => new StartError('MH3211', 'the server ended its response without an answer')

/**
 * Bytes are counted after decompression. `fail` receives the reason, because the official client would retry the stream.
 * `answersElsewhere`: HTTP+SSE, where responses arrive on another stream.
 */
export function limitAnswers(
  base: typeof fetch,
  fail: (reason: StartError) => void,
  { answersElsewhere = false } = {},
): typeof fetch {
  const lists = { left: MAX_MESSAGE }
  const unanswered = new Set<unknown>()
  return async (input, init) => {
    const response = await base(input, init)
    const { body, headers, status, statusText } = response
    const request = answersElsewhere ? undefined : parseObject(init?.body)
    const isRequest = request !== undefined && 'method' in request && 'id' in request
    const isStream = headers.get('content-type')?.startsWith('text/event-stream') ?? false
    const isResumed = new Headers(init?.headers).has('last-event-id')
    if (isRequest && response.ok && isStream) unanswered.add(request['id'])
    const isLost = isRequest ? response.ok && (body === null || status === 202) : isResumed && !response.ok
    if (isLost && (isRequest || unanswered.size > 0)) fail(noAnswer())
    if (body === null) return response
    const isList = /\/list$/.test(String(request?.['method']))
    const budget = isList ? lists : { left: isStream ? Number.POSITIVE_INFINITY : MAX_MESSAGE }
    const take = (bytes: number) => {
      budget.left -= bytes
      if (budget.left < 0) throw tooLarge()
    }
    let isResumable = false
    function see({ id, data }: StreamEvent): void {
      isResumable ||= id !== undefined && id !== ''
      const message = unanswered.size === 0 ? undefined : parseObject(data)
      if (message === undefined || 'method' in message) return
      if (message['id'] === undefined || message['id'] === null) unanswered.clear()
      else unanswered.delete(message['id'])
    }
    function checkAnswered(): void {
      const isMissing = isRequest ? unanswered.has(request['id']) : isResumed && unanswered.size > 0
      if (isStream && isMissing && !isResumable) fail(noAnswer())
    }
    async function* guarded(chunks: ReadableStream<Uint8Array>) {
      try {
        yield* limited(isStream ? eventsOf(chunks, see) : chunks, take)
      } catch (error) {
        const reason = error instanceof EventTooLarge ? tooLarge() : error
        if (reason instanceof StartError) fail(reason)
        else checkAnswered()
        throw reason
      }
      checkAnswered()
    }
    return new Response(ReadableStream.from(guarded(body)), { status, statusText, headers })
  }
}

type Members = Readonly<Record<string, unknown>>
type SpecType = 'Tool' | 'Resource' | 'ResourceTemplate' | 'Prompt' | 'ContentBlock' | 'CallToolResult'
type FindFaults = (type: SpecType, value: unknown) => readonly string[]

interface List {
  readonly key: string
  readonly type: SpecType
  readonly noun: string
}

const LISTS = new Map<string, List>([
  ['tools/list', { key: 'tools', type: 'Tool', noun: 'tool' }],
  ['resources/list', { key: 'resources', type: 'Resource', noun: 'resource' }],
  ['resources/templates/list', { key: 'resourceTemplates', type: 'ResourceTemplate', noun: 'resource template' }],
  ['prompts/list', { key: 'prompts', type: 'Prompt', noun: 'prompt' }],
])

const MAX_NAME = 200
const MAX_WARNINGS = 20
const METHOD_NOT_FOUND = -32_601

const isObjectSchema = (schema: unknown) => isObject(schema) && schema['type'] === 'object'

function nameOf(entry: unknown, index: number): string {
  const name = isObject(entry) ? (entry['uri'] ?? entry['uriTemplate'] ?? entry['name']) : undefined
  return typeof name === 'string' ? JSON.stringify(printable(name, MAX_NAME)) : `${index + 1}`
}

interface Checks {
  readonly modern: boolean
  readonly findFaults: FindFaults
  readonly warn: (text: string) => void
}

interface Repaired {
  readonly entry: Members | undefined
  readonly faults: readonly string[]
}

function repairEntry(entry: unknown, type: SpecType, { modern, findFaults }: Checks): Repaired {
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
    if (!modern && outputSchema !== undefined && !isObjectSchema(outputSchema)) {
      delete repaired['outputSchema']
      faults.add('outputSchema')
    }
  }
  for (const name of findFaults(type, repaired)) {
    faults.add(name)
    if (name === 'inputSchema') repaired[name] = { type: 'object' }
    else delete repaired[name]
  }
  const isUsable = faults.size === 0 || findFaults(type, repaired).length === 0
  return { entry: isUsable ? repaired : undefined, faults: [...faults] }
}

function repairList(result: Members, { key, type, noun }: List, checks: Checks): Members {
  const { warn } = checks
  const { nextCursor, ...others } = result
  const entries = result[key]
  if (!Array.isArray(entries)) return result
  const usable: Members[] = []
  for (const [index, given] of entries.entries()) {
    const { entry, faults } = repairEntry(given, type, checks)
    const what = faults.length === 0 ? '' : `: invalid ${faults.join(', ')}`
    if (entry === undefined) warn(`omitted ${noun} ${nameOf(given, index)}${what}`)
    else if (faults.length > 0) warn(`${noun} ${nameOf(given, index)}${what}`)
    if (entry) usable.push(entry)
  }
  return { ...others, [key]: usable, ...(typeof nextCursor === 'string' && { nextCursor }) }
}

function repairResult(result: Members, { findFaults, warn }: Checks): Members {
  const faults = findFaults('CallToolResult', result)
  if (faults.length === 0) return result
  const valid = Object.fromEntries(Object.entries(result).filter(([name]) => !faults.includes(name)))
  const { content } = result
  warn(`the result of the tool has invalid ${faults.join(', ')}`)
  const blocks = (Array.isArray(content) ? content : []).map(block =>
    findFaults('ContentBlock', block).length === 0 ? block : { type: 'text', text: JSON.stringify(block) },
  )
  return { ...valid, content: blocks as CallToolResult['content'] }
}

/** The key for a task in a call result: the official client refuses other result types. */
const TASK = 'io.mcp-host/task'

export function taskOf(result: Members): (Members & { readonly taskId: string }) | undefined {
  const task = result[TASK]
  return isObject(task) && typeof task['taskId'] === 'string' ? { ...task, taskId: task['taskId'] } : undefined
}

function repair(message: Members, method: string, checks: Checks): Members {
  const { modern, warn } = checks
  const list = LISTS.get(method)
  const { error, result, ...others } = message
  if (isObject(result)) {
    const type = result['resultType']
    if (type === 'task') return { ...others, result: { resultType: 'complete', content: [], [TASK]: result } }
    const isInput = type === 'input_required'
    return {
      ...others,
      result: list ? repairList(result, list, checks) : isInput ? result : repairResult(result, checks),
    }
  }
  if (!list || !isObject(error) || error['code'] !== METHOD_NOT_FOUND) return message
  if (list.type !== 'ResourceTemplate') warn(`the server declares ${list.key} and does not support ${method}`)
  const modernMembers = modern && { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
  return { ...others, result: { [list.key]: [], ...modernMembers } }
}

interface RepairOptions {
  readonly client: Client
  readonly say: (line: string) => void
}

/** Repairs the responses that the client receives after `client.connect`, with a warning for each repair. */
export async function repairAnswers(transport: Transport, { client, say }: RepairOptions): Promise<void> {
  const { specTypeSchemas } = await import('@modelcontextprotocol/client')
  const modern = client.getProtocolEra() === 'modern'
  const methods = new Map<unknown, string>()
  let warnings = 0
  function warn(text: string): void {
    warnings++
    if (warnings <= MAX_WARNINGS) say(`warning: ${text}`)
    else if (warnings === MAX_WARNINGS + 1) say('warning: the server sent more invalid entries')
  }

  const findFaults: FindFaults = (type, value) => {
    const checked = specTypeSchemas[type]['~standard'].validate(value)
    const issues = 'issues' in checked ? (checked.issues ?? []) : []
    return [...new Set(issues.map(({ path = [] }) => String(path[0] ?? '')))]
  }
  const checks = { modern, findFaults, warn }

  const send = transport.send.bind(transport)
  transport.send = (message, options) => {
    for (const one of [message].flat()) {
      if ('method' in one && 'id' in one && (LISTS.has(one.method) || one.method === 'tools/call'))
        methods.set(one.id, one.method)
    }
    return send(message, options)
  }
  const receive = transport.onmessage
  transport.onmessage = (message, extra) => {
    const id = 'method' in message ? undefined : message.id
    const method = id === undefined ? undefined : methods.get(id)
    methods.delete(id)
    receive?.(method === undefined ? message : (repair({ ...message }, method, checks) as typeof message), extra)
  }
}
