// Creates tool definitions from operations.
import { type CallContext, type CallToolResult, defineTool, type ToolDefinition, ToolError } from '../../core/index.ts'
import { uncheckedSchema } from '../../core/plugin.ts'
import { InputRequired } from '../../core/transport.ts'
import { withLogin } from '../families/credentials/index.ts'
import { problemsOf } from '../families/upstream-calls/index.ts'
import { fillArguments } from './arguments.ts'
import type { HttpMethod, Operation, OperationArguments } from './operation.ts'
import type { Override, Source } from './options.ts'
import type { ApiTool } from './read-tool.ts'

/** Hints that follow from the method (RFC 9110, 9.2). */
const HINTS: Partial<Record<HttpMethod, object>> = {
  get: { readOnlyHint: true },
  head: { readOnlyHint: true },
  options: { readOnlyHint: true },
  put: { idempotentHint: true },
  delete: { idempotentHint: true },
}

export type SendRequest = (operation: Operation, args: OperationArguments, ctx: CallContext) => Promise<CallToolResult>

export function defineApiTool(
  tool: ApiTool,
  override: Override = {},
  source: Source,
  request: SendRequest,
): ToolDefinition {
  const { name, description, input, output, outputMode, operation, values } = tool
  const { title, timeout, concurrency, task } = override
  const access = override.access ?? source.access
  const annotations = { ...HINTS[operation.method], ...override.annotations }

  async function handler(args: OperationArguments, ctx: CallContext): Promise<CallToolResult> {
    const problems = await problemsOf(args, input.schema, 'input')
    if (problems !== undefined) throw new ToolError(`Invalid arguments for ${name}:\n${problems}`)
    const result = await withLogin(ctx, () => request(operation, fillArguments(args, values), ctx))
    // The host sends these requests to the client.
    if (result instanceof InputRequired) return result as never
    return output && outputMode === 'check' && !result.isError ? checkResult(result, output.schema) : result
  }

  return defineTool({
    name,
    description,
    input: uncheckedSchema(input.schema),
    handler,
    ...(output && { output: uncheckedSchema(output.schema) }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
    ...(title !== undefined && { title }),
    ...(access !== undefined && { access }),
    ...(timeout !== undefined && { timeout }),
    ...(concurrency !== undefined && { concurrency }),
    ...(task !== undefined && { task: task as NonNullable<ToolDefinition['task']> }),
  }) as unknown as ToolDefinition
}

async function checkResult(result: CallToolResult, schema: ApiTool['input']['schema']): Promise<CallToolResult> {
  const { structuredContent, content } = result
  const problems =
    structuredContent === undefined ? 'it is not JSON' : await problemsOf(structuredContent, schema, 'output')
  if (problems === undefined) return result
  const text = `The response of the API does not match the output schema:\n${problems}`
  return { content: [{ type: 'text', text }, ...content], isError: true }
}
