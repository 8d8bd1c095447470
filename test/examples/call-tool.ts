// Calls a tool of an example and returns its result, or rejects like its handler.
import { type ToolDefinition, ToolError } from 'mcp-host'
import { type RunSettings, testTool } from 'mcp-host/testing'

/** The structured result of a tool; rejects with a ToolError, with what else was thrown, or with a TypeError where a schema does not hold. */
export async function callTool<Result>(tool: ToolDefinition, args: unknown, settings?: RunSettings): Promise<Result> {
  const { structured, isError, text, error } = await testTool(tool, args as never, settings)
  if (!isError) return structured as Result
  throw error ?? (text.startsWith('Invalid arguments') ? new TypeError(text) : new ToolError(text))
}

/** What `attempt` rejects with; rejects itself when it does not. */
export async function rejectionOf(attempt: Promise<unknown>): Promise<unknown> {
  return attempt.then(
    value => {
      throw new Error(`expected a rejection, got ${JSON.stringify(value)}`)
    },
    (reason: unknown) => reason,
  )
}
