// `mcp-host call`: calls a tool of any MCP server and prints the result.
import { on } from 'node:events'
import { isDeepStrictEqual } from 'node:util'
import { isObject, printable } from '../../client/text.ts'
import { errorText, StartError } from '../../core/http/errors.ts'
import { didYouMean } from '../../core/mcp/nearest.ts'
import type { CallToolResult, ContentBlock, ElicitResult, JsonObject } from '../../core/mcp/wire/protocol.ts'
import { startThread } from '../../core/threads/start-thread.ts'
import { type Connection, type Progress, RemoteError } from '../../remote/index.ts'
import { defineCommand } from '../command.ts'
import type { CommandContext } from '../context.ts'
import { jsonText, serverText, shellWord } from '../text.ts'
import { NO_RESULT } from './connect.ts'
import { readElicitation } from './elicit.ts'
import { type ListedTool, readList, repairResult } from './responses.ts'
import { createProgressLine } from './terminal.ts'
import { readToolArguments } from './tool-arguments.ts'
import { SERVER_OPTIONS, type ServerWork, TIMEOUT_OPTION, waitForNextPoll, withServer } from './with-server.ts'

export interface SchemaCheck {
  readonly schema: JsonObject
  readonly value: unknown
}

/** Limits of the validation thread, in milliseconds and megabytes. */
const CHECK_TIMEOUT = 10_000
const MEMORY = 512

/** Returns a message if the result does not match the schema. A failed or slow check prints a note. */
export async function checkResult(
  { structuredContent: value, isError }: CallToolResult,
  schema: JsonObject | undefined,
  { say }: Pick<CommandContext, 'say'>,
  signal: AbortSignal,
  timeout = CHECK_TIMEOUT,
): Promise<string | undefined> {
  if (schema === undefined || isError) return undefined
  if (value === undefined) return 'the result has no structured content, which the output schema of the tool requires'
  const controller = new AbortController()
  const worker = startThread('cli/client/thread/main', {
    workerData: { schema, value } satisfies SchemaCheck,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY },
    stdout: true,
    stderr: true,
  })
  let problem: unknown
  let timer: NodeJS.Timeout | undefined
  try {
    const messages = on(worker, 'message', { signal: AbortSignal.any([signal, controller.signal]) })
    // The first message: the thread has started.
    await messages.next()
    timer = setTimeout(() => controller.abort(), timeout)
    ;[problem] = (await messages.next()).value
  } catch (error) {
    if (signal.aborted) throw signal.reason
    const why = controller.signal.aborted ? `it took more than ${timeout / 1_000} s` : errorText(error)
    say(`note: the result was not validated against the tool's output schema: ${why}`)
    return undefined
  } finally {
    clearTimeout(timer)
    await worker.terminate()
  }
  if (problem === undefined) return undefined
  return `the structured content does not match the tool's output schema: ${serverText(String(problem))}`
}

type Members = Readonly<Record<string, unknown>>

/** Time limit for `tasks/cancel` after Ctrl-C or a timeout, milliseconds. */
const CANCEL_TIMEOUT = 2_000
/** Maximum rounds of requests for input (2026-07-28). */
const MAX_ROUNDS = 32

type Elicit = ServerWork['elicit']

/** Responds to requests for input, except those that already have a response. */
async function respondToAll(requests: unknown, elicit: Elicit, answered = new Set<string>()): Promise<JsonObject> {
  const responses: Record<string, ElicitResult> = {}
  for (const [key, request] of Object.entries(isObject(requests) ? requests : {})) {
    if (answered.has(key)) continue
    answered.add(key)
    if (!isObject(request) || request['method'] !== 'elicitation/create')
      throw new StartError(
        'MH3220',
        `unsupported request of the server: ${serverText(String(isObject(request) && request['method']))}`,
      )
    responses[key] = await elicit(readElicitation(isObject(request['params']) ? request['params'] : {}))
  }
  return responses
}

async function waitForTask(
  server: Connection,
  created: Members & { readonly taskId: string },
  { signal, elicit, changed }: Pick<ServerWork, 'signal' | 'elicit'> & { readonly changed: (message: string) => void },
): Promise<Members> {
  const request = (method: string, params: Members, until = signal): Promise<Members> =>
    server.request(method, { taskId: created.taskId, ...params }, { signal: until, timeout: 0, maxTime: 0 })

  /** A task can still list a request that already has a response. */
  const answered = new Set<string>()
  async function respond(requests: unknown): Promise<void> {
    const inputResponses = await respondToAll(requests, elicit, answered)
    if (Object.keys(inputResponses).length > 0) await request('tasks/update', { inputResponses })
  }

  try {
    let lastStatus = ''
    for (let task: Members = created; ; task = await request('tasks/get', {})) {
      const { status, statusMessage, error, result } = task
      if (status === 'completed' && isObject(result)) return { content: [], ...result }
      if (status === 'failed') {
        const { code, message } = isObject(error) ? error : {}
        throw new StartError('MH3221', `the task failed with error ${Number(code)}: ${serverText(String(message))}`)
      }
      if (status === 'cancelled' || status === 'completed')
        throw new StartError('MH3221', `the task is ${status} and has no result`)
      const now = `${status}${typeof statusMessage === 'string' ? `  ${statusMessage}` : ''}`
      if (now !== lastStatus) changed(now)
      lastStatus = now
      if (status === 'input_required') await respond(task['inputRequests'])
      await waitForNextPoll(task, signal)
    }
  } catch (error) {
    if (signal.aborted) {
      await request('tasks/cancel', {}, AbortSignal.timeout(CANCEL_TIMEOUT)).catch(() => undefined)
    }
    throw error
  }
}

