// Parses call arguments: a JSON object (inline, file or stdin), or `name=value` pairs according to the tool's input schema.

import { isObject } from '../../client/text.ts'
import { errorText } from '../../core/http/errors.ts'
import { didYouMean } from '../../core/mcp/nearest.ts'
import { type CommandContext, readSource, usage } from '../context.ts'
import { findInexactNumber } from '../exact-numbers.ts'
import { serverText, shellWord } from '../text.ts'
import type { ListedTool } from './responses.ts'

type InputContext = Pick<CommandContext, 'stdin' | 'cwd'>

type ToolArguments = Record<string, unknown>

type InputSchema = ListedTool['inputSchema']

function refuseInexact(json: string, name?: string): void {
  const number = findInexactNumber(json)
  if (number === undefined) return
  const what = name === undefined || number !== json.trim() ? `the number ${number}` : `${name} is ${number}: it`
  throw usage(`${serverText(what)} would lose digits; write it as a string if the tool accepts one`)
}

async function readDocument(given: string, context: InputContext): Promise<ToolArguments> {
  const text = await readSource(context, given, 'the arguments')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw usage(`the arguments are not JSON: ${errorText(cause)}`, cause)
  }
  refuseInexact(text)
  if (isObject(value)) return value as ToolArguments
  throw usage('the arguments are not a JSON object, such as {"a": 1}')
}

const typesOf = (schema: unknown): readonly string[] =>
  (isObject(schema) ? [schema['type']].flat() : []).filter(one => typeof one === 'string')

const typeOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value

const fits = (value: unknown, types: readonly string[]): boolean =>
  types.length === 0 || types.includes(typeOf(value)) || (typeof value === 'number' && types.includes('number'))

/** Reads a string if the schema requires one, otherwise JSON. Without a schema, invalid JSON is a string. */
function readValue(name: string, text: string, schema: unknown): unknown {
  const types = typesOf(schema)
  if (types.length === 1 && types[0] === 'string') return text
  let value: unknown = text
  try {
    value = JSON.parse(text)
  } catch {}
  if (fits(value, types)) {
    if (value !== text) refuseInexact(text, name)
    return value
  }
  if (fits(text, types)) return text
  const example = types[0] === 'array' ? `; example: ${shellWord(`${name}=${JSON.stringify(text.split(','))}`)}` : ''
  throw usage(`${name} must be of type ${serverText(types.join(' or '))}, not ${JSON.stringify(text)}${example}`)
}

function readPair(pair: string, { properties }: InputSchema): [name: string, value: unknown] {
  const [, name, text = ''] = /^([^=]+)=([\s\S]*)$/.exec(pair) ?? []
  if (name === undefined) {
    throw usage(`"${pair}" is not an argument; write name=value for each, or one JSON object, @file or -`)
  }
  const known = properties && Object.keys(properties)
  if (known && known.length > 0 && !Object.hasOwn(properties, name)) {
    throw usage(`the tool has no argument "${name}"; ${serverText(didYouMean(name, known))}`)
  }
  return [name, readValue(name, text, properties?.[name])]
}

export async function readToolArguments(
  given: readonly string[],
  schema: InputSchema | undefined,
  context: InputContext,
): Promise<ToolArguments> {
  const [first] = given
  if (first === undefined) return {}
  const isDocument = first === '-' || first.startsWith('@') || first.trimStart().startsWith('{')
  if (!isDocument) return Object.fromEntries(given.map(pair => readPair(pair, schema ?? {})))
  if (given.length > 1) throw usage(`unexpected "${given[1]}" after the JSON arguments`)
  return readDocument(first, context)
}
