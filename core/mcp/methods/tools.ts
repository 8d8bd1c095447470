// `tools/call`: validates arguments, runs the handler, and creates the result.

import { HostError } from '../../http/errors.ts'
import type { Call } from '../calls/call.ts'
import { type HandlerSettings, runHandler, usageOf } from '../calls/context.ts'
import { throwFailure } from '../calls/handler-outcome.ts'
import {
  convertResult,
  errorResult,
  fitToolResult,
  isWholeResult,
  structuredResult,
  toolResult,
  withoutStructured,
} from '../calls/results.ts'
import { shown } from '../client-limits.ts'
import type { ToolItem } from '../definitions/catalog.ts'
import type { CallContext } from '../definitions/define.ts'
import { type IsolationLimits, moduleOf } from '../definitions/isolation-limits.ts'
import { ToolError } from '../definitions/tool-error.ts'
import type { Checked } from '../schema/explain-errors.ts'
import { resultTypeOf } from '../wire/message.ts'
import type { ParamsOf } from './params.ts'

export function callTool(call: Call, settings: HandlerSettings): object | Promise<object> {
  const { name, arguments: args = {} } = call.params as unknown as ParamsOf['tools/call']
  const tool = call.view.tools.get(name)
  if (!tool) throw new HostError('invalidParams', { detail: `unknown tool "${shown(name)}"` })
  if (call.view.denialOf(tool)) settings.authorize(call, tool)
  const checked = tool.input.validate(args)
  return checked instanceof Promise
    ? checked.then(result => runTool(call, settings, tool, result))
    : runTool(call, settings, tool, checked)
}

function runTool(call: Call, settings: HandlerSettings, tool: ToolItem, checked: Checked): object | Promise<object> {
  // Invalid arguments are a result, so that the model can correct them (server/tools).
  if (!checked.ok) return errorResult(`Invalid arguments for ${tool.key}:\n${checked.problems}`)
  const { value } = checked
  const chain = tool.keys.length === 0 ? undefined : settings.toolKeys.chainOf(call.offer.route, tool)
  if (!chain) return runHandlerOf(call, settings, tool, value)
  return chain(call, replacement => runHandlerOf(call, settings, tool, value, replacement))
}

function runHandlerOf(
  call: Call,
  settings: HandlerSettings,
  tool: ToolItem,
  args: unknown,
  replacement?: (args: never, ctx: CallContext) => unknown,
): object | Promise<object> {
  const handler = (replacement ?? tool.definition.handler) as (args: unknown, ctx: CallContext) => unknown
  const limits = settings.limits.of(tool)
  const { queue, isolate } = limits
  const queueEntry = queue?.enter(call)
  const handle =
    isolate && !replacement
      ? (ctx: CallContext) => runIsolated(call, settings, tool, isolate, args, ctx)
      : (ctx: CallContext) => handler(args, ctx)
  try {
    const value = runHandler(call, tool, settings, handle, limits, queueEntry)
    const result = value instanceof Promise ? value.then(late => finish(call, tool, late)) : finish(call, tool, value)
    return result instanceof Promise ? result.catch(error => failed(call, settings, tool, error)) : result
  } catch (error) {
    return failed(call, settings, tool, error)
  }
}

function runIsolated(
  call: Call,
  { isolationOn, contextOn, fetchTimeout, headersFor }: HandlerSettings,
  { definition }: ToolItem,
  limits: IsolationLimits,
  args: unknown,
  ctx: CallContext,
): Promise<unknown> {
  const origin = moduleOf(definition)
  if (!origin) throw new Error(`there is no known module for ${definition.name}`)
  const used = usageOf(ctx)
  const { route } = call.offer
  const { functions, values } = contextOn(route)
  const headers = headersFor(call)
  const members = { functions, values }
  const isolated = { tool: definition, origin, limits, used, args, call, ctx, members, fetchTimeout, headers }
  return isolationOn(route).run(isolated)
}

function finish(call: Call, tool: ToolItem, value: unknown): object | Promise<object> {
  if (resultTypeOf(value)) return value as object
  if (tool.output) return finishStructured(call, tool, tool.output, value)
  return convertResult(() => fitToolResult(toolResult(value), call.rules))
}

function finishStructured(
  { rules }: Call,
  { key }: ToolItem,
  output: NonNullable<ToolItem['output']>,
  value: unknown,
): object | Promise<object> {
  const whole = isWholeResult(value) ? value : undefined
  const content = whole ? whole.structuredContent : value
  const send = (checked: Checked) =>
    convertResult(() => {
      if (checked.ok) return fitToolResult(structuredResult(checked.value, whole), rules)
      if (whole?.isError) return fitToolResult(withoutStructured(whole), rules)
      throw new TypeError(`the result of ${key} does not match its output schema: ${checked.problems}`)
    })
  if (whole?.isError && content === undefined) return send({ ok: false, problems: '' })
  const checked = output.encode(content)
  return checked instanceof Promise ? checked.then(send) : send(checked)
}

function failed(call: Call, settings: HandlerSettings, tool: ToolItem, error: unknown): object {
  if (ToolError.is(error)) return errorResult(error.message)
  if (HostError.is(error) && error.kind === 'callTimeout') return errorResult(`${tool.key}: ${error.message}`)
  if (HostError.is(error)) throwFailure(error)
  settings.logFailure(call, error)
  return errorResult(`${tool.key} failed`)
}
