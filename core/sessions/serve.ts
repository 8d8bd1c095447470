// A message of a session, whatever transport brought it: requests become Calls, answers find their question,
// notifications do what they say.
import type { IncomingHttpHeaders } from 'node:http'
import { HostError, nodeLost } from '../http/errors.ts'
import type { Logger } from '../kernel/log.ts'
import type { Route } from '../kernel/route.ts'
import type { User } from '../kernel/user.ts'
import type { AskClient, Call, CallChannel, CallRequest, Offer } from '../mcp/call.ts'
import type { RefusedRequest } from '../mcp/call-record.ts'
import { checkClientFacts, isShortName, shown } from '../mcp/client-limits.ts'
import { encodeAnswer } from '../mcp/dispatch.ts'
import { isObject } from '../mcp/is-object.ts'
import type { Message } from '../mcp/message.ts'
import { type EncodedAnswer, encodeError } from '../mcp/message.ts'
import type { Implementation, RequestId } from '../mcp/protocol.ts'
import { isHandshakeRevision, LATEST_HANDSHAKE } from '../mcp/revisions.ts'
import type { RunningCalls } from './running-calls.ts'
import type { Session } from './session.ts'

/** How the answer to one request travels. */
export interface SessionReply {
  /** A message that belongs to the request and comes before its answer. */
  send(message: string): void
  /** The answer, and the error it is, if it is one. */
  respond(answer: EncodedAnswer, error?: HostError): void
  /** Aborts when the request is cancelled or the session ends. */
  signal(): AbortSignal
  /** Whether it has aborted, or would have. */
  cancelled?(): boolean
  cancel(reason: Error): void
  disconnect?(retry?: number): void
  hold?(): () => void
}

/** What the HTTP request says that brought a message: its user may have another token than who opened the session. */
export interface Sender {
  readonly headers: IncomingHttpHeaders
  readonly user: User | undefined
  /** The state of the HTTP request. */
  readonly state?: { hasRecords?: true }
  /** True: it brought one request, and its own answer is that of the request, so that its record says of a refusal. */
  readonly alone?: boolean
}

/** What answers Calls, where failures are told, and where it is known what runs. */
export interface Answering {
  readonly log: Logger
  readonly sessions: { readonly calls: RunningCalls }
  createCall(request: CallRequest): Call
  answer(call: Call): Promise<object>
  tellRefused(refused: RefusedRequest & { readonly route: Route }): void
  inFlight(cancel: (reason: Error) => void): () => void
}

type Request = Extract<Message, { kind: 'request' }>

/** Cancels a request because the host stops, and tells its client, unless it was answered. */
function stopRequest(session: Session, id: RequestId, reply: SessionReply, reason: Error): void {
  const error = nodeLost()
  if (session.runs(id)) {
    session.finish(id)
    reply.respond(encodeError(error, { id, revision: session.revision }), error)
  }
  reply.cancel(reason)
}

/** Between the call of one request and its client. What a handler says after its answer is heard by nobody. */
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

/** What an `initialize` is refused with in a session that had one. */
export const secondHandshake = ({ revision }: Session, method: string): HostError | undefined =>
  method === 'initialize' && revision !== undefined
    ? new HostError('invalidRequest', { detail: 'the session is initialized already' })
    : undefined

/** Why the request does not run; undefined: it does from now on. */
function begin(session: Session, id: RequestId, reply: SessionReply): HostError | undefined {
  if (session.begin(id, reason => reply.cancel(reason))) return undefined
  return new HostError('invalidRequest', { detail: `a request with the id ${JSON.stringify(id)} is running` })
}

type Served = readonly [Request, SessionReply]

