// Serves POSTs of sessions (2025-03-26 to 2025-11-25). Calls continue when the connection closes.
import { HostError } from '../../core/index.ts'
import type { HostContext, McpRoute } from '../../core/plugin.ts'
import {
  demandBatches,
  type EncodedAnswer,
  HANDSHAKE_REVISIONS,
  isHandshakeRevision,
  LATEST_HANDSHAKE,
  type Message,
  MODERN_REVISION,
  openEventStream,
  RETRY,
  type RequestId,
  receiveMessage,
  rulesOf,
  type Session,
  type SessionReply,
  serveRequests,
  statusOf,
  type Transport,
  type ValidMessage,
} from '../../core/transport.ts'
import { unsupported } from '../families/per-request/index.ts'
import { accept, createOpener, type Exchange, headerList, type Sink } from './exchange.ts'
import { versionOf } from './headers.ts'

type Request = Extract<Message, { kind: 'request' }>

export const isPrimed = ({ revision }: Session): boolean => revision !== undefined && rulesOf(revision).primesStreams

const sessionHint = ({ method }: HostContext) =>
  method === 'POST'
    ? `call initialize first and send the Mcp-Session-Id of its answer; or send this as a ${MODERN_REVISION} request, with ` +
      'its _meta and headers; or have the server set stateless: true on this route'
    : 'send the Mcp-Session-Id that the answer to initialize had'

/** `requests`: calls that this request begins. Throws `sessionIdMissing`, and like `SessionRegistry.find`. */
export function findSession(
  host: Transport,
  route: McpRoute,
  ctx: HostContext,
  requests: readonly RequestId[] = [],
): Session | Promise<Session> {
  const id = ctx.req.headers['mcp-session-id']
  if (typeof id !== 'string') throw new HostError('sessionIdMissing', { detail: sessionHint(ctx) })
  const { params, user } = ctx.state
  return host.sessions.find(id, { route, params, user, ip: ctx.ip, admitted: true }, host.name, requests)
}

/** Throws `unsupportedVersion` for a version header without a handshake version. The session continues. */
export function checkVersion({ req }: HostContext): void {
  const header = versionOf(req.headers)
  if (header !== undefined && !isHandshakeRevision(header)) throw unsupported(header, HANDSHAKE_REVISIONS)
}

/** The reply to one request on an exchange that a batch shares. */
class PostReply implements SessionReply {
  readonly #exchange: Exchange
  readonly #session: Session
  readonly #ctx: HostContext
  #controller: AbortController | undefined
  #reason: Error | undefined
  #answered = false

  constructor(exchange: Exchange, session: Session, ctx: HostContext) {
    this.#exchange = exchange
    this.#session = session
    this.#ctx = ctx
  }
  send(message: string) {
    if (!this.#reason) this.#exchange.send(message)
  }
  respond(answer: EncodedAnswer, error?: HostError) {
    if (this.#reason || this.#answered) return
    this.#answered = true
    if (error) this.#ctx.state.refusal = error
    const { id, revision } = this.#session
    const status = error ? statusOf(error, rulesOf(revision ?? LATEST_HANDSHAKE)) : 200
    // No id after a refused handshake.
    const headers = revision === undefined ? [] : ['Mcp-Session-Id', id]
    this.#exchange.respond(answer, status, error ? headers.concat(headerList(error)) : headers)
  }
  signal() {
    this.#controller ??= new AbortController()
    if (this.#reason) this.#controller.abort(this.#reason)
    return this.#controller.signal
  }
  cancelled() {
    return this.#reason !== undefined
  }

  cancel(reason: Error) {
    if (this.#reason) return
    this.#reason = reason
    this.#controller?.abort(reason)
    if (!this.#answered) this.#exchange.skip()
  }
  disconnect(retry?: number) {
    this.#exchange.disconnect(retry)
  }
  hold() {
    return this.#exchange.hold()
  }
}

export function createSessionPosts(host: Transport, route: McpRoute) {
  const openFor = createOpener(host.clock)

  function openSink(session: Session, requests: readonly Request[], ctx: HostContext): Sink {
    const ids = requests.map(({ id }) => id)
    const stream = host.streams.open(session, ids)
    const reader = openEventStream(ctx.res, { headers: { 'Mcp-Session-Id': session.id }, log: host.log })
    if (isPrimed(session)) stream.prime(reader, RETRY)
    void stream.attach(reader, 0)
    return {
      send: message => stream.write(message),
      end: message => stream.finish(message),
      disconnect: isPrimed(session) ? (retry = RETRY) => stream.disconnect(retry) : undefined,
    }
  }

  /** Not async, which would cost a promise per call. */
  function answerAll(session: Session, requests: readonly Request[], ctx: HostContext, batch: boolean) {
    const { req, state } = ctx
    const sender = { headers: req.headers, user: state.user, state, alone: requests.length === 1 }
    let exchange: Exchange | undefined
    return serveRequests(host, session, requests, sender, () => {
      ctx.respond = false
      exchange ??= openFor(ctx.res, {
        expected: requests.length,
        batch,
        open: () => openSink(session, requests, ctx),
        cancelledByClose: false,
      })
      return new PostReply(exchange, session, ctx)
    })
  }

  async function open(message: Request, ctx: HostContext) {
    const { params, user } = ctx.state
    const { headers } = ctx.req
    const signal = () => new AbortController().signal
    const facts = { route, params, user, headers, ip: ctx.ip, signal, admitted: true as const }
    const session = await host.sessions.open(facts, host.name)
    try {
      await answerAll(session, [message], ctx, false)
    } finally {
      if (session.revision === undefined) await host.sessions.end(session, new Error('the handshake failed'))
    }
  }

  async function namesSession(ctx: HostContext): Promise<boolean> {
    if (ctx.req.headers['mcp-session-id'] === undefined) return false
    try {
      await findSession(host, route, ctx)
      return true
    } catch (error) {
      if (HostError.is(error) && error.kind === 'sessionNotFound') return false
      throw error
    }
  }

  return async function serve(messages: readonly ValidMessage[], ctx: HostContext, batch: boolean): Promise<void> {
    const [first] = messages
    const opens = first?.kind === 'request' && first.method === 'initialize'
    if (first && opens && !(await namesSession(ctx))) return open(first, ctx)
    checkVersion(ctx)
    const requests = messages.filter(message => message.kind === 'request')
    const ids = requests.map(({ id }) => id)
    const found = findSession(host, route, ctx, ids)
    const session = found instanceof Promise ? await found : found
    try {
      if (opens && session.revision !== undefined) {
        throw new HostError('invalidRequest', { detail: 'the session is initialized already' })
      }
      if (batch) demandBatches(session.revision)
      for (const message of messages) if (message.kind !== 'request') await receiveMessage(session, message)
      if (requests.length === 0) return accept(ctx)
      await answerAll(session, requests, ctx, batch)
    } catch (error) {
      session.abandon(ids)
      throw error
    }
  }
}
