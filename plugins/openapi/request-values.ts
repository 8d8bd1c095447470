// Serializes argument values by the parameter styles of OpenAPI 3.0 and 3.1, which follow RFC 6570.
import { isObject } from '../../core/plugin.ts'
import type { ParameterStyle } from './operation.ts'

/** An argument that cannot be sent. The message is for the model and starts with the name of the argument. */
export class ArgumentFault extends Error {}

export interface ValueStyle {
  readonly name: string
  readonly style: ParameterStyle
  readonly explode: boolean
  /** Keeps reserved characters of query values. */
  readonly allowReserved?: boolean
  /** Throws for a name that an object key must not set. */
  readonly checkName?: (name: string) => void
}

type Encode = (text: string) => string
type Pair = readonly [name: string, value: string]

const percent = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`

const UNRESERVED = /^[\w.~-]*$/

/** Encodes everything but the unreserved characters of RFC 3986. */
export function encodeText(text: string): string {
  if (UNRESERVED.test(text)) return text
  try {
    return encodeURIComponent(text).replace(/[!'()*]/g, percent)
  } catch {
    throw new ArgumentFault('is not valid Unicode: it contains half of a surrogate pair')
  }
}

/** Keeps reserved characters except `&`, `#` and `+`, which would change the query, and `%`, which would be decoded. */
const encodeReserved: Encode = text =>
  encodeText(text).replace(/%(?:3A|2F|3F|5B|5D|40|21|24|27|28|29|2A|2C|3B|3D)/g, decodeURIComponent)

/** Converts a value to text. Undefined for null, which RFC 6570 omits. Nested objects have no style: they are JSON. */
export function toText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (value === undefined || value === null) return undefined
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new ArgumentFault(`is ${value}, which is beyond 2^53: JSON numbers of this size are not exact`)
  }
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function toTexts(values: readonly unknown[]): string[] {
  return values.flatMap(value => toText(value) ?? [])
}

function toMembers(value: Readonly<Record<string, unknown>>): Pair[] {
  return Object.entries(value).flatMap(([name, member]) => {
    const text = toText(member)
    return text === undefined ? [] : [[name, text] as const]
  })
}

/** Returns array items or object members: `R,100` or, exploded, `R=100`. Undefined for a primitive. */
function toList(value: unknown, explode: boolean, encode: Encode): string[] | undefined {
  if (Array.isArray(value)) return toTexts(value).map(encode)
  if (!isObject(value)) return undefined
  const members = toMembers(value)
  return explode ? members.map(([name, value]) => `${encode(name)}=${encode(value)}`) : members.flat().map(encode)
}

/** Formats `blue`, `blue,black` or `R=100,G=200`. Undefined for a value without text. */
export function simpleValue(value: unknown, explode: boolean, encode: Encode): string | undefined {
  const list = toList(value, explode, encode)
  if (list) return list.length === 0 ? undefined : list.join(',')
  const text = toText(value)
  return text === undefined ? undefined : encode(text)
}

function labelValue(value: unknown, explode: boolean): string | undefined {
  const list = toList(value, explode, encodeText)
  const text = list ? list.join(explode ? '.' : ',') : simpleValue(value, explode, encodeText)
  return text === undefined || list?.length === 0 ? undefined : `.${text}`
}

function matrixValue(value: unknown, explode: boolean, name: string): string | undefined {
  const label = encodeText(name)
  const named = (text: string) => (text === '' ? `;${label}` : `;${label}=${text}`)
  if (explode && Array.isArray(value)) return toTexts(value).map(encodeText).map(named).join('') || undefined
  const list = toList(value, explode, encodeText)
  if (list?.length === 0) return undefined
  if (list) return explode ? list.map(member => `;${member}`).join('') : named(list.join(','))
  const text = simpleValue(value, explode, encodeText)
  return text === undefined ? undefined : named(text)
}

/** Returns the text that replaces a path parameter. Undefined for a value without text. */
export function pathValue({ style, explode, name }: ValueStyle, value: unknown): string | undefined {
  if (style === 'matrix') return matrixValue(value, explode, name)
  if (style === 'label') return labelValue(value, explode)
  return simpleValue(value, explode, encodeText)
}

/** Returns members of nested objects and items by index, such as `a[b][0]=c`, as common parsers expect. */
function deepPairs(name: string, value: unknown, checkName: ValueStyle['checkName'], found: Pair[] = []): Pair[] {
  if (isObject(value) || Array.isArray(value)) {
    for (const [key, member] of Object.entries(value)) {
      checkName?.(`${name}[${key}]`)
      deepPairs(`${name}[${key}]`, member, checkName, found)
    }
    return found
  }
  const text = toText(value)
  if (text !== undefined) found.push([name, text])
  return found
}

const DELIMITERS: Readonly<Partial<Record<ParameterStyle, string>>> = {
  spaceDelimited: '%20',
  pipeDelimited: '%7C',
}

/** Returns `name=value` parts of a query, a form or a cookie. */
export function namedValues(
  { style, explode, name, allowReserved = false, checkName }: ValueStyle,
  value: unknown,
): string[] {
  const encode = allowReserved ? encodeReserved : encodeText
  const part = (text: string) => `${encodeText(name)}=${text}`
  if (style === 'deepObject')
    return deepPairs(name, value, checkName).map(([at, text]) => `${encodeText(at)}=${encode(text)}`)
  if (explode && Array.isArray(value)) return toTexts(value).map(text => part(encode(text)))
  if (explode && checkName && isObject(value)) Object.keys(value).forEach(checkName)
  const list = toList(value, explode, encode)
  if (list) {
    if (list.length === 0) return []
    return explode ? list : [part(list.join(DELIMITERS[style] ?? ','))]
  }
  const text = toText(value)
  return text === undefined ? [] : [part(encode(text))]
}

/** Returns all texts of a path value, which are checked before they are encoded. */
export function textsIn(value: unknown): string[] {
  if (Array.isArray(value)) return toTexts(value)
  if (isObject(value)) return toMembers(value).flat()
  return toTexts([value])
}