const sizeText = (base64: string): string => `${Buffer.byteLength(base64, 'base64')} bytes`

function describeBlock(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'image':
    case 'audio':
      return `[${block.type}: ${block.mimeType}, ${sizeText(block.data)}; --json prints it]`
    case 'resource_link':
      return `[resource: ${block.uri}, ${block.title ?? block.name}]`
    case 'resource': {
      const { resource } = block
      if ('text' in resource) return resource.text
      return `[resource: ${resource.uri}, ${sizeText(resource.blob)}; --json prints it]`
    }
    default:
      return JSON.stringify(block)
  }
}

function repeats(text: string, structured: unknown): boolean {
  try {
    return isDeepStrictEqual(JSON.parse(text), structured)
  } catch {
    return false
  }
}

function showResult({ content, structuredContent }: CallToolResult): string {
  const blocks = content.filter(
    block => block.type !== 'text' || structuredContent === undefined || !repeats(block.text, structuredContent),
  )
  const parts = blocks.map(describeBlock)
  if (structuredContent !== undefined) parts.push(JSON.stringify(structuredContent, undefined, 2))
  return parts.join('\n')
}

const UNKNOWN_TOOL: readonly unknown[] = [-32_602, -32_601]

function withHint(error: unknown, name: string, tools: readonly ListedTool[]): unknown {
  if (!(error instanceof RemoteError)) return error
  if (error.executed === 'maybe' && (error.reason === 'lost' || error.reason === 'invalid'))
    return new StartError('MH3211', `${NO_RESULT}; the tool may have been executed: repeat the call if that is safe`)
  const known = tools.map(tool => tool.name)
  if (known.includes(name) || !UNKNOWN_TOOL.includes(error.code)) return error
  // Names with another word, such as `create_page` and `delete_page`, are not typing errors.
  const hint = serverText(didYouMean(name, known, 2))
  return new StartError('MH3222', `the server has no tool "${name}"; ${hint}`, { cause: error })
}

function readTask(result: Members): (Members & { readonly taskId: string }) | undefined {
  const { resultType, taskId } = result
  return resultType === 'task' && typeof taskId === 'string' ? { ...result, taskId } : undefined
}

/** Calls the tool until it requests no further input. */
async function callTool(
  server: Connection,
  params: JsonObject,
  {
    signal,
    elicit,
    onProgress,
  }: Pick<ServerWork, 'signal' | 'elicit'> & { readonly onProgress: (progress: Progress) => void },
): Promise<JsonObject> {
  let given: JsonObject = {}
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const options = { signal, onProgress, timeout: 0, maxTime: 0 }
    const result = await server.request('tools/call', { ...params, ...given }, options)
    const { resultType, inputRequests, requestState } = result
    if (resultType !== 'input_required') return result
    const inputResponses = await respondToAll(inputRequests, elicit)
    given = { inputResponses, ...(requestState !== undefined && { requestState }) }
  }
  throw new StartError('MH3220', `the tool requested input more than ${MAX_ROUNDS} times`)
}

export const callCommand = defineCommand({
  summary: 'Call a tool of an MCP server',
  example: 'https://mcp.example/mcp convert_time time=12:00 to=Asia/Tokyo',
  positionals: ['URL', 'TOOL', '[ARGUMENT...]'],
  options: {
    ...SERVER_OPTIONS,
    ...TIMEOUT_OPTION,
    json: { help: 'Print the complete result as JSON' },
    detach: { help: 'If the call becomes a task, print its id and do not wait for the result' },
  },
  notes: `Arguments: name=value pairs, converted by the schema of the tool, or one JSON object; @file reads a file, - reads stdin.
  mcp-host call URL add a=1 b=2
  mcp-host call URL add '{"a": 1, "b": 2}'
  mcp-host call URL report --detach
Exits 1 if the tool fails or its result does not match its output schema. Ctrl-C cancels the call or its task.`,
  async run(values, positionals, context) {
    const [url = '', name = '', ...given] = positionals
    const { result, mismatch, task } = await withServer(context, url, values, async work => {
      const { server, signal, ids, elicit, postpone, warn } = work
      const tools = server.capabilities.tools ? await readList(server, 'tools/list', work) : []
      const tool = tools.find(one => one.name === name)
      const line = createProgressLine(context.stderr)
      try {
        const params = { name, arguments: await readToolArguments(given, tool?.inputSchema, context) }
        const first = await callTool(server, params, {
          signal,
          elicit,
          onProgress(progress) {
            postpone()
            line.show(progress)
          },
        })
        const task = readTask(first)
        if (task && values.detach) return { result: { content: [] } as CallToolResult, mismatch: undefined, task }
        const changed = (message: string) => {
          postpone()
          line.show(message)
        }
        const answer = repairResult(task ? await waitForTask(server, task, { signal, elicit, changed }) : first, warn)
        line.clear()
        const mismatch = await checkResult(answer, tool?.outputSchema, context, signal)
        if (answer.isError || mismatch !== undefined || values.verbose) ids.print()
        return { result: answer, mismatch, task: undefined }
      } catch (error) {
        throw withHint(error, name, tools)
      } finally {
        line.clear()
      }
    })
    if (task) {
      context.print(values.json ? jsonText(task) : printable(task.taskId))
      context.say(`follow the task with: mcp-host tasks ${shellWord(url)} --follow ${shellWord(task.taskId)}`)
      return 0
    }
    const text = values.json ? jsonText(result) : showResult(result)
    if (text !== '') context.print(text)
    if (result.isError && !values.json) context.say(`mcp-host: the tool ${name} failed`)
    if (mismatch !== undefined) context.say(`mcp-host: ${mismatch}`)
    return result.isError || mismatch !== undefined ? 1 : 0
  },
})
