// Elicitation during a call (form mode): prompts for each field, or declines without a terminal.
import { isObject } from '../../client/text.ts'
import type { ElicitParams, ElicitResult, JsonObject } from '../../core/mcp/wire/protocol.ts'
import { RemoteError } from '../../remote/index.ts'
import type { CommandContext } from '../context.ts'
import { isInteractive, prompt } from './terminal.ts'

type Content = NonNullable<ElicitResult['content']>
type Value = Content[string]
type Schema = Readonly<Record<string, unknown>>

interface Choice {
  readonly value: string
  readonly title: string
}

const toChoices = (list: unknown): Choice[] | undefined =>
  Array.isArray(list)
    ? list.flatMap(one =>
        isObject(one) && typeof one['const'] === 'string'
          ? [{ value: one['const'], title: String(one['title'] ?? one['const']) }]
          : [],
      )
    : undefined

function readChoices(schema: Schema): readonly Choice[] | undefined {
  const { enum: values, enumNames: names, oneOf, anyOf } = schema
  const list = toChoices(oneOf) ?? toChoices(anyOf)
  if (list && list.length > 0) return list
  if (!Array.isArray(values)) return undefined
  return values.map((value, index) => ({
    value: String(value),
    title: Array.isArray(names) ? String(names[index] ?? value) : String(value),
  }))
}

function matchChoice(text: string, choices: readonly Choice[]): string | undefined {
  const byNumber = /^\d+$/.test(text) ? choices[Number(text) - 1] : undefined
  return (choices.find(({ value }) => value === text) ?? byNumber)?.value
}

export function readField(text: string, schema: Schema): Value | undefined {
  const { type, items } = schema
  if (type === 'boolean')
    return /^(?:y|yes|true)$/i.test(text) ? true : /^(?:n|no|false)$/i.test(text) ? false : undefined
  if (type === 'number' || type === 'integer') {
    const number = text === '' ? Number.NaN : Number(text)
    return Number.isFinite(number) && (type === 'number' || Number.isInteger(number)) ? number : undefined
  }
  if (type === 'array') {
    const choices = isObject(items) ? readChoices(items) : undefined
    const parts = text
      .split(',')
      .map(part => part.trim())
      .filter(Boolean)
    const picked = choices ? parts.map(part => matchChoice(part, choices)) : parts
    return picked.some(part => part === undefined) ? undefined : (picked as string[])
  }
  const choices = readChoices(schema)
  return choices ? matchChoice(text, choices) : text
}

const expectedText = ({ type }: Schema): string =>
  type === 'boolean'
    ? 'yes or no'
    : type === 'integer'
      ? 'a whole number'
      : type === 'number'
        ? 'a number'
        : 'one of the values above'

function show({ say }: CommandContext, name: string, schema: Schema, required: boolean): void {
  const { title, description, items } = schema
  const label = [title ?? name, description].filter(text => typeof text === 'string').join(': ')
  say(`${label}${required ? '' : ' (may be empty)'}`)
  const choices = readChoices(schema) ?? (isObject(items) ? readChoices(items) : undefined)
  for (const [index, { value, title: words }] of (choices ?? []).entries()) {
    say(`  ${index + 1}  ${words === value ? value : `${value} (${words})`}`)
  }
}

async function promptField(
  context: CommandContext,
  name: string,
  schema: Schema,
  required: boolean,
  signal: AbortSignal,
): Promise<Value | undefined> {
  show(context, name, schema, required)
  const { default: preset, type } = schema
  const hint = type === 'boolean' ? ' (y/n)' : type === 'array' ? ' (separated by commas)' : ''
  const offered = preset === undefined ? '' : ` [${Array.isArray(preset) ? preset.join(',') : String(preset)}]`
  for (;;) {
    const text = (await prompt(context, `  ${name}${hint}${offered}: `, { signal }))?.trim()
    if (text === undefined) return undefined
    if (text === '' && preset !== undefined) return preset as Value
    if (text === '' && !required) return undefined
    const value = readField(text, schema)
    if (value !== undefined && (text !== '' || type === 'string')) return value
    context.say(`  expected ${expectedText(schema)}`)
  }
}

const INVALID_PARAMS = -32_602

/** Only forms are supported. */
export function readElicitation(params: JsonObject): ElicitParams {
  const { mode = 'form', message, requestedSchema } = params
  if (mode !== 'form' || typeof message !== 'string' || !isObject(requestedSchema))
    throw new RemoteError('rpc', 'only elicitation with a form is supported', { code: INVALID_PARAMS })
  return params as unknown as ElicitParams
}

async function promptUser(context: CommandContext, params: ElicitParams, signal: AbortSignal): Promise<ElicitResult> {
  const { requestedSchema } = params as {
    requestedSchema: { properties?: Record<string, Schema>; required?: string[] }
  }
  const { properties = {}, required = [] } = requestedSchema
  context.say(`The server asks: ${params.message}`)
  const content: Content = {}
  for (const [name, schema] of Object.entries(properties)) {
    const value = await promptField(context, name, schema, required.includes(name), signal)
    if (value !== undefined) content[name] = value
  }
  const reply = (await prompt(context, 'Send this? y (yes), n (decline), c (dismiss without an answer): ', { signal }))
    ?.trim()
    .toLowerCase()
  if (reply === 'y' || reply === 'yes' || reply === '') return { action: 'accept', content }
  return { action: reply === 'n' || reply === 'no' ? 'decline' : 'cancel' }
}

export function createElicitor(
  context: CommandContext,
  signal: AbortSignal,
): (params: ElicitParams) => Promise<ElicitResult> {
  let queue: Promise<unknown> = Promise.resolve()
  return params => {
    if (!isInteractive(context)) {
      context.say(`The server asks: ${params.message}`)
      context.say('Declined: there is no terminal to ask for input.')
      return Promise.resolve({ action: 'decline' })
    }
    const answer = queue.then(() => promptUser(context, params, signal))
    queue = answer.catch(() => undefined)
    return answer
  }
}
