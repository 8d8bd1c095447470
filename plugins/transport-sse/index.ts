// The HTTP+SSE transport (2024-11-05): GET <route>/sse opens the stream, POST <route>/message takes messages.

import type { IncomingHttpHeaders } from 'node:http'
import { HostError } from '../../core/index.ts'
import { closed, count, definePlugin } from '../../core/internal.ts'
import { type HostContext, type McpRoute, type OptionsOf, StartError } from '../../core/plugin.ts'
import {
  createLineReply,
  encodeError,
  type ForwardedMessage,
  filterUpdates,
  HANDSHAKE_REVISIONS,
  openEventStream,
  RETRY,
  readBody,
  readMessages,
  receiveMessage,
  requireBatches,
  type Session,
  serveRequests,
  shuttingDown,
  type Transport,
  transportOf,
  type ValidMessage,
  validBatch,
  whenClosed,
} from '../../core/transport.ts'

/** Parses a body. Throws `invalidRequest`, also for a batch if the session's version does not support batches. */
function validated(text: string, { revision }: Session): readonly ValidMessage[] {
  const read = readMessages(text)
  if (!('kind' in read)) {
    requireBatches(revision)
    return validBatch(read)
  }
  if (read.kind === 'invalid') throw read.error
  return [read]
}

function createMessagePost(host: Transport, route: McpRoute, maxConcurrent: number | undefined) {
  function find(ctx: HostContext): Session | Promise<Session> {
    const { sessionId } = ctx.query
    if (typeof sessionId !== 'string' || sessionId === '') {
      throw new HostError('sessionIdMissing', { detail: 'send one sessionId parameter' })
    }
    const { params, user } = ctx.state
    return host.sessions.find(sessionId, { route, params, user, ip: ctx.ip, authorized: true }, host.name)
  }

  /** Handles messages. Throws `tooManyRequests` and `unavailable` before any request begins. */
  async function take(
    session: Session,
    messages: readonly ValidMessage[],
    sender: Parameters<typeof serveRequests>[3],
  ) {
    const requests = messages.filter(message => message.kind === 'request')
    for (const message of messages) if (message.kind !== 'request') await receiveMessage(session, message)
    if (maxConcurrent !== undefined && session.calls + requests.length > maxConcurrent) {
      const detail = `at most ${maxConcurrent} concurrent requests per session`
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
      const facts = { ...sender, error, route: offer.route, ip: offer.ip, client, revision, transport, sessionId }
      for (const message of messages) {
        if (message.kind !== 'request') continue
        host.reportRefused({ ...facts, method: message.method })
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

/** Returns the path for messages of a session. The client resolves it against the URL of the stream. */
function endpointOf(route: McpRoute, params: Readonly<Record<string, string>>, id: string): string {
  const { pathname } = new URL(route.url(params))
  return `${pathname.replace(/\/$/, '')}/message?sessionId=${id}`
}

function createStreamGet(host: Transport, route: McpRoute) {
  return async (ctx: HostContext) => {
    // Only this node can send the session's responses, so the session would end with the node.
    if (host.sessions.released) throw shuttingDown()
    const { params, user } = ctx.state
    const { headers } = ctx.req as { headers: IncomingHttpHeaders }
    const signal = () => new AbortController().signal
    const facts = { route, params, user, headers, ip: ctx.ip, signal, authorized: true as const }
    const session = await host.sessions.open(facts, host.name)
    const release = session.use()
    ctx.respond = false
    whenClosed(ctx.res, () => {
      release()
      const ended = host.sessions.end(session, new Error('the client closed the stream'))
      ended.catch(err => host.log.warn({ code: 'MH1413', err }, 'could not notify other nodes that a session ended'))
    })
    const stream = openEventStream(ctx.res, { log: host.log })
    const reader = filterUpdates(stream, session.offer, user)
    session.connect({
      send: message => reader.send(message),
      close(retry) {
        // A closing host first sends the responses of running calls, which all use this stream.
        if (retry === undefined) stream.end(RETRY)
      },
    })
    whenClosed(
      ctx.res,
      host.watchCaller({ route, params, user }, () => stream.end(RETRY)),
    )
    stream.event({ event: 'endpoint', data: endpointOf(route, params, session.id) })
  }
}

/** Toolset names whose route paths would conflict. */
const RESERVED = ['sse', 'message']

const OPTIONS = closed(
  {
    maxConcurrent: count(
      'Maximum concurrent requests of one session, if lower than sessions.maxCallsPerSession. Further requests get 429.',
    ),
  },
  { description: `HTTP with SSE (${HANDSHAKE_REVISIONS.at(-1)}): GET <route>/sse and POST <route>/message.` },
)

export interface TransportSseOptions extends OptionsOf<typeof OPTIONS> {}

export const transportSse = definePlugin<TransportSseOptions>({
  options: OPTIONS,
  provides: ['transport'],
  setup(host, { maxConcurrent }) {
    for (const { path, stateless, toolsets } of host.routes) {
      const at = ['routes', path]
      if (stateless) {
        const fix = `set plugins: { '${host.name}': false } on the route, or stateless: false`
        host.report(new StartError('MH2801', `it is stateless, and ${host.name} needs sessions; ${fix}`, { at }))
      }
      const clash = path.includes(':') ? toolsets.find(name => RESERVED.includes(name)) : undefined
      if (clash !== undefined) {
        const why = `the path of the toolset "${clash}" is a path of the SSE transport; rename the toolset`
        host.report(new StartError('MH1205', why, { at, also: [{ at: ['toolsets', clash] }] }))
      }
    }
    host.endpoint('/sse', route => ({ methods: { GET: createStreamGet(transportOf(host), route) } }))
    host.endpoint('/message', route => {
      return { methods: { POST: createMessagePost(transportOf(host), route, maxConcurrent) } }
    })
  },
})
