// What Koa middleware refuses and fails with, by `ctx.throw` too: errors of http-errors, which say themselves how they are
// answered. For the writer of error answers (core/kernel/write-errors.ts).
import { type IncomingMessage, STATUS_CODES } from 'node:http'
import { Readable } from 'node:stream'
import { isError } from './describe-thrown.ts'

/** Its text is for the client where it says so. */
export interface HttpError extends Error {
  readonly expose: boolean
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
}

export function isHttpError(thrown: unknown): thrown is HttpError {
  if (!isError(thrown) || !('expose' in thrown) || typeof thrown.expose !== 'boolean') return false
  return 'status' in thrown && typeof thrown.status === 'number' && thrown.status >= 400 && thrown.status < 600
}

/** What a client reads of it. */
export const textFor = ({ expose, message, status }: HttpError): string =>
  expose ? message : (STATUS_CODES[status] ?? String(status))

/** Koa tells of a connection that its client broke as of anything that fails; of a body that breaks, the connection too. */
export function isClientGone(
  thrown: unknown,
  { req, body }: { readonly req: IncomingMessage; readonly body?: unknown },
) {
  if (!isError(thrown) || !('code' in thrown)) return false
  if (thrown.code === 'ERR_STREAM_PREMATURE_CLOSE') return true
  if (body instanceof Readable && body.errored === thrown) return false
  // Of what is no HTTP there may be several errors on one connection, which keeps the first.
  const isNoHttp = String(thrown.code).startsWith('HPE_') && req.socket.destroyed
  return isNoHttp || thrown === req.socket.errored
}
