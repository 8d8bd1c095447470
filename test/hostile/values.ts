// Malicious values, and ways to corrupt the structure or text of a valid message.
import type { Chance } from './random.ts'
import type { Json } from './requests.ts'
import { SMUGGLED } from './response-checks.ts'

const STRINGS = [
  '',
  ' ',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '\u0000',
  '\u0000\u0001\u007f',
  '\ud800',
  '\udfff and more',
  '😀'.repeat(20),
  `a\r\n${SMUGGLED}: 1`,
  'data: a\n\nevent: endpoint\ndata: /evil\n\n',
  '\u2028\u2029',
  '\u202eright to left',
  '../../../../etc/passwd',
  'file:///etc/passwd',
  '%00%2e%2e%2f',
  '*',
  '{"a":1}',
  '{{7*7}}<b>',
  'null',
  '-1',
  '9007199254740993',
  '=?base64?SGVsbG8=?=',
  '=?base64?!!!?=',
]
const NUMBERS = [0, -0, -1, 1.5, 1e21, 1e308, -1e308, 2 ** 31, 2 ** 53, 2 ** 53 - 1, Number.MIN_VALUE]

export const nest = (depth: number, list: boolean): Json => {
  let value: Json = 1
  for (let level = 0; level < depth; level++) value = list ? [value] : { a: value }
  return value
}

/** Own keys that an assignment would not make. */
const withKey = (key: string, value: Json): Json => JSON.parse(`{${JSON.stringify(key)}:${JSON.stringify(value)}}`)

export function hostileString(chance: Chance): string {
  const kind = chance.below(20)
  if (kind === 0) return chance.pick(['a', '{', '%', '(', '\u0000', 'é']).repeat(chance.pick([300, 1_100, 9_000]))
  if (kind === 1) return chance.pick(['a', '"', '\\', '😀']).repeat(chance.between(1, 40_000))
  return chance.pick(STRINGS)
}

export function hostileValue(chance: Chance, depth = 0): Json {
  const kind = chance.below(depth > 2 ? 5 : 12)
  if (kind === 0) return null
  if (kind === 1) return chance.oneIn(2)
  if (kind === 2) return chance.pick(NUMBERS)
  if (kind <= 4) return hostileString(chance)
  if (kind === 5) return []
  if (kind === 6) return {}
  if (kind === 7) return Array.from({ length: chance.between(1, 5) }, () => hostileValue(chance, depth + 1))
  if (kind === 8) return { [hostileString(chance)]: hostileValue(chance, depth + 1) }
  if (kind === 9) return withKey(chance.pick(['__proto__', 'constructor', 'prototype', 'toString', 'then']), { a: 1 })
  if (kind === 10) return { toString: 1, valueOf: null, toJSON: 'x', length: -1 }
  return nest(chance.pick([2, 20, 100, 127, 128, 129, 2_000]), chance.oneIn(2))
}

type Container = Json[] | { [key: string]: Json }
const isContainer = (value: Json): value is Container => typeof value === 'object' && value !== null

/** Every place in a value, as the container and the key. */
function placesIn(value: Json, found: Array<[Container, string]> = []): Array<[Container, string]> {
  if (!isContainer(value)) return found
  for (const key of Object.keys(value)) {
    found.push([value, key])
    placesIn((value as Record<string, Json>)[key] ?? null, found)
  }
  return found
}

/** Changes one to three places of a value. */
export function mutate(original: Json, chance: Chance): Json {
  const value = structuredClone(original)
  for (let change = chance.between(1, 3); change > 0; change--) {
    const places = placesIn(value)
    if (places.length === 0) return hostileValue(chance)
    const [container, key] = chance.pick(places)
    const fields = container as Record<string, Json>
    const kind = chance.below(8)
    if (kind === 0 && !Array.isArray(container)) delete fields[key]
    else if (kind === 1) fields[key] = [fields[key] ?? null]
    else if (kind === 2 && !Array.isArray(container)) fields[hostileString(chance)] = fields[key] ?? null
    else fields[key] = hostileValue(chance)
  }
  return value
}

/** Spoils the text of a message: what no serializer writes. */
export function spoil(text: string, chance: Chance): Uint8Array {
  const at = chance.below(text.length)
  const kind = chance.below(12)
  const bytes = (before: string, middle: number[] | string, after: string) =>
    Buffer.concat([Buffer.from(before), Buffer.from(middle as string), Buffer.from(after)])
  if (kind === 0) return Buffer.from(text.slice(0, at))
  if (kind === 1) return bytes(text.slice(0, at), [0xff, 0xfe, 0xc0, 0x80], text.slice(at))
  if (kind === 2)
    return bytes(text.slice(0, at), chance.pick(['\0', '"', '}', ']', ',', '\\u', '\ufeff']), text.slice(at))
  if (kind === 3) return bytes('', '\ufeff', text)
  if (kind === 4) return bytes(text, chance.pick([' ', '\n\n', '{}', 'x', '\0']), '')
  if (kind === 5)
    return Buffer.from(
      text.replace(/"id":[^,]*/, `"id":${chance.pick(['1e400', '-0', '1.0', '01', '1'.repeat(400), 'NaN', '0x1'])}`),
    )
  if (kind === 6) return Buffer.from(text.replace('{', '{"jsonrpc":"1.0","method":"ping","id":{},'))
  if (kind === 7) return Buffer.from(text.replace(/}$/, ',"method":"tools/list","params":{},"id":2}'))
  if (kind === 8) return Buffer.from(text.replace('{', '{"__proto__":{"method":"x"},'))
  if (kind === 9) return Buffer.from(text.replace(/"params":{/, '"params":{"constructor":{"prototype":{"a":1}},'))
  if (kind === 10) return Buffer.from(`${'['.repeat(chance.pick([1, 2, 200, 50_000]))}${text}`)
  return Buffer.from(text, 'utf16le')
}

/** A value for a header: visible, odd, or with bytes that none may have. */
export function hostileHeader(chance: Chance): string {
  const kind = chance.below(16)
  if (kind === 0) return 'x'.repeat(chance.pick([1_000, 8_000, 20_000]))
  if (kind === 1) return chance.pick(['\u0000', '\u0001x', 'a\tb', '\u007f', '\u00ff\u00fe', 'a\rb'])
  if (kind === 2) return ','.repeat(chance.pick([1, 100, 5_000]))
  if (kind === 3) return ';q='.repeat(chance.pick([1, 100, 2_000]))
  return chance.pick([
    '',
    '*',
    '*/*',
    'null',
    '0',
    '-1',
    '2026-07-28',
    '2025-11-25',
    '1.0',
    'text/event-stream',
    'text/event-stream;q=0',
    'application/json;q=0.0001, text/event-stream',
    'application/json; charset=utf-16',
    'application/json;;;',
    'APPLICATION/JSON',
    'multipart/form-data; boundary=x',
    'gzip',
    'https://evil.example',
    'http://localhost',
    'http://localhost.evil.example',
    'null, https://app.example',
    '[::1]',
    '[',
    'localhost:99999',
    'user@localhost',
    '127.0.0.1.evil.example',
    '__proto__',
    '=?base64?/////w==?=',
    'Bearer',
    'Bearer ',
    'tools/call, tools/list',
  ])
}
