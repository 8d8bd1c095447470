// Encodes request bodies: JSON, forms, multipart, binary and text.
import { randomBytes } from 'node:crypto'
import { isObject } from '../../core/plugin.ts'
import { isJsonType } from './media-types.ts'
import type { ArgumentPath, Operation, OperationArguments, PropertyEncoding, RequestBody } from './operation.ts'
import { createNameCheck } from './request-names.ts'
import { argumentAt, forArgument } from './request-target.ts'
import { ArgumentFault, namedValues, toText } from './request-values.ts'

/** Maximum decoded size of a base64 argument, bytes. */
const MAX_BINARY = 16_777_216

export interface EncodedBody {
  readonly contentType: string
  readonly content: string | Buffer
}

const MEDIA_TYPE = /^[\w.+!#$&^-]+\/[\w.+!#$&^-]+(?:;[\t\u0020-\u007e]*)?$/

/** Returns the first alternative of an encoding. A range such as `image/*` is not a content type. */
function encodingContentType({ contentType }: PropertyEncoding): string | undefined {
  const first = contentType?.split(',', 1)[0]?.trim()
  return first !== undefined && MEDIA_TYPE.test(first) && !first.includes('*') ? first : undefined
}

function decodeBase64(value: unknown): Buffer {
  if (typeof value !== 'string') throw new ArgumentFault('must be base64 text')
  const text = value.replace(/^data:[^,]{0,200};base64,/i, '')
  if (text.length > MAX_BINARY * 1.4) {
    throw new ArgumentFault(`is larger than ${MAX_BINARY / 1_048_576} MiB`)
  }
  const digits = text.replace(/[\s=]+/g, '')
  if (!/^[A-Za-z0-9+/]*$|^[\w-]*$/.test(digits) || digits.length % 4 === 1) throw new ArgumentFault('is not base64')
  const bytes = Buffer.from(digits, 'base64')
  if (bytes.length > MAX_BINARY) throw new ArgumentFault(`is larger than ${MAX_BINARY / 1_048_576} MiB`)
  return bytes
}

const LARGE_NUMBER = /\d{16}/

/** Throws for an integer that lost digits when the call was parsed. */
function checkNumbers(value: unknown): void {
  if (typeof value === 'number') toText(value)
  else if (typeof value === 'object' && value !== null) for (const member of Object.values(value)) checkNumbers(member)
}

function jsonText(value: unknown): string {
  const json = JSON.stringify(value)
  if (LARGE_NUMBER.test(json)) checkNumbers(value)
  return json
}

/** Encodes a part of a form, with `+` for a space. */
const formPart = (part: string): string => part.replaceAll('%20', '+')

function formParts(name: string, value: unknown, encoding: PropertyEncoding, taken: readonly string[]): string[] {
  const { style, explode, allowReserved, contentType } = encoding
  const isStyled = style !== undefined || explode !== undefined || allowReserved !== undefined
  if (isStyled) {
    const about = { style: style ?? 'form', explode: explode ?? (style ?? 'form') === 'form' }
    const checkName = createNameCheck({ name, style: about.style }, taken)
    return namedValues({ name, ...about, allowReserved: allowReserved ?? false, checkName }, value)
  }
  // Without a style, objects are JSON, and items of an array are repeated.
  const asJson = contentType !== undefined && isJsonType(contentType)
  const items = Array.isArray(value) && !asJson ? value : [value]
  const texts = items.map(item => (isObject(item) || asJson ? jsonText(item) : item))
  return namedValues({ name, style: 'form', explode: true }, texts)
}

const escapeName = (name: string): string => name.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22')

interface Part {
  readonly name: string
  readonly filename?: string
  readonly contentType?: string | undefined
  readonly content: string | Buffer
}

function multipartParts(
  name: string,
  value: unknown,
  { encoding, binary }: Pick<RequestBody, 'encoding' | 'binary'>,
): Part[] {
  const contentType = encodingContentType(encoding.get(name) ?? {})
  const items = Array.isArray(value) ? value : [value]
  return items.flatMap((item): Part[] => {
    if (item === undefined || item === null) return []
    if (binary.has(name)) {
      const content = decodeBase64(item)
      return [{ name, filename: name, contentType: contentType ?? 'application/octet-stream', content }]
    }
    const isStructured = typeof item === 'object'
    const content = isStructured ? jsonText(item) : (toText(item) ?? '')
    return [{ name, contentType: contentType ?? (isStructured ? 'application/json' : undefined), content }]
  })
}

function encodeParts(parts: readonly Part[]): EncodedBody {
  const boundary = `mcp-host-${randomBytes(18).toString('hex')}`
  const chunks = parts.flatMap(({ name, filename, contentType, content }) => {
    const file = filename === undefined ? '' : `; filename="${escapeName(filename)}"`
    const type = contentType === undefined ? '' : `Content-Type: ${contentType}\r\n`
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${escapeName(name)}"${file}\r\n${type}\r\n`
    return [Buffer.from(head), Buffer.from(content), Buffer.from('\r\n')]
  })
  const content = Buffer.concat([...chunks, Buffer.from(`--${boundary}--\r\n`)])
  return { contentType: `multipart/form-data; boundary=${boundary}`, content }
}

interface Property {
  readonly name: string
  readonly path: ArgumentPath
  readonly value: unknown
}

/** Returns the properties of an object body for which arguments exist. */
function listProperties({ from }: RequestBody, args: OperationArguments): Property[] {
  if ('argument' in from) {
    const whole = argumentAt(args, from.argument)
    if (whole === undefined) return []
    if (!isObject(whole)) return forArgument(from.argument, () => fail('must be an object'))
    return Object.entries(whole).map(([name, value]) => ({ name, path: from.argument, value }))
  }
  return [...from.properties].flatMap(([name, path]) => {
    const value = argumentAt(args, path)
    return value === undefined ? [] : [{ name, path, value }]
  })
}

function fail(why: string): never {
  throw new ArgumentFault(why)
}

function collectBody(
  body: RequestBody,
  args: OperationArguments,
): { readonly value: unknown; readonly path: ArgumentPath } {
  if ('argument' in body.from) return { value: argumentAt(args, body.from.argument), path: body.from.argument }
  const properties = listProperties(body, args)
  const value =
    properties.length === 0 && !body.required ? undefined : new Map(properties.map(one => [one.name, one.value]))
  return { value: value && Object.fromEntries(value), path: properties[0]?.path ?? ['body'] }
}

function encodeWhole(body: RequestBody, args: OperationArguments): EncodedBody | undefined {
  const { value, path } = collectBody(body, args)
  if (value === undefined) return undefined
  return forArgument(path, () => {
    if (body.kind === 'json') return { contentType: body.mediaType, content: jsonText(value) }
    if (body.kind === 'binary') return { contentType: body.mediaType, content: decodeBase64(value) }
    const isText = body.mediaType.startsWith('text/')
    return { contentType: isText ? `${body.mediaType}; charset=utf-8` : body.mediaType, content: toText(value) ?? '' }
  })
}

/** Encodes a body. Undefined if the operation has no body, or no argument for it. */
export function encodeBody({ body }: Operation, args: OperationArguments): EncodedBody | undefined {
  if (!body) return undefined
  if (body.kind !== 'form' && body.kind !== 'multipart') return encodeWhole(body, args)
  const properties = listProperties(body, args)
  if (properties.length === 0 && !body.required) return undefined
  const encodeEach = <Value>(encode: (property: Property) => Value[]): Value[] =>
    properties.flatMap(property => forArgument(property.path, () => encode(property)))
  if (body.kind === 'multipart') {
    return encodeParts(encodeEach(({ name, value }) => multipartParts(name, value, body)))
  }
  const declared = isObject(body.schema['properties']) ? Object.keys(body.schema['properties']) : []
  const taken = [...declared, ...properties.map(({ name }) => name)]
  const parts = encodeEach(({ name, value }) => formParts(name, value, body.encoding.get(name) ?? {}, taken))
  return { contentType: body.mediaType, content: parts.map(formPart).join('&') }
}
