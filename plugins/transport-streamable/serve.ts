// Serves the POSTs of a route: reads and classifies the message once, then refuses it or passes it on.
import { HostError } from '../../core/index.ts'
import type { HostContext, McpRoute } from '../../core/plugin.ts'
import {
  ASSUMED_REVISION,
  demandBatches,
  encodeError,
  type Message,
  MODERN_REVISION,
  type RequestId,
  readBody,
  readMessages,
  statusOf,
  type Transport,
  type ValidMessage,
  validBatch,
} from '../../core/transport.ts'
import { accept } from './exchange.ts'
import {
  checkStandardHeaders,
  demandBoth,
  isModern,
  readLegacy,
  readModern,
  type Speech,
  versionOf,
} from './headers.ts'
import { createPerRequest, type Request } from './per-request.ts'
import { createSessionPosts } from './session-post.ts'

function refuse(ctx: HostContext, error: HostError, id?: RequestId): void {
  ctx.status = statusOf(error)
  ctx.state.refusal = error
  for (const [name, value] of Object.entries(error.headers ?? {})) ctx.set(name, value)
  ctx.type = 'json'
  ctx.body = encodeError(error, { id, revision: versionOf(ctx.req.headers) })
}

export function createPostHandler(host: Transport, route: McpRoute) {
  const answerPerRequest = createPerRequest(host, route)
  const { nameHeaders } = host.extensionsOn(route)
  const serveSession = route.stateless ? undefined : createSessionPosts(host, route)

  function serveBatch(messages: readonly Message[], ctx: HostContext) {
    const header = versionOf(ctx.req.headers)
    demandBatches(header ?? ASSUMED_REVISION)
    const valid = validBatch(messages)
    if (valid.some(message => isModern(message, header))) demandBatches(MODERN_REVISION)
    if (serveSession) return serveSession(valid, ctx, true)
    const requests = valid.flatMap(
      (message): Array<[Request, Speech]> =>
        message.kind === 'request' ? [[message, readLegacy(message, header, route.revisions)]] : [],
    )
    return requests.length === 0 ? accept(ctx) : answerPerRequest(requests, ctx, true)
  }

  function serveOne(message: ValidMessage, ctx: HostContext) {
    const { headers } = ctx.req
    const header = versionOf(headers)
    const modern = isModern(message, header)
    if (!modern) {
      if (serveSession) return serveSession([message], ctx, false)
      if (message.kind === 'response') return accept(ctx)
    }
    if (message.kind === 'response') throw new HostError('invalidRequest', { detail: 'clients send no responses' })
    const speech = (modern ? readModern : readLegacy)(message, header, route.revisions)
    if (modern) checkStandardHeaders(headers, message, nameHeaders)
    return message.kind === 'request' ? answerPerRequest([[message, speech]], ctx, false) : accept(ctx)
  }

  return async (ctx: HostContext) => {
    let id: RequestId | undefined
    try {
      demandBoth(ctx.req.headers.accept)
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
