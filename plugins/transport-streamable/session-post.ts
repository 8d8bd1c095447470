// POSTs of sessions (2025-03-26 to 2025-11-25): `initialize` opens one, everything else names it. A call goes on when
// its connection drops; what it says meanwhile is kept for the client to come back for.
import {
  HANDSHAKE_REVISIONS,
  type HostContext,
  HostError,
  isHandshakeRevision,
  type McpRoute,
  type Message,
  openEventStream,
  RETRY,
  type RequestId,
  type Session,
  type SessionReply,
  serveSessionMessage,
  stopRequest,
  type Transport,
} from '../../core/index.ts'
import { unsupported } from './classify.ts'
import { createExchange, type Exchange, type Sink } from './exchange.ts'
import { accept, answerStatus } from './refusals.ts'

type Valid = Exclude<Message, { kind: 'invalid' }>
type Request = Extract<Message, { kind: 'request' }>

/** Only clients of this revision know that an empty first event is there to come back to. */
export const isPrimed = ({ revision }: Session): boolean => revision === '2025-11-25'

/** The session that a request names, which begins these calls. Throws `sessionIdMissing`, and `sessionNotFound` and `forbidden` as the registry. */
export function findSession(
  host: Transport,
  route: McpRoute,
  ctx: HostContext,
  requests: readonly RequestId[] = [],
): Session | Promise<Session> {
  const id = ctx.req.headers['mcp-session-id']
  if (typeof id !== 'string') throw new HostError('sessionIdMissing', { detail: 'send the Mcp-Session-Id header' })
  const { params, user } = ctx.state
  return host.sessions.find(id, { route, params, user, ip: ctx.ip }, host.name, requests)
}

/** Throws `unsupportedVersion` for a version header that names none of ours; the session lives on. */
export function checkVersion({ req }: HostContext): void {
  const header = req.headers['mcp-protocol-version']
  if (header === undefined || isHandshakeRevision(header)) return
  throw unsupported(String(header), HANDSHAKE_REVISIONS)
}

export function createSessionPosts(host: Transport, route: McpRoute) {
  const { calls } = host.sessions

  function openSink(session: Session, requests: readonly Request[], ctx: HostContext): Sink {
    const ids = requests.map(({ id }) => id)
    const stream = host.streams.open(session, ids)
    const reader = openEventStream(ctx.res, {
      headers: { 'Mcp-Session-Id': session.id },
      stalled: waiting => host.log.warn({ waiting }, 'closed a stream whose reader does not read'),
    })
    if (isPrimed(session)) stream.prime(reader, RETRY)
    void stream.attach(reader, 0)
    return {
      send: message => stream.write(message),
      end: message => stream.finish(message),
      ...(isPrimed(session) && { disconnect: (retry = RETRY) => stream.disconnect(retry) }),
    }
  }

  /** One request's reply on an exchange that others may share: cancelling it ends it alone. */
  function createReply(exchange: Exchange, session: Session): SessionReply {
    const headers = { 'Mcp-Session-Id': session.id }
    let controller: AbortController | undefined
    let reason: Error | undefined
    let answered = false
    return {
      send: message => {
        if (!reason) exchange.send(message)
      },
      respond(message, error) {
        if (reason || answered) return
        answered = true
        const status = error ? answerStatus(error, false) : 200
        // A handshake that was refused gives no session.
        exchange.respond(message, status, { ...(session.revision !== undefined && headers), ...error?.headers })
      },
      signal() {
        controller ??= new AbortController()
        if (reason) controller.abort(reason)
        return controller.signal
      },
      cancel(why) {
        if (reason) return
        reason = why
        controller?.abort(why)
        if (!answered) exchange.skip()
      },
      disconnect: retry => exchange.disconnect(retry),
    }
  }

  async function answerAll(session: Session, messages: readonly Valid[], ctx: HostContext, batch: boolean) {
    const requests = messages.filter(message => message.kind === 'request')
    const sender = { headers: ctx.req.headers, user: ctx.state.user }
    for (const message of messages) {
      if (message.kind !== 'request') await serveSessionMessage(host, session, message, sender, neverAnswered)
    }
    if (requests.length === 0) return accept(ctx)
    const replies: Array<readonly [Request, SessionReply]> = []
    let leave: (() => void) | undefined
    calls.enter(session, requests.length)
    try {
      leave = host.inFlight(reason => {
        for (const [{ id }, reply] of replies) stopRequest(session, id, reply, reason)
      })
      ctx.respond = false
      const exchange = createExchange(ctx.res, {
        expected: requests.length,
        batch,
        open: () => openSink(session, requests, ctx),
        cancelledByClose: false,
      })
      for (const request of requests) replies.push([request, createReply(exchange, session)])
      await Promise.all(
        replies.map(([request, reply]) => serveSessionMessage(host, session, request, sender, () => reply)),
      )
    } finally {
      leave?.()
      calls.leave(session, requests.length)
    }
  }

  async function open(message: Valid, ctx: HostContext) {
    const { params, user } = ctx.state
    const { headers } = ctx.req
    const signal = () => new AbortController().signal
    const session = await host.sessions.open({ route, params, user, headers, ip: ctx.ip, signal }, host.name)
    try {
      await answerAll(session, [message], ctx, false)
    } finally {
      // A handshake that was refused leaves nothing behind.
      if (session.revision === undefined) await host.sessions.end(session, new Error('the handshake failed'))
    }
  }

  /** What a session that was found may not be asked. */
  function refuseFor(session: Session, opens: boolean, batch: boolean) {
    if (opens && session.revision !== undefined) {
      throw new HostError('invalidRequest', { detail: 'the session is initialized already' })
    }
    if (batch && session.revision !== '2025-03-26') {
      throw new HostError('invalidRequest', { detail: 'only revision 2025-03-26 has batches' })
    }
  }

  return async function serve(messages: readonly Valid[], ctx: HostContext, batch: boolean): Promise<void> {
    const [first] = messages
    const opens = first?.kind === 'request' && first.method === 'initialize'
    if (first && opens && ctx.req.headers['mcp-session-id'] === undefined) return open(first, ctx)
    checkVersion(ctx)
    const requests = messages.flatMap(message => (message.kind === 'request' ? [message.id] : []))
    const found = findSession(host, route, ctx, requests)
    const session = found instanceof Promise ? await found : found
    try {
      refuseFor(session, opens, batch)
      await answerAll(session, messages, ctx, batch)
    } catch (error) {
      session.abandon(requests)
      throw error
    }
  }
}

const neverAnswered = (): never => {
  throw new Error('only requests are answered')
}
