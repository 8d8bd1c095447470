// Builds the path, query, headers and cookies of a request from arguments, and refuses arguments that change the request.
import { isJsonType } from './media-types.ts'
import type { ArgumentPath, Operation, OperationArguments, Parameter } from './operation.ts'
import { withNameChecks } from './request-names.ts'
import {
  ArgumentFault,
  encodeText,
  namedValues,
  pathValue,
  simpleValue,
  textsIn,
  toText,
  type ValueStyle,
} from './request-values.ts'

/** Headers that belong to the connection, the credentials or a proxy, or that replace the method or path. */
const RESERVED =
  /^(?:accept|accept-encoding|authorization|connection|content-(?:encoding|length|type)|cookie2?|dpop|expect|forwarded|host|http2-settings|keep-alive|mcp-.*|proxy-.*|set-cookie2?|te|trailer|transfer-encoding|upgrade|via|x-forwarded-.*|x-http-method.*|x-method-override|x-original-(?:host|method|url)|x-real-ip|x-rewrite-url)$/i

/** Header names that are never arguments, even if the document declares them. */
export const isReservedHeader = (name: string): boolean => RESERVED.test(name) || !TOKEN.test(name)

/** Matches names of headers and cookies (RFC 9110, `token`). */
export const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/

const CONTROL = /\p{Cc}/u

/** Matches the characters of a header value: visible Latin-1, space and tab. */
const HEADER_VALUE = /^[\t\u0020-\u007e\u00a0-\u00ff]*$/

/** Matches texts without characters that a server could decode to a path. */
const PLAIN_SEGMENT = /^[\w~:@, -]*$/

/** Matches invalid UTF-8 that some servers decode to `.`, `/` or `\`. */
const OVERLONG = /%(?:c[01]%[89ab][\da-f]|e0%[89][\da-f]%[89ab][\da-f]|f0%8[\da-f]%[89ab][\da-f]%[89ab][\da-f])/i

const MAX_DECODINGS = 4

/** True for dot segments. Servers can drop the parameters of a segment (`..;x`) and the space around it. */
function isDotSegment(segment: string): boolean {
  const bare = segment.split(';', 1)[0]?.trim()
  return bare === '.' || bare === '..'
}

function decodeOnce(text: string): string {
  return text.replace(/(?:%[\da-f]{2})+/gi, encoded => {
    try {
      return decodeURIComponent(encoded)
    } catch {
      return encoded
    }
  })
}

/** Throws for a text that contains a path, also after decoding. */
function checkPathText(text: string): void {
  if (PLAIN_SEGMENT.test(text)) return
  let decoded = text
  for (let count = 0; ; count++) {
    if (CONTROL.test(decoded)) throw new ArgumentFault('contains a control character')
    if (OVERLONG.test(decoded)) throw new ArgumentFault('contains invalid UTF-8')
    // Servers also treat compatibility forms such as U+FF0E as dots.
    const plain = decoded.normalize('NFKC')
    if (plain.includes('\\')) throw new ArgumentFault('contains a backslash')
    if (plain.split('/').some(isDotSegment)) throw new ArgumentFault('contains the path segment "." or ".."')
    const next = decodeOnce(decoded)
    if (next === decoded) return
    if (count === MAX_DECODINGS) throw new ArgumentFault('is percent-encoded too often')
    decoded = next
  }
}

export const argumentName = (path: ArgumentPath): string => path.join('.')

export function argumentAt(args: OperationArguments, path: ArgumentPath): unknown {
  let value: unknown = args
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Readonly<Record<string, unknown>>)[key]
  }
  return value
}

export function forArgument<Value>(path: ArgumentPath, build: () => Value): Value {
  try {
    return build()
  } catch (error) {
    if (!(error instanceof ArgumentFault)) throw error
    throw new ArgumentFault(`The argument "${argumentName(path)}" ${error.message}.`)
  }
}

const toStyle = ({ name, style = 'simple', explode, allowReserved }: Parameter): ValueStyle => ({
  name,
  style,
  explode,
  allowReserved,
})

/** Serializes a parameter with `content` as one text in its media type. */
function contentText(type: string, value: unknown): string | undefined {
  return isJsonType(type) && value !== undefined ? JSON.stringify(value) : toText(value)
}

function styleValue(parameter: Parameter, value: unknown): { readonly style: ValueStyle; readonly value: unknown } {
  const style = toStyle(parameter)
  if (parameter.contentType === undefined) return { style, value }
  const text = contentText(parameter.contentType, value)
  return { style: { ...style, style: parameter.in === 'path' ? 'simple' : 'form', explode: false }, value: text }
}

