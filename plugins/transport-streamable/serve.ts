// Serves the POSTs of a route: reads and classifies the message once, then refuses it, or serves it with or without a session.
import { HostError } from '../../core/index.ts'
import type { HostContext, McpRoute } from '../../core/plugin.ts'
import {
  ASSUMED_REVISION,
  demandBatches,
  encodeError,
  isModernRevision,
  type Message,
  MODERN_REVISION,
  type RequestId,
  readBody,
  readMessages,
  serveRequests,
  statusOf,
  type Transport,
  type ValidMessage,
  validBatch,
} from '../../core/transport.ts'
import { createExchangeParts, PostExchange, type Request, respondAccepted } from './exchange.ts'
import {
  checkStandardHeaders,
  checkToolHeaders,
  isModern,
  readLegacy,
  readModern,
  requireAccept,
  type Speech,
  versionOf,
} from './headers.ts'
import { createSessionPosts } from './session-post.ts'

function refuse(ctx: HostContext, error: HostError, id?: RequestId): void {
  ctx.status = statusOf(error)
  ctx.state.refusal = error
  for (const [name, value] of Object.entries(error.headers ?? {})) ctx.set(name, value)
  ctx.type = 'json'
  ctx.body = encodeError(error, { id, revision: versionOf(ctx.req.headers) })
}

export function createPostHandler(host: Transport, route: McpRoute) {
  const parts = createExchangeParts(host)
  const { nameHeaders } = host.extensionsOn(route)
  const { revisions } = route
  const serveSession = route.stateless ? undefined : createSessionPosts(host, route, parts)

  /** `speech`: version and sender of all `requests`. */
  function servePerRequest(requests: readonly Request[], speech: Speech, ctx: HostContext, batch: boolean) {
    const { req, state } = ctx
    const { headers } = req
    const { params, user } = state
    const { revision, client, logLevel } = speech
    let exchange: PostExchange | undefined
    const signal = () => exchange?.cancellation.signal ?? AbortSignal.abort()
    const facts = { route, params, user, headers, ip: ctx.ip, signal, admitted: true as const }
    const sender = { headers, user, state, refusalRecorded: requests.length === 1 }
    const checkCall = isModernRevision(revision) ? checkToolHeaders : undefined
    // Fields are listed, because a spread costs more than the rest of this function.
    return serveRequests(host, { facts, revision, client, logLevel, checkCall }, requests, sender, () => {
      ctx.respond = false
      exchange ??= new PostExchange(parts, { ctx, requests, batch, session: undefined, revision })
      return requests.length === 1 ? exchange : exchange.replyToOne()
    })
  }

  function serveBatch(messages: readonly Message[], ctx: HostContext) {
    const header = versionOf(ctx.req.headers)
    demandBatches(header ?? ASSUMED_REVISION)
    const valid = validBatch(messages)
    if (valid.some(message => isModern(message, header))) demandBatches(MODERN_REVISION)
    if (serveSession) return serveSession(valid, ctx, true)
    const requests = valid.filter(message => message.kind === 'request')
    const [first] = requests
    return first ? servePerRequest(requests, readLegacy(first, header, revisions), ctx, true) : respondAccepted(ctx)
  }

  function serveOne(message: ValidMessage, ctx: HostContext) {
    const { headers } = ctx.req
    const header = versionOf(headers)
    const modern = isModern(message, header)
    if (!modern) {
      if (serveSession) return serveSession([message], ctx, false)
      if (message.kind === 'response') return respondAccepted(ctx)
    }
    if (message.kind === 'response') throw new HostError('invalidRequest', { detail: 'clients send no responses' })
    const speech = (modern ? readModern : readLegacy)(message, header, revisions)
    if (modern) checkStandardHeaders(headers, message, nameHeaders)
    return message.kind === 'request' ? servePerRequest([message], speech, ctx, false) : respondAccepted(ctx)
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
