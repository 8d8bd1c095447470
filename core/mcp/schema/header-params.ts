// Parameters of a tool that clients mirror into `Mcp-Param-*` headers, so that proxies can route by them.
// Collected at start-up from `x-mcp-header` annotations; checked by the transport once the tool is known.
// 2026-07-28: basic/transports/streamable-http "Custom Headers from Tool Parameters", server/tools "x-mcp-header".
import { isObject } from '../is-object.ts'
import type { JsonSchema } from '../protocol.ts'
import { subschemas } from './subschemas.ts'

const TYPES = ['string', 'integer', 'boolean'] as const

/** A parameter that a header repeats: a property annotated with `x-mcp-header`. */
export interface HeaderParam {
  /** Lower-case, as node spells header names: `mcp-param-region`. */
  readonly header: string
  /** The annotation as written: `Region`. */
  readonly name: string
  /** Property names from the arguments' root to the value. */
  readonly path: readonly string[]
  readonly type: (typeof TYPES)[number]
}

const ANNOTATION = 'x-mcp-header'
// RFC 9110, 5.6.2: 1*tchar
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** The annotated parameters of an input schema. Throws a text that names the property whose annotation is wrong. */
export function collectHeaderParams(inputSchema: JsonSchema): HeaderParam[] {
  const params = new Map<string, HeaderParam>()
  for (const { schema, path } of subschemas(inputSchema)) {
    if (!Object.hasOwn(schema, ANNOTATION)) continue
    const where = `${ANNOTATION} at ${path.join('.') || 'the root of the schema'}`
    if (!isReachable(path)) {
      throw new Error(
        `${where}: only a property that is reached from the root through \`properties\` alone may have one`,
      )
    }
    const param = readParam(schema, path, where)
    const twin = params.get(param.header)
    if (twin) {
      throw new Error(`${where}: "${param.name}" is taken by property ${twin.path.join('.')} (case does not count)`)
    }
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

/**
 * What a mirrored header value says: a plain value as it stands, or the content of `=?base64?...?=`. Undefined when
 * malformed: not strict base64, not UTF-8, or a plain value with other characters than visible ASCII, space and tab.
 */
export function decodeHeaderValue(raw: string): string | undefined {
  if (!raw.startsWith(PREFIX) || !raw.endsWith(SUFFIX)) return PLAIN.test(raw) ? raw : undefined
  const payload = raw.slice(PREFIX.length, -SUFFIX.length)
  const bytes = Buffer.from(payload, 'base64')
  // Node skips what is no base64; only what comes back the same was strict. It also refuses `=?base64?=`,
  // where both marks share a question mark.
  if (bytes.toString('base64') !== payload || raw.length < PREFIX.length + SUFFIX.length) return undefined
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** Request headers as node gives them; in those of `headersDistinct` a repeated header shows for certain. */
type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * Why the mirrored headers do not match the arguments (error `headerMismatch`), or undefined when they do: a value
 * needs its header, equal after decoding; an absent or null one must have none.
 */
export function checkHeaderParams(params: readonly HeaderParam[], headers: Headers, args: unknown): string | undefined {
  for (const param of params) {
    const reason = mismatch(param, headers[param.header], valueAt(args, param.path))
    if (reason !== undefined) return `Mcp-Param-${param.name} ${reason}`
  }
  return undefined
}

function mismatch({ path, type }: HeaderParam, header: string | readonly string[] | undefined, value: unknown) {
  const argument = `argument ${path.join('.')}`
  if (typeof header === 'object' && header.length !== 1) return 'is there more than once'
  const raw = typeof header === 'object' ? header[0] : header
  if (value === undefined || value === null) {
    return raw === undefined ? undefined : `is there, but ${argument} ${value === null ? 'is null' : 'is not'}`
  }
  if (raw === undefined) return `is missing, but ${argument} is there`
  const text = decodeHeaderValue(raw)
  if (text === undefined) return 'holds invalid characters or an invalid base64 value'
  if (type === 'integer' && typeof value === 'number') {
    if (!Number.isSafeInteger(value)) return `cannot mirror ${argument}: it is no integer of the safe range`
    return isInteger(text) && Number(text) === value ? undefined : `does not equal ${argument}`
  }
  if (typeof value === 'object') return `cannot mirror ${argument}: it is no ${type}`
  return text === String(value) ? undefined : `does not equal ${argument}`
}

// Fractions of zeros only: `42.0` is 42, and nothing that rounding would make equal passes.
const isInteger = (text: string) => /^-?\d+(\.0+)?$/.test(text)

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  return value
}
