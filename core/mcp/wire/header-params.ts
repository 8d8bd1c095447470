// Tool arguments in `Mcp-Param-*` headers (2026-07-28 basic/transports/streamable-http).
import { attempt } from '../../http/describe-thrown.ts'
import { subschemas } from '../schema/subschemas.ts'
import { isObject } from './message.ts'
import type { JsonSchema } from './protocol.ts'

const TYPES = ['string', 'integer', 'boolean'] as const

export interface HeaderParam {
  /** The header name in lower case: `mcp-param-region`. */
  readonly header: string
  readonly name: string
  readonly path: readonly string[]
  readonly type: (typeof TYPES)[number]
}

const ANNOTATION = 'x-mcp-header'
// RFC 9110, 5.6.2: 1*tchar
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

export function collectHeaderParams(inputSchema: JsonSchema): HeaderParam[] {
  const params = new Map<string, HeaderParam>()
  for (const { schema, path } of subschemas(inputSchema)) {
    if (!Object.hasOwn(schema, ANNOTATION)) continue
    const where = `${ANNOTATION} at ${path.join('.') || 'the root of the schema'}`
    if (!isReachable(path)) throw new Error(`${where}: only a property below \`properties\` of the root can have it`)
    const param = readParam(schema, path, where)
    const twin = params.get(param.header)
    if (twin) throw new Error(`${where}: "${param.name}" is used by property ${twin.path.join('.')} (case-insensitive)`)
    params.set(param.header, param)
  }
  return [...params.values()]
}

const isReachable = (path: readonly string[]) =>
  path.length > 0 && path.length % 2 === 0 && path.every((step, index) => index % 2 === 1 || step === 'properties')

function readParam(schema: JsonSchema, path: readonly string[], where: string): HeaderParam {
  const name = schema[ANNOTATION]
  if (typeof name !== 'string' || !TOKEN.test(name)) {
    throw new Error(
      `${where}: must be the name part of a header (letters, digits and !#$%&'*+-.^_\`|~), was ${JSON.stringify(name)}`,
    )
  }
  const type = TYPES.find(known => known === schema['type'])
  if (type === undefined) {
    throw new Error(
      `${where}: its property's \`type\` must be "string", "integer" or "boolean", was ${JSON.stringify(schema['type']) ?? 'absent'}`,
    )
  }
  const names = path.filter((_, index) => index % 2 === 1)
  return { header: `mcp-param-${name.toLowerCase()}`, name, path: names, type }
}

const PREFIX = '=?base64?'
const SUFFIX = '?='
const PLAIN = /^[\t -~]*$/
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes plain visible ASCII with spaces and tabs, or `=?base64?...?=` in UTF-8. Undefined if malformed. */
export function decodeHeaderValue(raw: string): string | undefined {
  if (!raw.startsWith(PREFIX) || !raw.endsWith(SUFFIX)) return PLAIN.test(raw) ? raw : undefined
  const payload = raw.slice(PREFIX.length, -SUFFIX.length)
  const bytes = Buffer.from(payload, 'base64')
  // Node skips invalid characters. In `=?base64?=`, prefix and suffix share a question mark.
  if (bytes.toString('base64') !== payload || raw.length < PREFIX.length + SUFFIX.length) return undefined
  return attempt(() => utf8.decode(bytes))
}

/** Only `headersDistinct` always shows repeated headers. */
type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/** Returns the reason for `headerMismatch`. An absent or null argument must have no header. */
export function checkHeaderParams(params: readonly HeaderParam[], headers: Headers, args: unknown): string | undefined {
  for (const param of params) {
    const reason = mismatch(param, headers[param.header], valueAt(args, param.path))
    if (reason !== undefined) return `Mcp-Param-${param.name} ${reason}`
  }
  return undefined
}

function mismatch({ path, type }: HeaderParam, header: string | readonly string[] | undefined, value: unknown) {
  const argument = `argument ${path.join('.')}`
  if (typeof header === 'object' && header.length !== 1) return 'occurs more than once'
  const raw = typeof header === 'object' ? header[0] : header
  if (value === undefined || value === null) {
    return raw === undefined ? undefined : `is present, but ${argument} ${value === null ? 'is null' : 'is missing'}`
  }
  if (raw === undefined) return `is missing, but ${argument} is present`
  const text = decodeHeaderValue(raw)
  if (text === undefined) return 'holds invalid characters or an invalid base64 value'
  if (type === 'integer' && typeof value === 'number') {
    if (!Number.isSafeInteger(value)) return `cannot mirror ${argument}: it is not a safe integer`
    return isInteger(text) && Number(text) === value ? undefined : `does not equal ${argument}`
  }
  if (typeof value === 'object') return `cannot mirror ${argument}: its type is not ${type}`
  return text === String(value) ? undefined : `does not equal ${argument}`
}

// `42.0` is 42. Other fractions could become equal by rounding.
const isInteger = (text: string) => /^-?\d+(\.0+)?$/.test(text)

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  return value
}
