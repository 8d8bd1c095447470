// A tool for testTool. One with `isolate`: its handler runs here, without bounds, and what it gives must be able to cross from
// a thread. For run-alone.ts; testHost runs such tools in threads.
import { crossingFault } from '../isolated/crossing.ts'
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
  async function checked(args: unknown, ctx: CallContext) {
    const value = await handler(args, ctx)
    const fault = crossingFault(value)
    if (fault !== undefined) throw new TypeError(`its result cannot leave the thread: ${fault}`)
    return value
  }
  return { ...tool, handler: checked as ToolDefinition['handler'] }
}
