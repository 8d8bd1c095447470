// Sanitizes elicitation schemas of a server: keeps only keywords that the spec allows. The host validates responses, and a `pattern` or
// `$ref` could take unlimited time.
import { isObject } from '../../core/plugin.ts'

type Json = Readonly<Record<string, unknown>>

const FIELD = ['title', 'description', 'default', 'minLength', 'maxLength', 'format', 'minimum', 'maximum']
const CHOICE = ['type', 'enum', 'enumNames', 'const', 'title']
const LISTS = ['oneOf', 'anyOf']

const pick = (source: Json, keys: readonly string[]): Json =>
  Object.fromEntries(Object.entries(source).filter(([key]) => keys.includes(key)))

/** A value with its choices: `oneOf` and `anyOf` hold constants with titles. */
function choiceOf(source: unknown): Json {
  if (!isObject(source)) return {}
  const lists = LISTS.filter(key => Array.isArray(source[key])).map(key => [
    key,
    (source[key] as unknown[]).map(one => (isObject(one) ? pick(one, ['const', 'title']) : {})),
  ])
  return { ...pick(source, CHOICE), ...Object.fromEntries(lists) }
}

function fieldOf(source: unknown): Json {
  if (!isObject(source)) return {}
  const { items } = source
  return {
    ...choiceOf(source),
    ...pick(source, [...FIELD, 'minItems', 'maxItems']),
    ...(items !== undefined && { items: choiceOf(items) }),
  }
}

export function formOf(schema: unknown): Json {
  const { properties, required } = isObject(schema) ? schema : {}
  const fields = Object.entries(isObject(properties) ? properties : {}).map(([name, field]) => [name, fieldOf(field)])
  return {
    type: 'object',
    properties: Object.fromEntries(fields),
    ...(Array.isArray(required) && { required: required.filter(name => typeof name === 'string') }),
  }
}
