// Encodes bytes in handler results: base64 in content blocks and contents, JSON strings in structured content.
import { types } from 'node:util'
import { isObject } from './wire/message.ts'
import type { SampleParams, SamplingMessage } from './wire/protocol.ts'

export const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array

export const isData = (value: unknown): value is string | Uint8Array => typeof value === 'string' || isBytes(value)

export const base64Of = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString('base64')

const BASE64_URI = /^data:[^,]*;base64,/i
const URI = /^[a-z][a-z0-9+.-]*:/i

function nameOf(text: string): string {
  if (URI.test(text)) return text.startsWith('data:') ? 'a data: URI without base64' : 'a URL'
  return /^[\w-]+=*$/.test(text) ? 'base64url' : 'other text'
}

function toBase64(value: string | Uint8Array, at: string): string {
  if (isBytes(value)) return base64Of(value)
  const data = value.replace(BASE64_URI, '')
  const digits = data.replace(/\s/g, '').replace(/={1,2}$/, '')
  if (/[^A-Za-z0-9+/]/.test(digits) || digits.length % 4 === 1) {
    throw new TypeError(`${at} must be base64; found ${nameOf(value)}. A Buffer or Uint8Array is encoded by the host`)
  }
  return digits.padEnd(Math.ceil(digits.length / 4) * 4, '=')
}

function withBase64<T extends object>(of: T, name: 'data' | 'blob', at: string): T {
  const value: unknown = Reflect.get(of, name)
  if (!isData(value)) return of
  const data = toBase64(value, `${at}.${name}`)
  return data === value ? of : { ...of, [name]: data }
}

export const encodeContents = <T extends object>(contents: T, at: string): T => withBase64(contents, 'blob', at)

export function encodeBlock<T>(block: T, at: string): T {
  if (!isObject(block)) return block
  const { type, resource } = block
  if (type === 'image' || type === 'audio') return withBase64(block, 'data', at)
  if (type !== 'resource' || !isObject(resource)) return block
  const encoded = encodeContents(resource, `${at}.resource`)
  return encoded === resource ? block : { ...block, resource: encoded }
}

export function encodeSampling(params: SampleParams): SampleParams {
  const encode = (message: SamplingMessage, index: number): SamplingMessage => {
    const { content } = message
    const at = `messages[${index}].content`
    if (!Array.isArray(content)) return { ...message, content: encodeBlock(content, at) }
    return { ...message, content: content.map((block, n) => encodeBlock(block, `${at}[${n}]`)) }
  }
  return Array.isArray(params.messages) ? { ...params, messages: params.messages.map(encode) } : params
}

const SUSPECT = /\{\}|\{"0":|"type":"Buffer"/

/** JSON with bytes as base64. Throws a TypeError for values that JSON would lose, such as a Map. */
export function toJson(value: unknown): string | undefined {
  const json: string | undefined = JSON.stringify(value)
  return json !== undefined && SUSPECT.test(json) ? JSON.stringify(value, encodeMember) : json
}

/** Returns the JSON, and an equal value without bytes and `toJSON`, which is the given value if possible. */
export function toJsonValue(value: object): readonly [json: string | undefined, value: unknown] {
  const json: string | undefined = JSON.stringify(value)
  if (json === undefined) return [json, undefined]
  if (!('toJSON' in value || SUSPECT.test(json))) return [json, value]
  const encoded = JSON.stringify(value, encodeMember)
  return [encoded, JSON.parse(encoded)]
}

const isLost = (value: object) =>
  types.isMap(value) ||
  types.isSet(value) ||
  types.isPromise(value) ||
  types.isAnyArrayBuffer(value) ||
  ArrayBuffer.isView(value) ||
  types.isRegExp(value)

function encodeMember(this: Readonly<Record<string, unknown>>, key: string, json: unknown): unknown {
  const value = this[key]
  if (isBytes(value)) return base64Of(value)
  if (typeof value !== 'object' || value === null || 'toJSON' in value || !isLost(value)) return json
  const at = key === '' ? 'the return value' : `"${key}"`
  throw new TypeError(`${at} is a ${value.constructor.name}, which JSON cannot represent; return an object or array`)
}