const encodeLiteral = (text: string): string =>
  text.replace(/%(?![\da-f]{2})/gi, '%25').replace(/[^\w.~!$&'()*+,;=:@/%-]+/g, encodeText)

type Part = string | Parameter

function readTemplate(template: string, byName: ReadonlyMap<string, Parameter>): Part[] {
  return template
    .split(/(\{[^{}]*\})/)
    .filter(part => part !== '')
    .map(part => (part.startsWith('{') ? (byName.get(part.slice(1, -1)) ?? encodeLiteral(part)) : encodeLiteral(part)))
}

/** Matches the start of possible dot segments. All other characters are already encoded. */
const MAYBE_DOTS = /\/(?:\.|%2e)/i

export function createPath({ baseUrl, path, parameters }: Operation): (args: OperationArguments) => string {
  const base = new URL(baseUrl)
  const root = base.pathname.replace(/\/$/, '')
  const [template = ''] = path.split(/[?#]/, 1)
  const inPath = parameters.filter(parameter => parameter.in === 'path')
  const parts = readTemplate(template, new Map(inPath.map(parameter => [parameter.name, parameter])))

  function partText(part: Part, args: OperationArguments): string {
    if (typeof part === 'string') return part
    return forArgument(part.argument, () => {
      const { style, value } = styleValue(part, argumentAt(args, part.argument))
      for (const text of textsIn(value)) checkPathText(text)
      const text = pathValue(style, value)
      if (text === undefined || text === '' || (text === '.' && style.style === 'label')) {
        throw new ArgumentFault('must not be empty, because it is part of the path')
      }
      return text
    })
  }

  return args => {
    let full = root
    for (const part of parts) full += partText(part, args)
    // The URL parser removes dot segments, so any that are left change the path.
    if (MAYBE_DOTS.test(full) && new URL(base.origin + full).pathname !== full) {
      throw new ArgumentFault('The arguments change the path of the request.')
    }
    return full
  }
}

/** Builds the query of one operation, without `?`. `owned`: names that the credentials set. */
export function createQuery(operation: Operation, owned: ReadonlySet<string>): (args: OperationArguments) => string[] {
  const { path } = operation
  const literal = /\?([^#]*)/.exec(path)?.[1]
  const fixed = literal ? [encodeLiteral(literal)] : []
  const taken = [...owned, ...new URLSearchParams(literal).keys()]
  const inQuery = withNameChecks(operation, 'query', taken).filter(({ parameter: { name } }) => !owned.has(name))
  return args =>
    inQuery.reduce<string[]>((found, { parameter, checkName }) => {
      const value = argumentAt(args, parameter.argument)
      if (value === undefined) return found
      found.push(
        ...forArgument(parameter.argument, () => {
          const { style, value: text } = styleValue(parameter, value)
          return namedValues({ ...style, checkName }, text)
        }),
      )
      return found
    }, fixed.slice())
}

function checkHeader(text: string): string {
  if (CONTROL.test(text.replaceAll('\t', ' '))) throw new ArgumentFault('contains a control character')
  if (!HEADER_VALUE.test(text)) throw new ArgumentFault('contains characters that are invalid in headers')
  return text.trim()
}

/** Escapes JSON to ASCII for a header. */
const toAsciiJson = (json: string): string =>
  json.replace(/[\u007f-\uffff]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Builds the headers of one operation: names and values in turn. `owned`: lower-case names that the host sets. */
export function createHeaders(
  { parameters }: Operation,
  owned: ReadonlySet<string>,
): (args: OperationArguments, headers: string[]) => void {
  const inHeader = parameters.filter(
    ({ in: place, name }) => place === 'header' && !isReservedHeader(name) && !owned.has(name.toLowerCase()),
  )
  return (args, headers) => {
    for (const parameter of inHeader) {
      const value = argumentAt(args, parameter.argument)
      if (value === undefined) continue
      const text = forArgument(parameter.argument, () => {
        const { style, value: plain } = styleValue(parameter, value)
        const isJson = parameter.contentType !== undefined
        const written = simpleValue(plain, style.explode, one => one)
        return written === undefined ? undefined : checkHeader(isJson ? toAsciiJson(written) : written)
      })
      if (text !== undefined) headers.push(parameter.name, text)
    }
  }
}

/** Builds the cookies of one operation. Values are percent-encoded, so each is a `cookie-value` of RFC 6265. */
export function createCookies(
  operation: Operation,
  owned: ReadonlySet<string>,
): (args: OperationArguments) => string[] {
  const inCookie = withNameChecks(operation, 'cookie', owned).filter(
    ({ parameter: { name } }) => TOKEN.test(name) && !owned.has(name),
  )
  return args =>
    inCookie.flatMap(({ parameter, checkName }) => {
      const value = argumentAt(args, parameter.argument)
      if (value === undefined) return []
      return forArgument(parameter.argument, () => {
        const { style, value: text } = styleValue(parameter, value)
        // A `cookie-value` cannot contain a comma.
        return namedValues({ ...style, checkName }, text).map(pair => pair.replaceAll(',', '%2C'))
      })
    })
}
