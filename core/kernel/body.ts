// Reads the body of an endpoint that asks for it, with koa-body, into `ctx.request.body`. Transports read their own
// (core/http/read-body.ts). Loaded where some endpoint asks: koa-body brings a good deal along.

import { HostError } from '../http/errors.ts'
import type { BodyKind, HostMiddleware } from './endpoint.ts'

export const BODY_TYPES: Record<BodyKind, readonly string[]> = {
  json: ['application/json', 'application/*+json'],
  form: ['application/x-www-form-urlencoded'],
  text: ['text/*'],
}

const VERBS = new Set(['POST', 'PUT'])
/** More than any form that a person fills in. */
const MAX_FIELDS = 1_000

/** True for JSON that is well-formed, but a text, a number, true, false or null. */
function isBareValue(text: string): boolean {
  if (/^\s*[[{]/.test(text)) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function faultOf(error: Error): string {
  // As qs refuses what has too much.
  if (error instanceof RangeError) return `the form has more than ${MAX_FIELDS} fields`
  const isBare = 'body' in error && typeof error.body === 'string' && isBareValue(error.body)
  return isBare ? 'the body must be a JSON object or list' : 'the body is malformed'
}

function refusalOf(error: Error, limit: number): HostError {
  const status = 'status' in error ? error.status : undefined
  if (status !== 413) return new HostError('parseError', { detail: faultOf(error) })
  // The rest is not read: the connection ends with the answer.
  return new HostError('payloadTooLarge', { detail: `at most ${limit} bytes`, headers: { Connection: 'close' } })
}

/**
 * The middleware for each kind of body; `limit` in bytes. It throws `payloadTooLarge`, `unsupportedMediaType` for another
 * Content-Type, charset or a compressed body, and `parseError` for what cannot be read as the type that it claims.
 */
export async function createBodyReader(limit: number) {
  const { koaBody } = await import('koa-body')

  return function readBodyAs(kind: BodyKind): HostMiddleware {
    const types = [...BODY_TYPES[kind]]
    const read = koaBody({
      json: kind === 'json',
      urlencoded: kind === 'form',
      text: kind === 'text',
      jsonTypes: types,
      urlencodedTypes: types,
      textTypes: types,
      jsonLimit: limit,
      formLimit: limit,
      textLimit: limit,
      // A field is a string, or several of one name an array: no name makes objects.
      queryString: {
        depth: 0,
        allowDots: false,
        parseArrays: false,
        parameterLimit: MAX_FIELDS,
        arrayLimit: MAX_FIELDS,
        throwOnLimitExceeded: true,
      },
      onError(error) {
        throw refusalOf(error, limit)
      },
    })
    const fits = `Content-Type must be ${types.join(' or ')}, in UTF-8 and not compressed`
    return (ctx, next) => {
      if (!VERBS.has(ctx.method)) return next()
      const { charset } = ctx.request
      const isPlain = (ctx.get('Content-Encoding') || 'identity').toLowerCase() === 'identity'
      if (!ctx.is(types) || !isPlain || (charset !== '' && !/^utf-?8$/i.test(charset))) {
        throw new HostError('unsupportedMediaType', { detail: fits })
      }
      return read(ctx as Parameters<typeof read>[0], next)
    }
  }
}
