// `mcp-host call`: calls a tool of any MCP server and prints the result.
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type {
  CallToolResult,
  Client,
  ContentBlock,
  ElicitRequest,
  ElicitResult,
  Tool,
} from '@modelcontextprotocol/client'
import { isObject, printable } from '../../client/text.ts'
import { errorText, StartError } from '../../core/http/errors.ts'
import { didYouMean } from '../../core/mcp/nearest.ts'
import { startThread } from '../../core/threads/start-thread.ts'
import type { CommandContext } from '../context.ts'
import { jsonText, serverText, shellWord } from '../text.ts'
import { defineVerb, type VerbValues } from '../verb.ts'
import { taskOf } from './answers.ts'
import { NO_TIMEOUT } from './connect.ts'
import { createProgressLine, type Progress } from './terminal.ts'
import { readToolArguments } from './tool-arguments.ts'
import { SERVER_OPTIONS, TIMEOUT_OPTION, withServer } from './with-server.ts'

export interface SchemaCheck {
  readonly schema: NonNullable<Tool['outputSchema']>
  readonly value: unknown
}

/** Limits of the validation thread: milliseconds, megabytes. */
const CHECK_PATIENCE = 10_000
const MEMORY = 512
interface CheckOptions {
  readonly signal: AbortSignal
  readonly context: Pick<CommandContext, 'say'>
  readonly patience?: number
}

/** Returns a message if the result does not match the schema. A failed or slow check prints a note. */
export async function checkResult(
  { structuredContent: value, isError }: CallToolResult,
  schema: Tool['outputSchema'],
  { signal, context: { say }, patience = CHECK_PATIENCE }: CheckOptions,
): Promise<string | undefined> {
  if (schema === undefined || isError) return undefined
  if (value === undefined) return 'the result has no structured content, which the output schema of the tool requires'
  const late = AbortSignal.timeout(patience)
  const worker = startThread('cli/client/thread/main', {
    workerData: { schema, value } satisfies SchemaCheck,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY },
    stdout: true,
    stderr: true,
  })
  let wrong: unknown
  try {
    ;[wrong] = await once(worker, 'message', { signal: AbortSignal.any([signal, late]) })
  } catch (error) {
    if (signal.aborted) throw signal.reason
    const why = late.aborted ? `it took more than ${patience / 1_000} s` : errorText(error)
    say(`note: the result was not checked against the tool's output schema: ${why}`)
    return undefined
  } finally {
    await worker.terminate()
  }
  if (wrong === undefined) return undefined
  return `the structured content does not match the tool's output schema: ${serverText(String(wrong))}`
}

type Members = Readonly<Record<string, unknown>>

/** Milliseconds between two polls. Limits the value of the server. */
const POLL_INTERVAL = { least: 200, most: 10_000, standard: 2_000 }
/** Time limit for `tasks/cancel` after Ctrl-C or a timeout, milliseconds. */
const PATIENCE = 2_000
export const ANY_RESULT = {
  '~standard': { version: 1, vendor: 'mcp-host', validate: (value: unknown) => ({ value }) },
} as const

interface TaskWait {
  readonly signal: AbortSignal
  readonly elicit: (params: ElicitRequest['params']) => Promise<ElicitResult>
  readonly changed: (message: string) => void
}

async function waitForTask(
  client: Client,
  created: Members & { readonly taskId: string },
  { signal, elicit, changed }: TaskWait,
): Promise<CallToolResult> {
  const { taskId } = created
  async function ask(method: string, params: Members, options = { signal, timeout: NO_TIMEOUT }): Promise<Members> {
    const about = { ...options, headers: { 'Mcp-Name': taskId } }
    const answer = await client.request({ method, params: { taskId, ...params } }, ANY_RESULT, about)
    return isObject(answer) ? answer : {}
  }

  /** A task can still list a request that was already answered. */
  const answered = new Set<string>()
  async function respond(requests: unknown): Promise<void> {
    const responses: Record<string, ElicitResult> = {}
    for (const [key, request] of Object.entries(isObject(requests) ? requests : {})) {
      if (answered.has(key)) continue
      answered.add(key)
      if (!isObject(request) || request['method'] !== 'elicitation/create')
        throw new StartError(
          'MH3220',
          `the task requests ${serverText(String(isObject(request) && request['method']))}, which this client does not support`,
        )
      responses[key] = await elicit(request['params'] as ElicitRequest['params'])
    }
    if (Object.keys(responses).length > 0) await ask('tasks/update', { inputResponses: responses })
  }

  try {
    let shown = ''
    for (let task: Members = created; ; task = await ask('tasks/get', {})) {
      const { status, statusMessage, pollIntervalMs, error, result } = task
      if (status === 'completed' && isObject(result)) return { content: [], ...result }
      if (status === 'failed') {
        const { code, message } = isObject(error) ? error : {}
        throw new StartError('MH3221', `the task failed with error ${Number(code)}: ${serverText(String(message))}`)
      }
      if (status === 'cancelled' || status === 'completed')
        throw new StartError('MH3221', `the task is ${status} and has no result`)
      const now = `${status}${typeof statusMessage === 'string' ? `  ${statusMessage}` : ''}`
      if (now !== shown) changed(now)
      shown = now
      if (status === 'input_required') await respond(task['inputRequests'])
      const wanted = typeof pollIntervalMs === 'number' ? pollIntervalMs : POLL_INTERVAL.standard
      await pause(Math.min(Math.max(wanted, POLL_INTERVAL.least), POLL_INTERVAL.most), undefined, { signal })
    }
  } catch (error) {
    if (signal.aborted) {
      await ask('tasks/cancel', {}, { signal: AbortSignal.timeout(PATIENCE), timeout: PATIENCE }).catch(() => undefined)
    }
    throw error
  }
}

