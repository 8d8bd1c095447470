// `completion/complete` for prompt arguments and template variables (server/utilities/completion).

import { HostError } from '../../http/errors.ts'
import type { Call } from '../calls/call.ts'
import { type HandlerSettings, runHandler } from '../calls/context.ts'
import { checkUri, shown } from '../client-limits.ts'
import type { PromptItem, ResourceItem } from '../definitions/catalog.ts'
import type { Completer } from '../definitions/define.ts'
import type { Completion } from '../wire/protocol.ts'
import { paramsOf } from './params.ts'
import { findResource } from './resources.ts'

const MAX_VALUES = 100

const refuse = (detail: string) => new HostError('invalidParams', { detail })

/** Finds only items that the caller can use, so that the error reveals nothing about others. */
function findItem(call: Call, settings: HandlerSettings): PromptItem | ResourceItem {
  const { view } = call
  const { ref } = paramsOf(call, 'completion/complete')
  if (ref.type === 'ref/resource') checkUri(ref.uri)
  const item =
    ref.type === 'ref/prompt'
      ? view.prompts.get(ref.name)
      : (view.templates.find(({ key }) => key === ref.uri) ?? findResource(view, ref.uri)?.item)
  if (!item) {
    throw refuse(
      ref.type === 'ref/prompt' ? `unknown prompt "${shown(ref.name)}"` : `unknown resource "${shown(ref.uri)}"`,
    )
  }
  settings.authorize(call, item)
  return item
}

function completerOf(item: PromptItem | ResourceItem, argument: string): Completer | undefined {
  if (item.kind === 'prompts') {
    const known = item.definition.arguments ?? {}
    if (!Object.hasOwn(known, argument)) throw refuse(`prompt "${item.key}" has no argument "${shown(argument)}"`)
    return known[argument]?.complete
  }
  if (!item.template?.variables.includes(argument)) {
    throw refuse(`resource "${item.key}" has no variable "${shown(argument)}"`)
  }
  const completers = item.definition.complete ?? {}
  return Object.hasOwn(completers, argument) ? completers[argument] : undefined
}

function toCompletion(value: string[] | Completion): Completion {
  const { values, total, hasMore }: Completion = Array.isArray(value) ? { values: value, total: value.length } : value
  return {
    values: values.slice(0, MAX_VALUES),
    ...(total !== undefined && { total }),
    hasMore: hasMore ?? values.length > MAX_VALUES,
  }
}

export async function complete(call: Call, settings: HandlerSettings): Promise<object> {
  const { argument, context } = paramsOf(call, 'completion/complete')
  const { name, value } = argument
  const item = findItem(call, settings)
  const completer = completerOf(item, name)
  const chosen = { arguments: context?.arguments ?? {} }
  if (!completer) return { completion: toCompletion([]) }
  const values = await runHandler(call, item, settings, ctx => completer(value, chosen, ctx))
  return { completion: toCompletion(values as string[] | Completion) }
}
