// Reads the JSON body of a message for transports. koa-body would take a fifth of a call's time.

import { constants, isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { HostError } from './errors.ts'
import { LARGE_TEXT } from './sse.ts'

const JSON_TYPE = 'application/json'

function isJson(contentType: string): boolean {
  if (contentType === JSON_TYPE) return true
  const [type = '', ...parameters] = contentType.toLowerCase().split(';')
  const charset = parameters.map(parameter => /^\s*charset\s*=\s*"?([^"\s]*)"?\s*$/.exec(parameter)?.[1]).find(Boolean)
  return type.trim() === JSON_TYPE && (charset === undefined || charset === 'utf-8' || charset === 'utf8')
}

function checkType({ headers }: IncomingMessage) {
  if (!isJson(headers['content-type'] ?? '')) {
    throw new HostError('unsupportedMediaType', { detail: `Content-Type must be ${JSON_TYPE}` })
  }
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
    throw new HostError('unsupportedMediaType', { detail: 'a compressed body is not accepted' })
  }
}

const textOf = (bytes: Buffer) => (isUtf8(bytes) ? bytes.toString('utf8') : undefined)

const READ_BEFORE = 'the body of a message was read before its transport could: some middleware in front parses bodies'

/**
 * Rejects with `unsupportedMediaType`, `payloadTooLarge` above `maxSize` bytes, and `parseError` for invalid UTF-8 or an early
 * end.
 */
export function readBody(req: IncomingMessage, maxSize: number): Promise<string> {
  const limit = Math.min(maxSize, constants.MAX_STRING_LENGTH)
  return new Promise((resolve, reject) => {
    checkType(req)
    // The end event would never come.
    if (req.readableDidRead || req.readableEnded) throw new Error(READ_BEFORE)
    const body = new Gathered()
    function onData(chunk: Buffer) {
      if (body.size + chunk.length <= limit) return body.add(chunk)
      req.off('data', onData).pause()
      reject(new HostError('payloadTooLarge', { detail: `at most ${limit} bytes` }))
    }
    function onEnd() {
      const bytes = body.take()
      // The listeners would keep the text as long as the request lives.
      if (bytes.length > LARGE_TEXT) req.off('data', onData).off('end', onEnd).off('error', onError)
      const text = textOf(bytes)
      if (text !== undefined) resolve(text)
      else reject(new HostError('parseError', { detail: 'the body is not UTF-8' }))
    }
    const onError = (cause: Error) => reject(new HostError('parseError', { detail: 'the body ended early', cause }))
    req.on('data', onData).on('end', onEnd).on('error', onError)
  })
}

/** Minimum bytes of a chunk that is not copied. */
const LARGE_CHUNK = 4_096

export class Gathered {
  readonly #parts: Buffer[] = []
  /** Small chunks since the last part. A million chunks of one byte would take sixty times their size as Buffers. */
  #small: Buffer | undefined
  #used = 0
  size = 0

  add(chunk: Buffer): void {
    this.size += chunk.length
    if (this.size === chunk.length || chunk.length >= LARGE_CHUNK) {
      this.#seal()
      this.#parts.push(chunk)
      return
    }
    if (this.#small && this.#used + chunk.length > LARGE_CHUNK) this.#seal()
    this.#small ??= Buffer.allocUnsafeSlow(LARGE_CHUNK)
    this.#used += chunk.copy(this.#small, this.#used)
  }

  #seal() {
    if (this.#small) this.#parts.push(Buffer.from(this.#small.subarray(0, this.#used)))
    this.#small = undefined
    this.#used = 0
  }

  take(): Buffer {
    this.#seal()
    const [first] = this.#parts
    const whole = this.#parts.length === 1 && first ? first : Buffer.concat(this.#parts)
    this.#parts.length = 0
    return whole
  }
}