const sizeOf = (base64: string): string => `${Buffer.byteLength(base64, 'base64')} bytes`

function describeBlock(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'image':
    case 'audio':
      return `[${block.type}: ${block.mimeType}, ${sizeOf(block.data)}; --json prints it]`
    case 'resource_link':
      return `[resource: ${block.uri}, ${block.title ?? block.name}]`
    case 'resource': {
      const { resource } = block
      if ('text' in resource) return resource.text
      return `[resource: ${resource.uri}, ${sizeOf(resource.blob)}; --json prints it]`
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

const OPTIONS = {
  ...SERVER_OPTIONS,
  ...TIMEOUT_OPTION,
  json: { type: 'boolean', help: 'Print the complete result as JSON' },
  detach: { type: 'boolean', help: 'If the call becomes a task, print its id and do not wait for the result' },
} as const

/** The official client reports its elicitation rounds as progress, which the user already sees as prompts. */
const isRound = ({ message = '' }: Progress) => /^Fulfilling input required by '.*' \(round \d+\)$/.test(message)

async function listTools(client: Client, signal: AbortSignal): Promise<readonly Tool[]> {
  if (!client.getServerCapabilities()?.tools) return []
  return (await client.listTools({}, { signal, timeout: NO_TIMEOUT })).tools
}

const UNKNOWN_TOOL: readonly unknown[] = [-32_602, -32_601]

function withHint(error: unknown, name: string, tools: readonly Tool[]): unknown {
  const known = tools.map(tool => tool.name)
  if (!(error instanceof Error) || known.includes(name) || !UNKNOWN_TOOL.includes((error as { code?: unknown }).code))
    return error
  const hint = serverText(didYouMean(name, known))
  return new StartError('MH3222', `the server has no tool "${name}"; ${hint}`, { cause: error })
}

interface Called {
  readonly result: CallToolResult
  readonly mismatch?: string | undefined
  readonly task?: { readonly taskId: string }
}

async function call(
  values: VerbValues<typeof OPTIONS>,
  positionals: readonly string[],
  context: CommandContext,
): Promise<number> {
  const [url = '', name = '', ...given] = positionals
  const { result, mismatch, task } = await withServer(
    context,
    url,
    values,
    async ({ client, signal, ids, elicit, postpone }): Promise<Called> => {
      const tools = await listTools(client, signal)
      const tool = tools.find(one => one.name === name)
      const line = createProgressLine(context.stderr)
      try {
        const first = await client.callTool(
          { name, arguments: await readToolArguments(given, tool?.inputSchema, context) },
          {
            signal,
            timeout: NO_TIMEOUT,
            onprogress(progress) {
              postpone()
              if (!isRound(progress)) line.show(progress)
            },
            // Omits the output schema, because the official client would hide a result that does not match it.
            ...(tool && { toolDefinition: { ...tool, outputSchema: undefined } }),
          },
        )
        const task = taskOf(first)
        if (task && values.detach) return { result: first, task }
        const changed = (message: string) => {
          postpone()
          line.show(message)
        }
        const answer = task ? await waitForTask(client, task, { signal, elicit, changed }) : first
        line.clear()
        const mismatch = await checkResult(answer, tool?.outputSchema, { signal, context })
        if (answer.isError || mismatch !== undefined || values.verbose) ids.tell()
        return { result: answer, mismatch }
      } catch (error) {
        throw withHint(error, name, tools)
      } finally {
        line.clear()
      }
    },
  )
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
}

export const callVerb = defineVerb({
  summary: 'Call a tool of an MCP server',
  example: 'https://mcp.example/mcp convert_time time=12:00 to=Asia/Tokyo',
  positionals: ['URL', 'TOOL', '[ARGUMENT...]'],
  options: OPTIONS,
  notes: `Arguments: name=value pairs, converted by the schema of the tool, or one JSON object; @file reads a file, - reads stdin.
  mcp-host call URL add a=1 b=2
  mcp-host call URL add '{"a": 1, "b": 2}'
  mcp-host call URL report --detach
Exits 1 if the tool fails or its result does not match its output schema. Ctrl-C cancels the call or its task.`,
  run: call,
})
