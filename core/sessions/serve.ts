// Serves session messages for every transport: requests become Calls; responses and notifications are delivered.
import type { IncomingHttpHeaders } from 'node:http'
import { HostError } from '../http/errors.ts'
import type { Logger } from '../kernel/log.ts'
import type { Route } from '../kernel/route.ts'
import type { User } from '../kernel/user.ts'
import type { AskClient, Call, CallChannel, CallRequest } from '../mcp/call.ts'
import type { RefusedRequest } from '../mcp/call-record.ts'
import { checkClientFacts, isShortName, shown } from '../mcp/client-limits.ts'
import { encodeAnswer } from '../mcp/dispatch.ts'
import { isObject } from '../mcp/is-object.ts'
import { type EncodedAnswer, encodeError, type Message, nodeLost } from '../mcp/message.ts'
import type { Implementation } from '../mcp/protocol.ts'
import { isHandshakeRevision, LATEST_HANDSHAKE } from '../mcp/revisions.ts'
import { running } from './refusals.ts'
import type { RunningCalls } from './registry.ts'
import type { Session } from './session.ts'

/** Sends the response to one request. */
export interface SessionReply {
  send(message: string): void
  respond(answer: EncodedAnswer, error?: HostError): void
  signal(): AbortSignal
  cancelled?(): boolean
  cancel(reason: Error): void
  disconnect?(retry?: number): void
  hold?(): () => void
}

/** The HTTP request of a message. Its token can differ from the session's first token. */
export interface Sender {
  readonly headers: IncomingHttpHeaders
  readonly user: User | undefined
  readonly state?: { hasRecords?: true }
  /** True for a single request with its own HTTP response, whose refusal is already recorded. */
  readonly alone?: boolean
}

/** Host functions for `serveRequests`. */
export interface Answering {
  readonly log: Logger
  readonly sessions: { readonly calls: RunningCalls }
  createCall(request: CallRequest): Call
  answer(call: Call): Promise<object>
  tellRefused(refused: RefusedRequest & { readonly route: Route }): void
  inFlight(cancel: (reason: Error) => void): () => void
}

type Request = Extract<Message, { kind: 'request' }>

class RequestChannel implements CallChannel, AskClient {
  answered = false
  readonly #session: Session
  readonly #reply: SessionReply

  constructor(session: Session, reply: SessionReply) {
    this.#session = session
    this.#reply = reply
  }
  send(message: string) {
    if (!this.answered) this.#reply.send(message)
  }
  signal() {
    return this.#reply.signal()
  }
  cancelled() {
    return this.#reply.cancelled?.() ?? this.#reply.signal().aborted
  }
  disconnect(retry?: number) {
    this.#reply.disconnect?.(retry)
  }
  hold() {
    return this.#reply.hold?.() ?? (() => undefined)
  }
  ask(method: string, params: object, signal: AbortSignal) {
    return this.#session.ask(message => this.send(message), method, params, signal)
  }
}

type Served = readonly [Request, SessionReply]

async function serveRequest(
  host: Answering,
  session: Session,
  [request, reply]: Served,
  sender: Sender,
  leaveHost?: () => void,
): Promise<void> {
  const { id, method, params } = request
  const { headers, user } = sender
  const { revision = LATEST_HANDSHAKE } = session
  const fail = (error: HostError) => reply.respond(encodeError(error, { id, revision }), error)
  function refuse(error: HostError) {
    if (!sender.alone) {
      if (sender.state) sender.state.hasRecords = true
      const { offer, client, revision, transport, id: sessionId } = session
      const { route, ip } = offer
      host.tellRefused({ error, method, headers, user, route, ip, client, revision, transport, sessionId })
    }
    fail(error)
  }
  try {
    if (method === 'initialize' && session.revision !== undefined) {
      return refuse(new HostError('invalidRequest', { detail: 'the session is initialized already' }))
    }
    if (!session.begin(id, reason => reply.cancel(reason))) return refuse(running(id))
    const leave = session.use()
    const channel = new RequestChannel(session, reply)
    let isCall = false
    try {
      if (method === 'initialize') negotiate(session, params)
      const offered = session.offerFor(user)
      const call = host.createCall({
        id,
        method,
        params,
        headers,
        user,
        revision: session.revision ?? LATEST_HANDSHAKE,
        offer: offered instanceof Promise ? await offered : offered,
        session,
        client: session.client,
        logLevel: undefined,
        channel,
        asks: channel,
      })
      isCall = true
      if (sender.state) sender.state.hasRecords = true
      const answer = encodeAnswer(host, call, await host.answer(call))
      const { revision: negotiated, client } = session
      if (method === 'initialize' && negotiated) await session.keep({ revision: negotiated, client })
      channel.answered = true
      // Before the response: the client can then reuse the id on another node.
      session.finish(id)
      reply.respond(answer)
    } catch (thrown) {
      channel.answered = true
      if (method === 'initialize') session.revision = undefined
      const error = HostError.is(thrown) ? thrown : new HostError('internal')
      if (error !== thrown)
        host.log.error({ code: 'MH1610', err: thrown, method, route: session.offer.route.path }, 'a call failed')
      if (isCall) fail(error)
      else refuse(error)
    } finally {
      session.finish(id)
      leave()
    }
  } finally {
    host.sessions.calls.leave(session, 1)
    leaveHost?.()
  }
}

