// POST <route>/message?sessionId=...: takes a message with 202; what it leads to flows on the session's stream.
import {
  encodeError,
  type ForwardedMessage,
  type HostContext,
  HostError,
  type McpRoute,
  type Message,
  readBody,
  readMessages,
  type Session,
  type SessionReply,
  serveSessionMessage,
  stopRequest,
  type Transport,
} from '../../core/index.ts'

type Sender = Pick<ForwardedMessage, 'headers' | 'user'>
type Valid = Exclude<Message, { kind: 'invalid' }>

/** The reply to one request: on the stream that the session has. */
function createReply(session: Session): SessionReply {
  const controller = new AbortController()
  let over = false
  const send = (message: string) => {
    if (!over) session.send(message)
  }
  return {
    send,
    respond: send,
    signal: () => controller.signal,
    cancel(reason) {
      over = true
      controller.abort(reason)
    },
  }
}

/** The messages of a body. Throws `invalidRequest` for what is none, and for a batch that the session does not have. */
function validated(text: string, { revision }: Session): readonly Valid[] {
  const read = readMessages(text)
  const batch = !('kind' in read)
  const messages = (batch ? read : [read]).map(message => {
    if (message.kind === 'invalid') throw message.error
    return message
  })
  if (batch && revision !== '2025-03-26') {
    throw new HostError('invalidRequest', { detail: 'only revision 2025-03-26 has batches' })
  }
  if (batch && messages.some(message => message.kind === 'request' && message.method === 'initialize')) {
    throw new HostError('invalidRequest', { detail: 'initialize cannot be part of a batch' })
  }
  return messages
}

export function createMessagePost(host: Transport, route: McpRoute, maxConcurrent: number | undefined) {
  const { calls } = host.sessions

  function find(ctx: HostContext): Session | Promise<Session> {
    const { sessionId } = ctx.query
    if (typeof sessionId !== 'string' || sessionId === '') {
      throw new HostError('sessionIdMissing', { detail: 'send one sessionId parameter' })
    }
    const { params, user } = ctx.state
    return host.sessions.find(sessionId, { route, params, user, ip: ctx.ip }, host.name)
  }

  /** Counts the requests that begin. Throws `tooManyRequests` where too many would run. */
  function enter(session: Session, requests: number) {
    if (maxConcurrent !== undefined && session.calls + requests > maxConcurrent) {
      const detail = `at most ${maxConcurrent} requests of a session run at once`
      throw new HostError('tooManyRequests', { detail, headers: { 'Retry-After': '1' } })
    }
    calls.enter(session, requests)
  }

  /** Begins a request. Throws `unavailable` where the host is over. */
  function begin(session: Session, request: Extract<Valid, { kind: 'request' }>, sender: Sender) {
    const reply = createReply(session)
    const leave = host.inFlight(reason => stopRequest(session, request.id, reply, reason))
    return async () => {
      try {
        await serveSessionMessage(host, session, request, sender, () => reply)
      } finally {
        leave()
        calls.leave(session, 1)
      }
    }
  }

  /** Throws `tooManyRequests` and `unavailable` before any request began. */
  async function take(session: Session, messages: readonly Valid[], sender: Sender) {
    const requests = messages.filter(message => message.kind === 'request')
    for (const message of messages) {
      if (message.kind !== 'request') await serveSessionMessage(host, session, message, sender, neverAnswered)
    }
    enter(session, requests.length)
    let begun: ReadonlyArray<() => Promise<void>> = []
    try {
      begun = requests.map(request => begin(session, request, sender))
    } finally {
      calls.leave(session, requests.length - begun.length)
    }
    for (const serve of begun) void serve()
  }

  /** What was taken elsewhere with 202: a refusal can only be told on the stream. */
  async function takeForwarded(session: Session, { text, ...sender }: ForwardedMessage) {
    let messages: readonly Valid[] = []
    try {
      messages = validated(text, session)
      await take(session, messages, sender)
    } catch (thrown) {
      if (!HostError.is(thrown)) host.log.error({ err: thrown }, 'a forwarded message failed')
      const error = HostError.is(thrown) ? thrown : new HostError('internal')
      for (const message of messages) {
        if (message.kind === 'request') session.send(encodeError(error, { id: message.id, revision: session.revision }))
      }
    }
  }
  host.streams.receive(host.name, route, (session, message) => void takeForwarded(session, message))

  return async (ctx: HostContext) => {
    const session = await find(ctx)
    const text = await readBody(ctx.req, host.http.maxBodySize)
    const messages = validated(text, session)
    const sender = { headers: ctx.req.headers, user: ctx.state.user }
    // The stream may be at another node: what the message leads to happens there.
    const forwarded = host.streams.forward(session, { text, ...sender })
    if (forwarded) await forwarded
    else await take(session, messages, sender)
    ctx.body = null
    ctx.status = 202
  }
}

const neverAnswered = (): never => {
  throw new Error('only requests are answered')
}
