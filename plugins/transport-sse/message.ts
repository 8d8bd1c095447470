// POST <route>/message?sessionId=...: responds 202; JSON-RPC responses are sent on the session's stream.
import { HostError } from '../../core/index.ts'
import type { HostContext, McpRoute } from '../../core/plugin.ts'
import {
  createLineReply,
  demandBatches,
  encodeError,
  type ForwardedMessage,
  readBody,
  readMessages,
  receiveMessage,
  type Session,
  serveRequests,
  type Transport,
  type ValidMessage,
  validBatch,
} from '../../core/transport.ts'

type Sender = Parameters<typeof serveRequests>[3]

/** Parses a body. Throws `invalidRequest`, also for a batch if the session's version does not support batches. */
function validated(text: string, { revision }: Session): readonly ValidMessage[] {
  const read = readMessages(text)
  if (!('kind' in read)) {
    demandBatches(revision)
    return validBatch(read)
  }
  if (read.kind === 'invalid') throw read.error
  return [read]
}

export function createMessagePost(host: Transport, route: McpRoute, maxConcurrent: number | undefined) {
  function find(ctx: HostContext): Session | Promise<Session> {
    const { sessionId } = ctx.query
    if (typeof sessionId !== 'string' || sessionId === '') {
      throw new HostError('sessionIdMissing', { detail: 'send one sessionId parameter' })
    }
    const { params, user } = ctx.state
    return host.sessions.find(sessionId, { route, params, user, ip: ctx.ip, admitted: true }, host.name)
  }

  /** Handles messages. Throws `tooManyRequests` and `unavailable` before any request begins. */
  async function take(session: Session, messages: readonly ValidMessage[], sender: Sender) {
    const requests = messages.filter(message => message.kind === 'request')
    for (const message of messages) if (message.kind !== 'request') await receiveMessage(session, message)
    if (maxConcurrent !== undefined && session.calls + requests.length > maxConcurrent) {
      const detail = `at most ${maxConcurrent} requests of a session run at once`
      throw new HostError('tooManyRequests', { detail, headers: { 'Retry-After': '1' } })
    }
    void serveRequests(host, session, requests, sender, () => createLineReply(session))
  }

  /** Handles messages for which another node responded with 202, so errors are sent on the stream. */
  async function takeForwarded(session: Session, { text, ...sender }: ForwardedMessage) {
    let messages: readonly ValidMessage[] = []
    try {
      messages = validated(text, session)
      await take(session, messages, sender)
    } catch (thrown) {
      if (!HostError.is(thrown)) host.log.error({ code: 'MH1610', err: thrown }, 'a forwarded message failed')
      const error = HostError.is(thrown) ? thrown : new HostError('internal')
      const { offer, client, revision, transport, id: sessionId } = session
      const told = { ...sender, error, route: offer.route, ip: offer.ip, client, revision, transport, sessionId }
      for (const message of messages) {
        if (message.kind !== 'request') continue
        host.tellRefused({ ...told, method: message.method })
        session.send(encodeError(error, { id: message.id, revision }))
      }
    }
  }
  host.streams.receive(host.name, route, (session, message) => void takeForwarded(session, message))

  return async (ctx: HostContext) => {
    let session = await find(ctx)
    const text = await readBody(ctx.req, host.config.http.maxBodySize)
    if (session.disposed) session = await find(ctx)
    const messages = validated(text, session)
    const sender = { headers: ctx.req.headers, user: ctx.state.user }
    const forwarded = host.streams.forward(session, { text, ...sender })
    if (forwarded) await forwarded
    else await take(session, messages, { ...sender, state: ctx.state })
    ctx.body = null
    ctx.status = 202
  }
}
