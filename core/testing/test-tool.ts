// `testTool`: a tool's handler as a route runs it, without HTTP.
import type { ToolDefinition } from '../mcp/define.ts'
import type { CallToolResult, ContentBlock, JsonObject } from '../mcp/protocol.ts'
import { toolOutcome } from './outcomes.ts'
import { type Happened, type RunSettings, runAlone } from './run-alone.ts'

/** Structured content, by what a handler gives: objects of its own, not blocks and whole results. */
type StructuredOf<Return> = Return extends { content: readonly unknown[] }
  ? Return extends { structuredContent: infer Structured }
    ? Structured
    : undefined
  : Return extends readonly ContentBlock[] | ContentBlock
    ? undefined
    : Return extends object
      ? Return
      : unknown

/** What a tool answered, and what happened meanwhile. */
export interface ToolOutcome<Structured = unknown> extends Happened {
  /** The whole result, as a client gets it. */
  readonly result: CallToolResult
  /** Its structured content; undefined where there is none, as where the tool failed. */
  readonly structured: Structured | undefined
  /** The texts of its content, joined by line breaks. */
  readonly text: string
  readonly isError: boolean
  /** What the handler threw and clients are not told: anything but a ToolError. */
  readonly error: unknown
}

/** Of a tool without types of its own: any object. */
type ArgumentsOf<Given> = [Given] extends [never] ? Readonly<Record<string, unknown>> : Given

type Rest<Given> =
  Record<never, never> extends ArgumentsOf<Given>
    ? [args?: ArgumentsOf<Given>, settings?: RunSettings]
    : [args: ArgumentsOf<Given>, settings?: RunSettings]

/**
 * Runs a tool as a route does: arguments are held against its input, the handler gets a whole `ctx`, its result is held
 * against its output. Wrong arguments and throws are results with `isError`, as for clients. `access` is not asked: who may
 * call is the config's business, see `testHost`. Rejects with a StartError for a tool that no host would serve, and where the
 * handler asks something that `answers` does not answer.
 */
export async function testTool<Args, Return, Given>(
  tool: ToolDefinition<Args, Return, Given>,
  ...[args, settings]: Rest<NoInfer<Given>>
): Promise<ToolOutcome<StructuredOf<Awaited<Return>>>> {
  const params = { name: tool.name, arguments: (args ?? {}) as JsonObject }
  const definition = tool as unknown as ToolDefinition
  const { result, error, happened } = await runAlone<CallToolResult>(definition, 'tools/call', params, settings)
  const outcome = toolOutcome(result)
  const structured = outcome.structured as StructuredOf<Awaited<Return>> | undefined
  return { ...outcome, structured, error, ...happened }
}
