// Reads and parses JSON bodies, with limits on depth, size and keys that are checked before JSON.parse.

import { constants, isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { attempt } from './describe-thrown.ts'
import { HostError } from './errors.ts'
import { LARGE_TEXT } from './sse.ts'

export const MAX_DEPTH = 128
/** Objects and arrays allowed in any body. Larger bodies can contain one per `CHARACTERS_PER_OBJECT`. */
export const OBJECTS_IN_ANY_BODY = 100_000
const CHARACTERS_PER_OBJECT = 8
/** Maximum members of one object, and maximum characters of a key. */
export const MAX_MEMBERS = 100_000
export const MAX_KEY = 8_192

/** Each character can be escaped as six characters. */
const LONGEST_KEY = 'constructor'.length * 6

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c

/** Returns the index of the quote that ends a string. Regular expressions overflow the stack for strings of some megabytes. */
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let before = end - 1
    while (text.charCodeAt(before) === BACKSLASH) before--
    // After an even number of backslashes, the quote is not escaped.
    if ((end - before) % 2 === 1) return end
  }
  return text.length
}

function isKey(text: string, end: number): boolean {
  for (let index = end + 1; ; index++) {
    const code = text.charCodeAt(index)
    if (code === COLON) return true
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return false
  }
}

const MALFORMED = Symbol('no JSON')

function readKey(text: string, start: number, end: number, escapes: boolean): string | typeof MALFORMED | undefined {
  const length = end - start - 1
  if (length < '__proto__'.length || length > (escapes ? LONGEST_KEY : 'constructor'.length)) return undefined
  const raw = text.slice(start + 1, end)
  return raw.includes('\\') ? (attempt(() => JSON.parse(`"${raw}"`)) ?? MALFORMED) : raw
}

/** Checks depth, size and prototype keys. Returns the reason for a refusal, which the client receives. */
export function findForbidden(text: string): string | undefined {
  /** One entry per open object or array: true if it is the value of a `constructor` key. */
  const open: boolean[] = []
  const members: number[] = []
  let key: string | typeof MALFORMED | undefined
  let objects = 0
  const escapes = text.includes('\\')
  const maxObjects = Math.max(OBJECTS_IN_ANY_BODY, Math.floor(text.length / CHARACTERS_PER_OBJECT))
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === QUOTE) {
      const end = endOfString(text, index)
      if (isKey(text, end)) {
        if (end - index > MAX_KEY) return `it has a key of more than ${MAX_KEY} characters`
        const count = (members[open.length] ?? 0) + 1
        if (count > MAX_MEMBERS) return `it has an object of more than ${MAX_MEMBERS} members`
        members[open.length] = count
        key = readKey(text, index, end, escapes)
        if (key === MALFORMED) return undefined
        if (key === '__proto__' || (key === 'prototype' && open.at(-1)))
          return 'it has a key that is not allowed in messages'
      }
      index = end
    } else if (code === 0x7b || code === 0x5b) {
      if (++objects > maxObjects) return `it has more than ${maxObjects} objects and lists`
      if (open.push(key === 'constructor') > MAX_DEPTH) return `it is nested deeper than ${MAX_DEPTH} levels`
      members[open.length] = 0
      key = undefined
    } else if (code === 0x7d || code === 0x5d) {
      open.pop()
      key = undefined
    } else if (code === COMMA) key = undefined
  }
  return undefined
}

const BYTE_ORDER_MARK = 0xfeff

/** Throws `invalidRequest` for text that is empty or exceeds a limit, and `parseError` for invalid JSON. */
export function parseJson(text: string, what = 'body'): unknown {
  if (text.trim() === '') throw new HostError('invalidRequest', { detail: `the ${what} is empty` })
  const forbidden = findForbidden(text)
  if (forbidden !== undefined) throw new HostError('invalidRequest', { detail: forbidden })
  try {
    return JSON.parse(text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text)
  } catch (cause) {
    throw new HostError('parseError', { detail: `the ${what} is not JSON`, cause })
  }
}

const JSON_TYPE = 'application/json'

function isJson(contentType: string): boolean {
  const [type = '', ...parameters] = contentType.toLowerCase().split(';')
  const charset = parameters.map(parameter => /^\s*charset\s*=\s*"?([^"\s]*)"?\s*$/.exec(parameter)?.[1]).find(Boolean)
  return type.trim() === JSON_TYPE && (charset === undefined || charset === 'utf-8' || charset === 'utf8')
}

function checkType({ headers }: IncomingMessage) {
  const contentType = headers['content-type'] ?? ''
  if (contentType !== JSON_TYPE && !isJson(contentType)) {
    throw new HostError('unsupportedMediaType', { detail: `Content-Type must be ${JSON_TYPE}` })
  }
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
    throw new HostError('unsupportedMediaType', { detail: 'a compressed body is not accepted' })
  }
}

const ALREADY_READ = 'the body of a message was read before its transport could: a middleware parses bodies'

/**
 * Reads a body as text. Rejects with `unsupportedMediaType`, `payloadTooLarge` above `maxSize` bytes, and `parseError`
 * for invalid UTF-8 or an early end.
 */
export function readBody(req: IncomingMessage, maxSize: number): Promise<string> {
  const limit = Math.min(maxSize, constants.MAX_STRING_LENGTH)
  return new Promise((resolve, reject) => {
    checkType(req)
    // The body was read already, so the `end` event would never fire.
    if (req.readableDidRead || req.readableEnded) throw new Error(ALREADY_READ)
    const body = new BodyBuffer()
    function onData(chunk: Buffer) {
      if (chunk.length + body.size <= limit) return body.add(chunk)
      req.off('data', onData).pause()
      reject(new HostError('payloadTooLarge', { detail: `at most ${limit} bytes` }))
    }
    function onEnd() {
      const bytes = body.take()
      // The listeners would retain the body for the lifetime of the request.
      if (bytes.length > LARGE_TEXT) req.off('data', onData).off('end', onEnd).off('error', onError)
      if (isUtf8(bytes)) resolve(bytes.toString('utf8'))
      else reject(new HostError('parseError', { detail: 'the body is not UTF-8' }))
    }
    const onError = (cause: Error) => reject(new HostError('parseError', { detail: 'the body ended early', cause }))
    req.on('data', onData).on('end', onEnd).on('error', onError)
  })
}

const NO_BYTES = Buffer.alloc(0)

/** Collects the chunks of a body in one growing buffer: a million one-byte Buffers would take sixty times the size. */
export class BodyBuffer {
  #bytes: Buffer = NO_BYTES
  size = 0

  add(chunk: Buffer): void {
    const { size } = this
    this.size += chunk.length
    if (size === 0) {
      this.#bytes = chunk
      return
    }
    if (this.size > this.#bytes.length) {
      const capacity = Math.max(this.size, 2 * this.#bytes.length)
      this.#bytes = Buffer.concat([this.#bytes.subarray(0, size)], capacity)
    }
    chunk.copy(this.#bytes, size)
  }

  take(): Buffer {
    return this.#bytes.length === this.size ? this.#bytes : this.#bytes.subarray(0, this.size)
  }
}