/** Answers a request that was counted, and lasts until its handler is over: long after its client cancelled it, maybe. */
async function serveRequest(
  host: Answering,
  session: Session,
  [request, reply]: Served,
  sender: Sender,
  leaveHost?: () => void,
): Promise<void> {
  const { id, method, params } = request
  const { revision = LATEST_HANDSHAKE } = session
  const fail = (error: HostError) => reply.respond(encodeError(error, { id, revision }), error)
  function refuse(error: HostError) {
    if (!sender.alone) tellRefused(host, session, { error, method }, sender)
    fail(error)
  }
  try {
    const refusal = secondHandshake(session, method) ?? begin(session, id, reply)
    if (refusal) return refuse(refusal)
    const leave = session.use()
    const channel = new RequestChannel(session, reply)
    let isCall = false
    try {
      if (method === 'initialize') negotiate(session, params)
      const offered = session.offerFor(sender.user)
      const offer = offered instanceof Promise ? await offered : offered
      const call = host.createCall(callRequest(session, request, { sender, offer, channel }))
      isCall = true
      if (sender.state) sender.state.hasRecords = true
      const answer = encodeAnswer(host, call, await host.answer(call))
      const { revision: negotiated, client } = session
      if (method === 'initialize' && negotiated) await session.keep({ revision: negotiated, client })
      channel.answered = true
      // Before the client can know of it: it may send the same id to another node next.
      session.finish(id)
      reply.respond(answer)
    } catch (thrown) {
      channel.answered = true
      if (method === 'initialize') session.revision = undefined
      const error = HostError.is(thrown) ? thrown : new HostError('internal')
      if (!HostError.is(thrown))
        host.log.error({ err: thrown, method, route: session.offer.route.path }, 'a call failed')
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

/** To those who observe: it is no Call, which they would be told of. */
function tellRefused(
  host: Answering,
  { offer, client, revision, transport, id }: Session,
  refusal: Pick<RefusedRequest, 'error' | 'method'>,
  { headers, user, state }: Sender,
): void {
  if (state) state.hasRecords = true
  const { route, ip } = offer
  host.tellRefused({ ...refusal, headers, user, route, ip, client, revision, transport, sessionId: id })
}

interface Received {
  readonly sender: Sender
  readonly offer: Offer
  readonly channel: RequestChannel
}

function callRequest(session: Session, { id, method, params }: Request, received: Received): CallRequest {
  const { sender, offer, channel } = received
  const { headers, user } = sender
  return {
    id,
    method,
    params,
    headers,
    user,
    revision: session.revision ?? LATEST_HANDSHAKE,
    offer,
    session,
    client: session.client,
    logLevel: undefined,
    channel,
    asks: channel,
  }
}

/** Keeps what `initialize` says; the newest handshake revision where the asked-for one is not ours. */
function negotiate(session: Session, params: Request['params']): void {
  checkClientFacts(params)
  const { protocolVersion, clientInfo, capabilities } = params
  session.revision = isHandshakeRevision(protocolVersion) ? protocolVersion : LATEST_HANDSHAKE
  session.client = {
    info: isObject(clientInfo) ? (clientInfo as unknown as Implementation) : undefined,
    capabilities: isObject(capabilities) ? capabilities : {},
  }
}

function receiveNotification(
  session: Session,
  method: string,
  params: Readonly<Record<string, unknown>>,
): Promise<void> | undefined {
  if (method !== 'notifications/cancelled') return undefined
  const { requestId, reason } = params
  // It is looked up, here and at other nodes, and its reason is told to them and to whoever was asked.
  if (!isShortName(requestId)) return undefined
  return session.cancel(requestId, typeof reason === 'string' ? shown(reason) : 'the client cancelled the request')
}

/**
 * Serves requests of a session, that of one message or those of a batch, each answered by the reply that is made for it.
 * They count among what their session and its owner run, and among what a closing host waits for, and then cancels.
 * Resolves when all handlers are over and their answers were given to the replies: what fails is an answer, too.
 * Throws `tooManyRequests`, `sessionNotFound` and `unavailable` at once, before any reply was made or handler began.
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
      for (const [{ id }, reply] of served) stopRequest(session, id, reply, reason)
    })
    for (const request of requests) served.push([request, createReply(request)])
  } catch (thrown) {
    leave?.()
    calls.leave(session, requests.length)
    throw thrown
  }
  const [only] = served
  // Most messages are one request: a list of promises would be a fifth of those that it takes.
  if (only && served.length === 1) return serveRequest(host, session, only, sender, leave)
  return Promise.all(served.map(one => serveRequest(host, session, one, sender))).finally(leave)
}

/**
 * Takes a message of a session that is no request. It is done when this returns, or its promise resolves: where another
 * node is to hear of it, once that is sure to.
 */
export function receiveMessage(
  session: Session,
  message: Extract<Message, { kind: 'response' | 'notification' }>,
): Promise<void> | undefined {
  if (message.kind === 'response') return session.answer(message.id, message.body)
  return receiveNotification(session, message.method, message.params)
}
