// `mcp-host call`: calls one tool of any MCP server, and prints what it gives.

import { isDeepStrictEqual } from 'node:util'
import type { CallToolResult, Client, ContentBlock, Tool } from '@modelcontextprotocol/client'
import { printable } from '../../client/text.ts'
import { StartError } from '../../core/http/errors.ts'
import { didYouMean } from '../../core/mcp/nearest.ts'
import type { CommandContext } from '../context.ts'
import { jsonText } from '../json-text.ts'
import { shellWord } from '../shell-word.ts'
import { defineVerb, type VerbValues } from '../verb.ts'
import { checkResult } from './check-result.ts'
import { NO_TIMEOUT } from './connect.ts'
import { createProgressLine, type Progress } from './progress.ts'
import { taskOf } from './repair-answers.ts'
import { readToolArguments } from './tool-arguments.ts'
import { waitForTask } from './wait-for-task.ts'
import { SERVER_OPTIONS, TIMEOUT_OPTION, withServer } from './with-server.ts'

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

/** Whether a text repeats the structured content, as servers do for older clients. */
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
  json: { type: 'boolean', help: 'print the whole result as one JSON document' },
  detach: { type: 'boolean', help: 'if the call becomes a task: print the task id, and do not wait for the result' },
} as const

/** Characters of the names of other tools. */
const MAX_WORDS = 4_000

/** The official client reports its own rounds of questions as progress; the person sees the questions themselves. */
const isRound = ({ message = '' }: Progress) => /^Fulfilling input required by '.*' \(round \d+\)$/.test(message)

/** Where there is no such list, the server may still know the tool. */
async function listTools(client: Client, signal: AbortSignal): Promise<readonly Tool[]> {
  if (!client.getServerCapabilities()?.tools) return []
  return (await client.listTools({}, { signal, timeout: NO_TIMEOUT })).tools
}

/** Codes for a tool that the server does not have: that of the specification, and of servers that know no such method. */
const UNKNOWN_TOOL: readonly unknown[] = [-32_602, -32_601]

/** The failure of a call; for an unknown tool, with the tool that was probably meant. */
function withHint(error: unknown, name: string, tools: readonly Tool[]): unknown {
  const known = tools.map(tool => tool.name)
  if (!(error instanceof Error) || known.includes(name) || !UNKNOWN_TOOL.includes((error as { code?: unknown }).code))
    return error
  const hint = printable(didYouMean(name, known), MAX_WORDS)
  return new StartError(`the server has no tool "${name}"; ${hint}`, { cause: error })
}

interface Called {
  readonly result: CallToolResult
  /** How the result violates the output schema of the tool. */
  readonly mismatch?: string | undefined
  /** A task that is not waited for. */
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
            // Without the output schema: the official client would hide a result that does not match.
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
  summary: 'call a tool of any MCP server',
  positionals: ['URL', 'TOOL', '[ARGUMENT...]'],
  options: OPTIONS,
  notes: `Arguments: name=value for each, read by the tool's schema; or one JSON object; @file; - for stdin.
  mcp-host call URL add a=1 b=2
  mcp-host call URL add '{"a": 1, "b": 2}'
  mcp-host call URL report --detach
Exits 1 if the tool fails or its result does not match its output schema. Ctrl-C cancels the call or its task.`,
  run: call,
})
