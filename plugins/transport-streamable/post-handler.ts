// Serves the POSTs of a route: reads and classifies the message once, then refuses it, or serves it with or without a session.
import { HostError } from '../../core/index.ts'
import type { HostContext, McpRoute } from '../../core/plugin.ts'
import {
  ASSUMED_REVISION,
  encodeError,
  isModernRevision,
  type Message,
  MODERN_REVISION,
  type RequestId,
  readBody,
  readMessages,
  requireBatches,
  serveRequests,
  statusOf,
  type Transport,
  type ValidMessage,
  validBatch,
} from '../../core/transport.ts'
import { createExchangeContext, PostExchange, type Request, respondAccepted } from './exchange.ts'
import {
  checkStandardHeaders,
  checkToolHeaders,
  isModern,
  type Meta,
  readLegacy,
  readModern,
  readVersionHeader,
  requireAccept,
} from './headers.ts'
import { createSessionPostHandler } from './session-post.ts'

function refuse(ctx: HostContext, error: HostError, id?: RequestId): void {
  ctx.status = statusOf(error)
  ctx.state.refusal = error
  for (const [name, value] of Object.entries(error.headers ?? {})) ctx.set(name, value)
  ctx.type = 'json'
  ctx.body = encodeError(error, { id, revision: readVersionHeader(ctx.req.headers) })
}

export function createPostHandler(host: Transport, route: McpRoute) {
  const context = createExchangeContext(host)
  const { nameHeaders } = host.extensionsOn(route)
  const { revisions } = route
  const serveSession = route.stateless ? undefined : createSessionPostHandler(host, route, context)

  /** `meta`: version and sender of all `requests`. */
  function servePerRequest(requests: readonly Request[], meta: Meta, ctx: HostContext, batch: boolean) {
    const { req, state } = ctx
    const { headers } = req
    const { params, user } = state
    const { revision, client, logLevel } = meta
    let exchange: PostExchange | undefined
    const signal = () => exchange?.cancellation.signal ?? AbortSignal.abort()
    const facts = { route, params, user, headers, ip: ctx.ip, signal, authorized: true as const }
    const sender = { headers, user, state, refusalRecorded: requests.length === 1 }
    const checkCall = isModernRevision(revision) ? checkToolHeaders : undefined
    // Fields are listed, because a spread costs more than the rest of this function.
    return serveRequests(host, { facts, revision, client, logLevel, checkCall }, requests, sender, () => {
      ctx.respond = false
      exchange ??= new PostExchange(context, { ctx, requests, batch, session: undefined, revision })
      return requests.length === 1 ? exchange : exchange.replyToOne()
    })
  }

  function serveBatch(messages: readonly Message[], ctx: HostContext) {
    const header = readVersionHeader(ctx.req.headers)
    requireBatches(header ?? ASSUMED_REVISION)
    const valid = validBatch(messages)
    if (valid.some(message => isModern(message, header))) requireBatches(MODERN_REVISION)
    if (serveSession) return serveSession(valid, ctx, true)
    const requests = valid.filter(message => message.kind === 'request')
    const [first] = requests
    return first ? servePerRequest(requests, readLegacy(first, header, revisions), ctx, true) : respondAccepted(ctx)
  }

  function serveOne(message: ValidMessage, ctx: HostContext) {
    const { headers } = ctx.req
    const header = readVersionHeader(headers)
    const modern = isModern(message, header)
    if (!modern) {
      if (serveSession) return serveSession([message], ctx, false)
      if (message.kind === 'response') return respondAccepted(ctx)
    }
    if (message.kind === 'response') throw new HostError('invalidRequest', { detail: 'clients send no responses' })
    const meta = (modern ? readModern : readLegacy)(message, header, revisions)
    if (modern) checkStandardHeaders(headers, message, nameHeaders)
    return message.kind === 'request' ? servePerRequest([message], meta, ctx, false) : respondAccepted(ctx)
  }

  return async (ctx: HostContext) => {
    let id: RequestId | undefined
    try {
      requireAccept(ctx.req.headers.accept)
      const messages = readMessages(await readBody(ctx.req, host.config.http.maxBodySize))
      if (!('kind' in messages)) return await serveBatch(messages, ctx)
      if (messages.kind === 'invalid') return refuse(ctx, messages.error, messages.id)
      if (messages.kind === 'request') id = messages.id
      await serveOne(messages, ctx)
    } catch (thrown) {
      if (!HostError.is(thrown) || ctx.res.headersSent) throw thrown
      ctx.respond = true
      refuse(ctx, thrown, id)
    }
  }
}
