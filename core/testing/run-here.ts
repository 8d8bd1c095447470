// A tool with `isolate` for testTool: its handler runs here, without bounds, and what it gives must be able to cross from a
// thread. For run-alone.ts; testHost runs such tools in threads.
import { crossingFault } from '../isolated/crossing.ts'
import { type CallContext, type Definition, kindOf, type ToolDefinition } from '../mcp/define.ts'

type Handler = (args: unknown, ctx: CallContext) => unknown

export function runHere(definition: Definition): Definition {
  if (kindOf(definition) !== 'tool' || (definition as ToolDefinition).isolate === undefined) return definition
  const { isolate: _, ...tool } = definition as ToolDefinition
  const handler = tool.handler as Handler
  async function checked(args: unknown, ctx: CallContext) {
    const value = await handler(args, ctx)
    const fault = crossingFault(value)
    if (fault !== undefined) throw new TypeError(`its result cannot leave the thread: ${fault}`)
    return value
  }
  return { ...tool, handler: checked as ToolDefinition['handler'] }
}
