// `prompts/get`: checks required arguments and runs the handler.

import { HostError } from '../../http/errors.ts'
import type { Call } from '../calls/call.ts'
import { type HandlerSettings, runHandler } from '../calls/context.ts'
import { afterHandler, throwFailure } from '../calls/handler-outcome.ts'
import { convertResult, fitPromptResult, promptResult } from '../calls/results.ts'
import { shown } from '../client-limits.ts'
import type { CallContext, PromptDefinition } from '../definitions/define.ts'
import { resultTypeOf, withoutNulls } from '../wire/message.ts'
import type { GetPromptResult, PromptMessage } from '../wire/protocol.ts'
import { paramsOf } from './params.ts'

function checkArguments(prompt: PromptDefinition, all: Readonly<Record<string, unknown>>): Record<string, string> {
  const args = withoutNulls(all)
  const refuse = (detail: string) => new HostError('invalidParams', { detail: `prompt "${prompt.name}": ${detail}` })
  for (const [name, value] of Object.entries(args)) {
    if (typeof value !== 'string') throw refuse(`argument "${shown(name)}" must be a string`)
  }
  for (const [name, { required }] of Object.entries(prompt.arguments ?? {})) {
    if (required && !Object.hasOwn(args, name)) throw refuse(`argument "${name}" is required`)
  }
  return args as Record<string, string>
}

export function getPrompt(call: Call, settings: HandlerSettings): object | Promise<object> {
  const { name, arguments: given = {} } = paramsOf(call, 'prompts/get')
  const item = call.view.prompts.get(name)
  if (!item) throw new HostError('invalidParams', { detail: `unknown prompt "${shown(name)}"` })
  settings.authorize(call, item)
  const { definition } = item
  const args = checkArguments(definition, given)
  const handler = definition.handler as (args: Record<string, string>, ctx: CallContext) => unknown
  return afterHandler(
    () => runHandler(call, item, settings, ctx => handler(args, ctx)),
    value => {
      if (resultTypeOf(value)) return value as object
      const returned = value as string | PromptMessage[] | GetPromptResult
      return convertResult(() => fitPromptResult(promptResult(returned, definition.description), call.rules))
    },
    throwFailure,
  )
}
