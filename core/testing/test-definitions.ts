// `testTool`, `testResource` and `testPrompt`: run a handler as a route does, without HTTP.
import type { PromptDefinition, ResourceDefinition, ToolDefinition } from '../mcp/definitions/define.ts'
import type {
  CallToolResult,
  ContentBlock,
  GetPromptResult,
  JsonObject,
  ReadResourceResult,
} from '../mcp/wire/protocol.ts'
import { type RunEffects, type RunSettings, runDefinition } from './run-definition.ts'
import { promptText, resourceText, toolOutcome } from './test-client.ts'

type StructuredOf<Return> = Return extends { content: readonly unknown[] }
  ? Return extends { structuredContent: infer Structured }
    ? Structured
    : undefined
  : Return extends readonly ContentBlock[] | ContentBlock
    ? undefined
    : Return extends object
      ? Return
      : unknown

/** The result of a tool, and effects of the call. */
export interface ToolOutcome<Structured = unknown> extends RunEffects {
  readonly result: CallToolResult
  /** Undefined without structured content, and if the tool failed. */
  readonly structured: Structured | undefined
  readonly text: string
  readonly isError: boolean
  /** The handler's error, unless it is a ToolError. */
  readonly error: unknown
}

type ArgumentsOf<Given> = [Given] extends [never] ? Readonly<Record<string, unknown>> : Given

type Rest<Given> =
  Record<never, never> extends ArgumentsOf<Given>
    ? [args?: ArgumentsOf<Given>, settings?: RunSettings]
    : [args: ArgumentsOf<Given>, settings?: RunSettings]

/**
 * Runs a tool with validation. Errors are `isError` results. Ignores `access`, see `testHost`. Rejects with a
 * StartError for an invalid tool, and without a test response.
 */
export async function testTool<Args, Return, Given>(
  tool: ToolDefinition<Args, Return, Given>,
  ...[args, settings]: Rest<NoInfer<Given>>
): Promise<ToolOutcome<StructuredOf<Awaited<Return>>>> {
  const params = { name: tool.name, arguments: (args ?? {}) as JsonObject }
  const definition = tool as unknown as ToolDefinition
  const { result, error, effects } = await runDefinition<CallToolResult>(definition, 'tools/call', params, settings)
  const outcome = toolOutcome(result)
  const structured = outcome.structured as StructuredOf<Awaited<Return>> | undefined
  return { ...outcome, structured, error, ...effects }
}

/** Reads a resource. Rejects with the handler's error, or the HostError `resourceNotFound` for an unknown URI. */
export async function testResource(
  resource: ResourceDefinition,
  uri: string = resource.uri ?? '',
  settings?: RunSettings,
): Promise<RunEffects & { readonly result: ReadResourceResult; readonly text: string }> {
  const { result, effects } = await runDefinition<ReadResourceResult>(resource, 'resources/read', { uri }, settings)
  return { result, text: resourceText(result), ...effects }
}

/** Runs a prompt. Rejects with the HostError `invalidParams` for invalid arguments. */
export async function testPrompt(
  prompt: PromptDefinition,
  args: Readonly<Record<string, string>> = {},
  settings?: RunSettings,
): Promise<RunEffects & { readonly result: GetPromptResult; readonly text: string }> {
  const params = { name: prompt.name, arguments: { ...args } }
  const { result, effects } = await runDefinition<GetPromptResult>(prompt, 'prompts/get', params, settings)
  return { result, text: promptText(result), ...effects }
}