function negotiate(session: Session, params: Request['params']): void {
  checkClientFacts(params)
  const { protocolVersion, clientInfo, capabilities } = params
  session.revision = isHandshakeRevision(protocolVersion) ? protocolVersion : LATEST_HANDSHAKE
  session.client = {
    info: isObject(clientInfo) ? (clientInfo as unknown as Implementation) : undefined,
    capabilities: isObject(capabilities) ? capabilities : {},
  }
}

/**
 * Resolves when all handlers have ended; failures are responses. Throws `tooManyRequests`, `sessionNotFound` and
 * `unavailable` synchronously, before any handler starts.
 */
export function serveRequests(
  host: Answering,
  session: Session,
  requests: readonly Request[],
  sender: Sender,
  createReply: (request: Request) => SessionReply,
): Promise<unknown> {
  const { calls } = host.sessions
  const served: Served[] = []
  let leave: (() => void) | undefined
  calls.enter(session, requests.length)
  try {
    leave = host.inFlight(reason => {
      for (const [{ id }, reply] of served) {
        if (session.runs(id)) {
          const error = nodeLost()
          session.finish(id)
          reply.respond(encodeError(error, { id, revision: session.revision }), error)
        }
        reply.cancel(reason)
      }
    })
    for (const request of requests) served.push([request, createReply(request)])
  } catch (thrown) {
    leave?.()
    calls.leave(session, requests.length)
    throw thrown
  }
  const [only] = served
  if (only && served.length === 1) return serveRequest(host, session, only, sender, leave)
  return Promise.all(served.map(one => serveRequest(host, session, one, sender))).finally(leave)
}

/** Handles a response or notification. Returns a promise if another node must receive it. */
export function receiveMessage(
  session: Session,
  message: Extract<Message, { kind: 'response' | 'notification' }>,
): Promise<void> | undefined {
  if (message.kind === 'response') return session.answer(message.id, message.body)
  if (message.method !== 'notifications/cancelled') return undefined
  const { requestId, reason } = message.params
  // Limits the size of data sent to other nodes.
  if (!isShortName(requestId)) return undefined
  return session.cancel(requestId, typeof reason === 'string' ? shown(reason) : 'the client cancelled the request')
}

/** A connection to one client. */
export interface ReplyLine {
  send(message: string): void
  respond?(message: string): void
}

/** A reply for transports with one connection per session. Sends nothing after the response. */
export function createLineReply(line: ReplyLine): Required<SessionReply> {
  let abort: AbortController | undefined
  let reason: Error | undefined
  let over = false
  return {
    send(message) {
      if (!over) line.send(message)
    },
    respond(answer) {
      if (over) return
      over = true
      const message = String(answer)
      if (line.respond) line.respond(message)
      else line.send(message)
    },
    signal() {
      abort ??= new AbortController()
      if (reason && !abort.signal.aborted) abort.abort(reason)
      return abort.signal
    },
    cancelled: () => reason !== undefined,
    cancel(why) {
      over = true
      reason ??= why
      abort?.abort(reason)
    },
    disconnect() {},
    hold: () => () => undefined,
  }
}
