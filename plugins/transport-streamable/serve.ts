// One POST from its headers to whoever answers it: read once, classified once, refused or passed on.
import {
  type HostContext,
  HostError,
  type McpRoute,
  type Message,
  MODERN_REVISION,
  readBody,
  readMessages,
  type Transport,
} from '../../core/index.ts'
import { allowsBatch, classify, isModern, type Speech } from './classify.ts'
import { demandBoth } from './negotiate.ts'
import { createPerRequest, type Request } from './per-request.ts'
import { accept, refuse, refusing } from './refusals.ts'
import { createSessionPosts } from './session-post.ts'
import { checkNotificationHeaders, checkStandardHeaders } from './standard-headers.ts'

type Valid = Exclude<Message, { kind: 'invalid' }>

/** Throws `invalidRequest` for a batch that its revision does not have, or that opens a session. */
function checkBatch(messages: readonly Message[], ctx: HostContext): readonly Valid[] {
  if (!allowsBatch(ctx.req.headers)) {
    throw new HostError('invalidRequest', { detail: 'only revision 2025-03-26 has batches' })
  }
  const valid = messages.map(message => {
    if (message.kind === 'invalid') throw message.error
    return message
  })
  if (valid.some(message => message.kind === 'request' && message.method === 'initialize')) {
    throw new HostError('invalidRequest', { detail: 'initialize cannot be part of a batch' })
  }
  return valid
}

/** Serves the POSTs of one route. */
export function createPostHandler(host: Transport, route: McpRoute) {
  const answerPerRequest = createPerRequest(host, route)
  const serveSession = route.stateless ? undefined : createSessionPosts(host, route)

  function speechOf(message: Exclude<Valid, { kind: 'response' }>, { req }: HostContext): Speech {
    const speech = classify(message, req.headers, route.revisions)
    if (speech.revision !== MODERN_REVISION) return speech
    if (message.kind === 'request') checkStandardHeaders(req.headers, message.method, message.params)
    else checkNotificationHeaders(req.headers, message.method)
    return speech
  }

  function serveBatch(messages: readonly Message[], ctx: HostContext) {
    const valid = checkBatch(messages, ctx)
    if (valid.some(message => isModern(message, ctx.req.headers))) {
      throw new HostError('invalidRequest', { detail: `revision ${MODERN_REVISION} has no batches` })
    }
    if (serveSession) return serveSession(valid, ctx, true)
    const requests = valid.flatMap(
      (message): Array<[Request, Speech]> => (message.kind === 'request' ? [[message, speechOf(message, ctx)]] : []),
    )
    return requests.length === 0 ? accept(ctx) : answerPerRequest(requests, ctx, true)
  }

  function serveOne(message: Valid, ctx: HostContext) {
    if (!isModern(message, ctx.req.headers)) {
      if (serveSession) return serveSession([message], ctx, false)
      if (message.kind === 'response') return accept(ctx)
    }
    if (message.kind === 'response') throw new HostError('invalidRequest', { detail: 'clients send no responses' })
    const speech = speechOf(message, ctx)
    return message.kind === 'request' ? answerPerRequest([[message, speech]], ctx, false) : accept(ctx)
  }

  return (ctx: HostContext) =>
    refusing(ctx, undefined, async () => {
      demandBoth(ctx.req.headers.accept)
      const messages = readMessages(await readBody(ctx.req, host.http.maxBodySize))
      if (!('kind' in messages)) return serveBatch(messages, ctx)
      if (messages.kind === 'invalid') return refuse(ctx, messages.error, messages.id)
      return refusing(ctx, messages.kind === 'request' ? messages.id : undefined, () => serveOne(messages, ctx))
    })
}
