// One POST from its headers to whoever answers it: read once, classified once, refused or passed on.

import { type HostContext, HostError, type McpRoute } from '../../core/index.ts'
import {
  ASSUMED_REVISION,
  demandBatches,
  type Message,
  MODERN_REVISION,
  type RequestId,
  readBody,
  readMessages,
  type Transport,
  type ValidMessage,
  validBatch,
} from '../../core/transport.ts'
import { classify, isModern, type Speech, versionOf } from './classify.ts'
import { demandBoth } from './negotiate.ts'
import { createPerRequest, type Request } from './per-request.ts'
import { accept, refuse, refuseThrown } from './refusals.ts'
import { createSessionPosts } from './session-post.ts'
import { checkNotificationHeaders, checkStandardHeaders } from './standard-headers.ts'

/** Serves the POSTs of one route. */
export function createPostHandler(host: Transport, route: McpRoute) {
  const answerPerRequest = createPerRequest(host, route)
  const { nameHeaders } = host.extensionsOn(route)
  const serveSession = route.stateless ? undefined : createSessionPosts(host, route)

  function readSpeech(
    message: Exclude<ValidMessage, { kind: 'response' }>,
    modern: boolean,
    { req }: HostContext,
  ): Speech {
    const speech = classify(message, modern, req.headers, route.revisions)
    if (!modern) return speech
    if (message.kind === 'request') checkStandardHeaders(req.headers, message, nameHeaders)
    else checkNotificationHeaders(req.headers, message.method)
    return speech
  }

  function serveBatch(messages: readonly Message[], ctx: HostContext) {
    // A client without a header is taken for a revision that has them.
    demandBatches(versionOf(ctx.req.headers) ?? ASSUMED_REVISION)
    const valid = validBatch(messages)
    if (valid.some(message => isModern(message, ctx.req.headers))) demandBatches(MODERN_REVISION)
    if (serveSession) return serveSession(valid, ctx, true)
    const requests = valid.flatMap(
      (message): Array<[Request, Speech]> =>
        message.kind === 'request' ? [[message, readSpeech(message, false, ctx)]] : [],
    )
    return requests.length === 0 ? accept(ctx) : answerPerRequest(requests, ctx, true)
  }

  function serveOne(message: ValidMessage, ctx: HostContext) {
    const modern = isModern(message, ctx.req.headers)
    if (!modern) {
      if (serveSession) return serveSession([message], ctx, false)
      if (message.kind === 'response') return accept(ctx)
    }
    if (message.kind === 'response') throw new HostError('invalidRequest', { detail: 'clients send no responses' })
    const speech = readSpeech(message, modern, ctx)
    return message.kind === 'request' ? answerPerRequest([[message, speech]], ctx, false) : accept(ctx)
  }

  return async (ctx: HostContext) => {
    let id: RequestId | undefined
    try {
      demandBoth(ctx.req.headers.accept)
      const messages = readMessages(await readBody(ctx.req, host.http.maxBodySize))
      if (!('kind' in messages)) return await serveBatch(messages, ctx)
      if (messages.kind === 'invalid') return refuse(ctx, messages.error, messages.id)
      if (messages.kind === 'request') id = messages.id
      await serveOne(messages, ctx)
    } catch (thrown) {
      refuseThrown(ctx, thrown, id)
    }
  }
}
