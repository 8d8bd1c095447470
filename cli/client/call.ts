// `mcp-host call`: calls one tool of any MCP server, and prints what it gives.
import type { CallToolResult, Client, Tool } from '@modelcontextprotocol/client'
import { printable } from '../../client/printable.ts'
import { StartError } from '../../core/http/errors.ts'
import { didYouMean } from '../../core/mcp/nearest.ts'
import type { CommandContext } from '../context.ts'
import { jsonText } from '../json-text.ts'
import { defineVerb, type VerbValues } from '../verb.ts'
import { checkResult } from './check-result.ts'
import { createProgressLine, type Progress } from './progress.ts'
import { showResult } from './show-result.ts'
import { readToolArguments } from './tool-arguments.ts'
import { SERVER_OPTIONS, withServer } from './with-server.ts'

const OPTIONS = {
  ...SERVER_OPTIONS,
  json: { type: 'boolean', help: 'print the whole result as one JSON document' },
  timeout: { type: 'string', value: '<seconds>', help: 'for an answer, or the next sign of progress; default: 300' },
} as const

/** Seconds. */
const PATIENCE = 300
/** Characters of the names of other tools. */
const MAX_WORDS = 4_000

/** Milliseconds. */
function readTimeout(text: string | undefined): number {
  const seconds = text === undefined ? PATIENCE : Number(text)
  if (seconds > 0 && seconds <= 86_400) return seconds * 1_000
  throw new StartError('--timeout is a number of seconds, at most 86400', { exitCode: 2 })
}

/** The official client reports its own rounds of questions as progress; the person sees the questions themselves. */
const isRound = ({ message = '' }: Progress) => /^Fulfilling input required by '.*' \(round \d+\)$/.test(message)

/** Where there is no such list, the server may still know the tool. */
async function listTools(client: Client, signal: AbortSignal): Promise<readonly Tool[]> {
  if (!client.getServerCapabilities()?.tools) return []
  return (await client.listTools({}, { signal })).tools
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

async function call(
  values: VerbValues<typeof OPTIONS>,
  positionals: readonly string[],
  context: CommandContext,
): Promise<number> {
  const [url = '', name = '', ...given] = positionals
  const timeout = readTimeout(values.timeout)
  const result = await withServer(context, url, values, async ({ client, signal, ids }): Promise<CallToolResult> => {
    const tools = await listTools(client, signal)
    const tool = tools.find(one => one.name === name)
    const line = createProgressLine(context.stderr)
    try {
      const answer = await client.callTool(
        { name, arguments: await readToolArguments(given, tool?.inputSchema, context) },
        {
          signal,
          timeout,
          resetTimeoutOnProgress: true,
          onprogress: progress => void (isRound(progress) || line.show(progress)),
        },
      )
      line.clear()
      await checkResult(answer, tool?.outputSchema, { signal, context })
      if (answer.isError || values.verbose) ids.tell()
      return answer
    } catch (error) {
      throw withHint(error, name, tools)
    } finally {
      line.clear()
    }
  })
  const text = values.json ? jsonText(result) : showResult(result)
  if (text !== '') context.print(text)
  if (result.isError && !values.json) context.say(`mcp-host: the tool ${name} failed`)
  return result.isError ? 1 : 0
}

export const callVerb = defineVerb({
  summary: 'call a tool of any MCP server',
  positionals: ['URL', 'TOOL', '[ARGUMENT...]'],
  options: OPTIONS,
  notes: `Arguments: name=value for each, read by the tool's schema; or one JSON object; @file; - for stdin.
  mcp-host call URL add a=1 b=2
  mcp-host call URL add '{"a": 1, "b": 2}'
Exits 1 where the tool fails. Ctrl-C cancels the call.`,
  run: call,
})
