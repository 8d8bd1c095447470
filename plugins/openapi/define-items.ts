// Creates tools from operations, and resources and resource templates from GET operations.
import {
  type CallContext,
  type CallToolResult,
  type ContentBlock,
  defineResource,
  defineTool,
  type ResourceDefinition,
  type ToolDefinition,
  ToolError,
} from '../../core/index.ts'
import { uncheckedSchema } from '../../core/plugin.ts'
import { InputRequired } from '../../core/transport.ts'
import { withLogin } from '../families/credentials/index.ts'
import { problemsOf } from '../families/upstream-calls/index.ts'
import { fillArguments, setValue } from './arguments.ts'
import { freeName } from './names.ts'
import type { HttpMethod, Operation, OperationArguments, Parameter } from './operation.ts'
import type { Override, Source } from './options.ts'
import type { ApiTool } from './read-tool.ts'
import { isNotFound } from './response.ts'

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

/** A text block has no media type. The host then uses that of the definition. */
function contentsOf(block: ContentBlock, isJson: boolean) {
  if (block.type === 'text') return { text: block.text, ...(isJson && { mimeType: 'application/json' }) }
  if (block.type === 'resource') {
    const { uri: _, ...contents } = block.resource
    return contents
  }
  const { data, mimeType } = block as Extract<ContentBlock, { type: 'image' }>
  return { blob: data, mimeType }
}

/** Converts a variable, which is text, to a number or boolean if the schema requires it. */
async function typedValue(text: string, schema: Parameter['schema']): Promise<unknown> {
  if ((await problemsOf(text, schema, 'output')) === undefined) return text
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' ? text : value
  } catch {
    return text
  }
}

/** Creates the resource of a tool; undefined if the options do not select its operation. */
export function defineApiResource(
  toolset: string,
  { name, description, input, operation, pathArguments, values }: ApiTool,
  override: Override = {},
  source: Source,
  request: SendRequest,
): ResourceDefinition | undefined {
  if (!pathArguments) return undefined
  const taken = new Set<string>(['uri'])
  const variables = pathArguments.map(parameter => {
    const free = freeName(parameter.name.replaceAll(/\W/g, '_'), 'path', taken)
    taken.add(free)
    return { name: free, parameter, schema: { ...parameter.schema, $defs: operation.schemas } }
  })
  const uri = [`openapi://${encodeURIComponent(toolset)}/${name}`, ...variables.map(one => `{${one.name}}`)].join('/')
  const access = override.access ?? source.access
  const [mimeType] = operation.accepts

  async function read(args: Readonly<Record<string, string>>, ctx: CallContext): Promise<CallToolResult> {
    let given: OperationArguments = {}
    for (const variable of variables) {
      const value = await typedValue(args[variable.name] ?? '', variable.schema)
      given = setValue(given, variable.parameter.argument, { value })
    }
    const problems = await problemsOf(given, input.schema, 'input')
    if (problems !== undefined) throw new ToolError(`Invalid URI for ${name}:\n${problems}`)
    return request(operation, fillArguments(given, values), ctx)
  }

  return defineResource({
    name,
    description,
    ...(variables.length > 0 ? { uriTemplate: uri } : { uri }),
    ...(operation.accepts.length === 1 && mimeType !== undefined && !mimeType.includes('*') && { mimeType }),
    ...(override.title !== undefined && { title: override.title }),
    ...(access !== undefined && { access }),
    async handler(args, ctx) {
      const result = await withLogin(ctx, () => read(args, ctx))
      // The host sends these requests to the client.
      if (result instanceof InputRequired) return result as never
      const { content, structuredContent, isError } = result
      if (isNotFound(result)) return undefined
      const [first, ...notes] = content
      if (isError) throw new ToolError(first?.type === 'text' ? first.text : 'The API responded with an error.')
      // Notes describe the response, such as how to get the next page.
      return [
        ...(first ? [contentsOf(first, structuredContent !== undefined)] : []),
        ...notes.map(one => ({ mimeType: 'text/plain', ...contentsOf(one, false) })),
      ] as never
    },
  })
}
