// A tool for testTool. The handler of a tool with `isolate` runs in this process, without limits, and its result is cloned as it is
// for another process. For run-alone.ts; testHost runs such tools in worker processes.
import { type CallContext, type Definition, kindOf, type ToolDefinition } from '../mcp/define.ts'

type Handler = (args: unknown, ctx: CallContext) => unknown

/** What plugins do around a tool (`app`, `task`) is for tests of a host that has them. */
function withoutKeys({ app: _app, task: _task, ...tool }: ToolDefinition): ToolDefinition {
  return tool
}

export function runHere(definition: Definition): Definition {
  if (kindOf(definition) !== 'tool') return definition
  const { isolate, ...tool } = withoutKeys(definition as ToolDefinition)
  if (isolate === undefined) return tool
  const handler = tool.handler as Handler
  const cloned = async (args: unknown, ctx: CallContext) => structuredClone(await handler(args, ctx))
  return { ...tool, handler: cloned as ToolDefinition['handler'] }
}
