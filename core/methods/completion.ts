// `completion/complete`: values for a prompt's argument or a template's variable (server/utilities/completion).
import { type Call, isObject } from '../call.ts'
import type { CatalogItem } from '../catalog.ts'
import { checkUri, shown } from '../client-said.ts'
import { type HandlerSettings, runHandler } from '../context.ts'
import type { Completer } from '../define.ts'
import { HostError } from '../errors.ts'
import type { Completion } from '../protocol.ts'
import { admitCaller } from './admission.ts'
import { findResource } from './resources.ts'

/** Most values that may travel in one answer. */
const MAX_VALUES = 100

const refuse = (detail: string) => new HostError('invalidParams', { detail })

function findCompleter(
  { view }: Call,
  ref: unknown,
  argument: string,
): { item: CatalogItem; completer?: Completer | undefined } {
  if (!isObject(ref)) throw refuse('completion/complete needs a ref')
  if (ref['type'] === 'ref/prompt') {
    const item = view.prompts.get(String(ref['name']))
    if (!item) throw refuse(`unknown prompt "${shown(String(ref['name']))}"`)
    const known = item.definition.arguments ?? {}
    if (!Object.hasOwn(known, argument)) throw refuse(`prompt "${item.key}" has no argument "${shown(argument)}"`)
    return { item, completer: known[argument]?.complete }
  }
  if (ref['type'] !== 'ref/resource') throw refuse('the ref\'s type must be "ref/prompt" or "ref/resource"')
  const uri = String(ref['uri'])
  checkUri(uri)
  const item = view.templates.find(({ key }) => key === uri) ?? findResource(view, uri)?.item
  if (!item) throw refuse(`unknown resource "${shown(uri)}"`)
  if (!item.template?.variables.includes(argument))
    throw refuse(`resource "${item.key}" has no variable "${shown(argument)}"`)
  const completers = item.definition.complete ?? {}
  return { item, completer: Object.hasOwn(completers, argument) ? completers[argument] : undefined }
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
  const { ref, argument, context } = call.params
  if (!isObject(argument) || typeof argument['name'] !== 'string' || typeof argument['value'] !== 'string') {
    throw refuse('completion/complete needs an argument with name and value')
  }
  const { name, value } = argument
  const { item, completer } = findCompleter(call, ref, name)
  const chosen = isObject(context) && isObject(context['arguments']) ? context['arguments'] : {}
  const given = { arguments: chosen as Record<string, string> }
  admitCaller(call, item, settings)
  if (!completer) return { completion: toCompletion([]) }
  const values = await runHandler(call, item, settings, ctx => completer(value, given, ctx))
  return { completion: toCompletion(values as string[] | Completion) }
}
