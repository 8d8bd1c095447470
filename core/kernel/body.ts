// Reads bodies of plugin endpoints with koa-body, which is loaded after startup because its import takes 100 ms of CPU time.

import { HostError } from '../http/errors.ts'
import { parseJson } from '../http/json-body.ts'
import type { BodyKind, HostContext, HostMiddleware } from './endpoint.ts'

export const BODY_TYPES: Record<BodyKind, readonly string[]> = {
  json: ['application/json', 'application/*+json'],
  form: ['application/x-www-form-urlencoded'],
  text: ['text/*'],
}

const METHODS_WITH_BODY = new Set(['POST', 'PUT'])
const MAX_FIELDS = 1_000

function throwBodyError(error: Error, limit: number): never {
  const status = 'status' in error ? error.status : undefined
  if (status !== 413) throw new HostError('parseError', { detail: 'the body is malformed' })
  throw new HostError('payloadTooLarge', { detail: `at most ${limit} bytes` })
}

function isUtf8({ request }: HostContext): boolean {
  const [, ...parameters] = request.get('Content-Type').toLowerCase().split(';')
  return parameters
    .map(parameter => parameter.trim())
    .every(parameter => !parameter.startsWith('charset') || /^charset="?utf-?8"?$/.test(parameter))
}

function parseDocument(text: string): object {
  const value = parseJson(text)
  if (typeof value === 'object' && value !== null) return value
  throw new HostError('parseError', { detail: 'the body must be a JSON object or list' })
}

/** Repeated names become a list. `__proto__` and other names of Object.prototype are ignored. */
function parseForm(text: string): Readonly<Record<string, string | string[]>> {
  if (text.split('&', MAX_FIELDS + 1).length > MAX_FIELDS) {
    throw new HostError('parseError', { detail: `the form has more than ${MAX_FIELDS} fields` })
  }
  const fields = new Map<string, string | string[]>()
  for (const [name, value] of new URLSearchParams(text)) {
    if (name in Object.prototype) continue
    const known = fields.get(name)
    if (known === undefined) fields.set(name, value)
    else if (typeof known === 'string') fields.set(name, [known, value])
    else known.push(value)
  }
  return Object.fromEntries(fields)
}

type KoaMiddleware = ReturnType<typeof import('koa-body')['koaBody']>

const PARSERS: Record<BodyKind, (text: string) => unknown> = {
  json: parseDocument,
  form: parseForm,
  text: text => text,
}

let isNeeded = false
export const loadNeededParser = async (): Promise<void> => void (isNeeded && (await import('koa-body')))

/**
 * Creates middleware for each body kind; `limit` in bytes. Throws `payloadTooLarge`, `unsupportedMediaType`, `parseError` or
 * `invalidRequest`.
 */
export function createBodyReader(limit: number) {
  return function readBodyAs(kind: BodyKind): HostMiddleware {
    isNeeded = true
    const types = [...BODY_TYPES[kind]]
    const parse = PARSERS[kind]
    const onError = (error: Error) => throwBodyError(error, limit)
    let read: KoaMiddleware | undefined
    const expected = `Content-Type must be ${types.join(' or ')}, in UTF-8 and not compressed`
    return async (ctx, next) => {
      if (!METHODS_WITH_BODY.has(ctx.method)) return next()
      const { request }: { request: { body?: unknown } } = ctx
      const isPlain = (ctx.get('Content-Encoding') || 'identity').toLowerCase() === 'identity'
      const type = ctx.is(types)
      // `null` means that the request has no body.
      if (type === null && kind === 'json') throw new HostError('invalidRequest', { detail: 'the body is empty' })
      if (!type || !isPlain || !isUtf8(ctx)) throw new HostError('unsupportedMediaType', { detail: expected })
      // Reads JSON as text, so that its limits are checked before it is parsed.
      const options = { json: false, urlencoded: false, textTypes: types, textLimit: limit, onError }
      read ??= (await import('koa-body')).koaBody(options)
      return read(ctx as Parameters<KoaMiddleware>[0], () => {
        request.body = parse(String(request.body))
        return next()
      })
    }
  }
}
